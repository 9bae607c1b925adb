import pytest

from calculator.caches import (
    KDA,
    RGLRU,
    RWKV5,
    GatedDeltaNet,
    Growth,
    LinearAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
)
from calculator.explain import product, symbol
from calculator.footprint import footprint
from calculator.formats import BF16, FP8, FP8_INDEX, FP32, NVFP4, Storage
from calculator.model import ModelPlan

QWEN = GatedDeltaNet(
    linear_num_key_heads=16,
    linear_num_value_heads=64,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    conv_kernel=4,
)
LFM2 = ShortConvolution(conv_kernel=3, hidden_size=2_048)
MAMBA = {"mamba_num_heads": 128, "mamba_head_dim": 64, "state_size": 128, "conv_kernel": 4}


def sizes(tensor) -> tuple[int, ...]:
    return tuple(side.value for side in tensor.shape)


def test_one_linear_layer_of_qwen3_5():
    assert QWEN.unit_bytes(Storage(), 1).value == 4_268_032  # 73,728 of convolution and 1,048,576 float32
    convolution, recurrent = QWEN.tensors(1)
    assert sizes(convolution) == (3, 12_288)
    assert convolution.bytes(Storage()).value == 73_728
    assert sizes(recurrent) == (64, 128, 128)
    assert product(recurrent.shape).value == 1_048_576


@pytest.mark.parametrize(("recurrent", "all_layers"), [(FP32, 192_061_440), (BF16, 97_689_600)])
def test_the_45_linear_layers_of_qwen3_5(recurrent, all_layers):
    assert 45 * QWEN.unit_bytes(Storage(recurrent=recurrent), 1).value == all_layers


def test_the_formulas_in_symbols():
    assert QWEN.unit_bytes(Storage(), 1).symbols == (
        "(k − 1) · (2 · H_k · d_k + H_v · d_v) · s_conv + H_v · d_v · d_k · s_state"
    )
    assert Mamba2(n_groups=8, **MAMBA).unit_bytes(Storage(), 1).symbols == (
        "(k − 1) · (H · d + 2 · G · N) · s_conv + H · d · N · s_state"
    )


