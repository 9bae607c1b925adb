import pytest

from calculator.caches import GatedDeltaNet, Growth, Mamba2
from calculator.explain import symbol
from calculator.formats import BF16, FP32, Storage

QWEN = GatedDeltaNet(
    linear_num_key_heads=16,
    linear_num_value_heads=64,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    conv_kernel=4,
)
MAMBA = {"mamba_num_heads": 128, "mamba_head_dim": 64, "state_size": 128, "conv_kernel": 4}


def test_one_linear_layer_of_qwen3_5():
    assert QWEN.unit_bytes(Storage(), 1).value == 4_268_032  # 73,728 of convolution and 1,048,576 float32
    assert QWEN.convolution_width(1).value * 3 * 2 == 73_728
    assert QWEN.recurrent_elements(1).value == 1_048_576


@pytest.mark.parametrize(("recurrent", "all_layers"), [(FP32, 192_061_440), (BF16, 97_689_600)])
def test_the_45_linear_layers_of_qwen3_5(recurrent, all_layers):
    assert 45 * QWEN.unit_bytes(Storage(recurrent=recurrent), 1).value == all_layers


def test_the_formulas_in_symbols():
    assert QWEN.unit_bytes(Storage(), 1).symbols == (
        "(2 · H_k · d_k + H_v · d_v) · (k − 1) · s_conv + H_v · d_v · d_k · s_state"
    )
    assert Mamba2(n_groups=8, **MAMBA).unit_bytes(Storage(), 1).symbols == (
        "(H · d + 2 · G · N) · (k − 1) · s_conv + H · d · N · s_state"
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
    assert cache.convolution_width(tp).value == columns
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
    assert QWEN.format_name(Storage(recurrent=BF16)) == "bf16"


@pytest.mark.parametrize(("tp", "accepted"), [(1, True), (16, True), (3, False), (32, False)])
def test_the_engines_share_out_both_kinds_of_heads_evenly(tp, accepted):
    assert QWEN.accepts_tp(tp) is accepted


@pytest.mark.parametrize(
    ("groups", "tp", "accepted"), [(8, 8, True), (8, 16, False), (1, 16, True), (1, 3, False), (6, 4, False)]
)
def test_the_engines_take_groups_that_divide_or_a_single_one(groups, tp, accepted):
    assert Mamba2(n_groups=groups, **MAMBA).accepts_tp(tp) is accepted