@pytest.mark.parametrize(
    ("groups", "tp", "columns"),
    [
        (8, 1, 128 * 64 + 2 * 8 * 128),
        (8, 8, 16 * 64 + 2 * 1 * 128),
        (8, 2, 64 * 64 + 2 * 4 * 128),
        (1, 4, 32 * 64 + 2 * 1 * 128),  # one group is copied to every rank
        (8, 16, 8 * 64 + 2 * 1 * 128),  # groups that TP does not divide: as many as ranks
        (9, 4, 32 * 64 + 2 * 1 * 128),
    ],
)
def test_mamba_2_splits_heads_and_copies_groups_that_do_not_divide(groups, tp, columns):
    cache = Mamba2(n_groups=groups, **MAMBA)
    assert sizes(cache.tensors(tp)[0]) == (3, columns)
    assert cache.unit_bytes(Storage(), tp).value == columns * 3 * 2 + (128 // tp) * 64 * 128 * 4


def test_what_tensor_parallelism_splits():
    assert QWEN.split_heads == (16, 64)
    assert Mamba2(n_groups=8, **MAMBA).split_heads == (128, 8)


def test_a_kernel_of_one_keeps_no_convolution_state():
    one = GatedDeltaNet(
        linear_num_key_heads=16,
        linear_num_value_heads=64,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        conv_kernel=1,
    )
    assert one.unit_bytes(Storage(), 1).value == 1_048_576 * 4


def test_a_request_holds_one_state_whatever_its_context():
    assert QWEN.growth is Growth.CONSTANT
    assert QWEN.units(1) == QWEN.units(100_000) == 1
    assert QWEN.units(symbol("T", 5)).value == 1
    assert QWEN.bound is None


def test_the_format_named_is_that_of_the_recurrent_state():
    assert QWEN.stored_in(Storage(recurrent=BF16)) is BF16
    assert QWEN.stored_in(Storage(kv=NVFP4)) is FP32
    assert LFM2.stored_in(Storage(recurrent=FP32)) is BF16, "there is a convolution only"


@pytest.mark.parametrize(
    ("storage", "accepted"),
    [
        (Storage(kv=NVFP4), True),
        (Storage(recurrent=BF16, convolution=FP8), True),
        (Storage(recurrent=NVFP4), False),
        (Storage(convolution=FP8_INDEX), False),
    ],
)
def test_states_have_no_scales(storage, accepted):
    assert QWEN.accepts(storage) is accepted


@pytest.mark.parametrize(("tp", "accepted"), [(1, True), (16, True), (3, False), (32, False)])
def test_the_engines_share_out_both_kinds_of_heads_evenly(tp, accepted):
    assert QWEN.accepts_tp(tp) is accepted


@pytest.mark.parametrize(
    ("groups", "tp", "accepted"), [(8, 8, True), (8, 16, False), (1, 16, True), (1, 3, False), (6, 4, False)]
)
def test_the_engines_take_groups_that_divide_or_a_single_one(groups, tp, accepted):
    assert Mamba2(n_groups=groups, **MAMBA).accepts_tp(tp) is accepted


NEMOTRON_H = Mamba2(n_groups=8, **MAMBA)
JAMBA = Mamba1(conv_kernel=4, intermediate_size=8_192, state_size=16)
FALCON = Mamba1(conv_kernel=4, intermediate_size=8_192, state_size=16)
KIMI = KDA(conv_kernel=4, linear_num_heads=32, linear_head_dim=128)
GRIFFIN = RGLRU(conv_kernel=4, lru_width=2_560)
WORLD = RWKV5(hidden_size=2_560, num_heads=40, head_dim=64)


@pytest.mark.parametrize(
    ("cache", "layers", "shapes", "all_layers"),
    [
        (QWEN, 45, [(3, 12_288), (64, 128, 128)], 192_061_440),  # Qwen3.5-397B-A17B
        (KIMI, 20, [(3, 4_096)] * 3 + [(32, 128, 128)], 43_417_600),  # Kimi-Linear
        (NEMOTRON_H, 24, [(3, 10_240), (128, 64, 128)], 102_137_856),  # Nemotron-H-8B
        (JAMBA, 28, [(3, 8_192), (8_192, 16)], 16_056_320),  # Jamba-v0.1
        (FALCON, 64, [(3, 8_192), (8_192, 16)], 36_700_160),  # falcon-mamba-7b
        (LinearAttention(num_heads=64, head_dim=128), 70, [(64, 128, 128)], 293_601_280),  # MiniMax-M1
        (LinearAttention(num_heads=16, head_dim=128), 16, [(16, 128, 128)], 16_777_216),  # Ring-mini-linear
        (LFM2, 18, [(2, 2_048)], 147_456),  # LFM2-8B
        (GRIFFIN, 18, [(3, 2_560), (2_560,)], 460_800),  # recurrentgemma-2b
        (WORLD, 32, [(2_560,), (2_560,), (40, 64, 64)], 21_299_200),  # rwkv-5-world-3b
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_published_models_in_16_bit_with_float32_recurrence(cache, layers, shapes, all_layers):
    assert [sizes(tensor) for tensor in cache.tensors(1)] == shapes
    plan = ModelPlan(layers=((cache,),) * layers)
    assert footprint(plan, Storage(), 1).amounts(100_000, 1).constant_bytes.value == all_layers


def test_all_in_16_bit():
    assert 24 * NEMOTRON_H.unit_bytes(Storage(recurrent=BF16), 1).value == 51_806_208


@pytest.mark.parametrize(
    ("cache", "shapes"),
    [
        (QWEN, [(3, 3_072), (16, 128, 128)]),
        (KIMI, [(3, 1_024)] * 3 + [(8, 128, 128)]),
        (JAMBA, [(3, 2_048), (2_048, 16)]),
        (LinearAttention(num_heads=64, head_dim=128), [(16, 128, 128)]),
        (LFM2, [(2, 512)]),
        (GRIFFIN, [(3, 640), (640,)]),
        (WORLD, [(640,), (640,), (10, 64, 64)]),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_four_ranks_share_heads_and_widths(cache, shapes):
    assert [sizes(tensor) for tensor in cache.tensors(4)] == shapes
    assert cache.unit_bytes(Storage(), 4).value * 4 == cache.unit_bytes(Storage(), 1).value
    assert cache.accepts_tp(4)
    assert not cache.accepts_tp(3)


def test_what_the_others_split():
    assert KIMI.split_heads == (32,)
    assert JAMBA.split_heads == (8_192,)
    assert LFM2.split_heads == (2_048,)
    assert GRIFFIN.split_heads == (2_560,)
    assert WORLD.split_heads == (2_560, 40)
