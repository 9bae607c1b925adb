"""Groups, blocks, fit and requests."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as quick
from hypothesis import strategies as st

from calculator.caches import MLA, ChunkedLocal, FullAttention, SlidingWindow, SlidingWindowMLA
from calculator.engines.vllm import blocks
from calculator.engines.vllm.block_bytes import tensors
from calculator.engines.vllm.deepseek_v4 import least_padding
from calculator.engines.vllm.grouping import group_layers
from calculator.engines.vllm.hybrid import align
from calculator.engines.vllm.memory import available_bytes
from calculator.engines.vllm.parallel import layers_per_stage, num_kv_heads
from calculator.engines.vllm.pool import Stage, open_pool
from calculator.engines.vllm.settings import MambaMode, Settings
from calculator.engines.vllm.spec import SpecType
from calculator.errors import EngineError, FieldError
from calculator.formats import FP8, FP8_PER_TOKEN_HEAD, TURBOQUANT, Storage
from tests.engines.vllm import naive
from tests.engines.vllm.shapes import (
    C4,
    C4_STATE,
    C4I,
    C4I_STATE,
    C128,
    C128_STATE,
    CHUNK,
    CROSS,
    ENCODER,
    FULL,
    GDN,
    HEADS,
    HIDDEN,
    INDEX,
    LATENT,
    QWEN,
    RULES,
    SINK,
    V4_WINDOW,
    WINDOW,
    spec,
    v4,
)

GIB = 2**30
HALF = FullAttention(num_kv_heads=8, head_size=64, head_size_v=64)


def summary(groups):
    return [(group.spec.type, group.num_layers, group.container) for group in groups]


def pool(groups, available, **settings):
    return open_pool([Stage(groups=tuple(groups), available_bytes=available)], Settings(**settings), RULES)


def test_equal_layers_are_one_group():
    assert summary(group_layers([spec()] * 3, RULES)) == [(SpecType.FULL, 3, False)]
    assert group_layers([], RULES) == ()


def test_v_of_another_size_does_not_keep_layers_apart():
    groups = group_layers([spec(), spec(FullAttention(num_kv_heads=8, head_size=128, head_size_v=64))], RULES)
    assert summary(groups) == [(SpecType.FULL, 2, False)]
    assert groups[0].page.value == 65_536


@pytest.mark.parametrize(
    "layers",
    [
        [spec(), spec(HALF)],
        [spec(LATENT, 64, cache_dtype="auto"), spec(INDEX, 64)],
        [spec(LATENT, 64), spec(FULL, 64)],
        [spec(), spec(LATENT, 16)],
        [spec(CROSS), spec(CROSS, storage=Storage(kv=FP8))],
        [
            spec(WINDOW),
            spec(SlidingWindow(num_kv_heads=4, head_size=64, head_size_v=64, sliding_window=1024)),
        ],
        [
            spec(CHUNK),
            spec(ChunkedLocal(num_kv_heads=4, head_size=64, head_size_v=64, attention_chunk_size=8192)),
        ],
        [spec(GDN), spec(GDN, storage=Storage(recurrent=FP8))],
        [v4(C4_STATE, 4), spec(C4I_STATE, 4, cache_dtype="other")],
        [spec(FULL, storage=Storage(kv=TURBOQUANT[0])), spec(FULL)],
    ],
)
def test_one_type_of_different_pages_is_a_container(layers):
    (group,) = group_layers(layers, RULES)
    assert group.container
    assert group.page.value == sum(layer.page_size_bytes for layer in layers)
    assert tensors([group]) == tuple(group.page_counts.items())


@pytest.mark.parametrize(
    ("windows", "full", "sizes"),
    [  # formulas.md 4.2
        (40, 8, [8] * 6),
        (12, 13, [12, 13]),
        (42, 8, [7] * 6 + [8]),
    ],
)
def test_windows_beside_full_attention(windows, full, sizes):
    groups = group_layers([spec(WINDOW)] * windows + [spec()] * full, RULES)
    assert [group.num_layers for group in groups] == sizes
    assert max(sizes) * 65_536 == blocks.bytes_per_block(groups, Settings(), RULES).value


def test_a_group_takes_every_so_manyth_layer():
    groups = group_layers([spec(WINDOW)] * 4 + [spec()] * 2, RULES)
    assert [group.members[0][1] for group in groups] == [(0, 2), (1, 3), (4, 5)]


def test_smaller_pages_get_longer_blocks():
    groups = group_layers([spec(WINDOW), spec(HALF)], RULES)
    assert [group.spec.block_size for group in groups] == [16, 32]


def test_hidden_states_follow_with_the_common_page():
    groups = group_layers([spec(WINDOW), spec(), spec(HIDDEN)], RULES)
    assert summary(groups)[-1] == (SpecType.HIDDEN_STATE, 1, False)
    assert (groups[-1].spec.block_size, groups[-1].page.value) == (2, 65_536)


def test_pages_that_do_not_divide_are_refused():
    with pytest.raises(EngineError, match="49,152"):
        group_layers([spec(WINDOW), spec(FullAttention(num_kv_heads=8, head_size=96, head_size_v=96))], RULES)


def test_a_page_that_does_not_grow_with_the_block_is_refused():
    with pytest.raises(EngineError, match="longer blocks do not help"):
        group_layers([spec(page_size_padded=70_000), spec(WINDOW, page_size_padded=140_000)], RULES)


def test_an_aligned_page_that_does_not_grow_evenly_is_refused():
    small = spec(MLA(kv_lora_rank=1, qk_rope_head_dim=0), alignment=576)
    window = spec(SlidingWindow(num_kv_heads=1, head_size=18, head_size_v=18, sliding_window=64))
    with pytest.raises(EngineError, match="longer blocks do not help"):
        group_layers([small, window], RULES)


def test_hidden_states_alone_are_refused():
    other = spec(HIDDEN, 32, cache_dtype="fp8")
    with pytest.raises(EngineError, match="hidden-state"):
        group_layers([spec(HIDDEN), other], RULES)


def test_encoder_only_layers_of_different_shapes_are_refused():
    with pytest.raises(EngineError, match="encoder-only"):
        group_layers([spec(ENCODER), spec(ENCODER, storage=Storage(kv=FP8))], RULES)


def test_without_the_hybrid_manager_windows_keep_every_token():
    layers = [spec(WINDOW)] * 40 + [spec()] * 8
    groups = group_layers(layers, RULES, hybrid_manager=False)
    assert summary(groups) == [(SpecType.FULL, 48, False)]
    assert blocks.request_bytes(groups, Settings(max_model_len=131_072), RULES).value == 25_769_803_776
    same = [spec(WINDOW)] * 2
    assert summary(group_layers(same, RULES, hybrid_manager=False)) == [(SpecType.SLIDING_WINDOW, 2, False)]


def test_without_the_hybrid_manager_a_chunk_loses_its_scales():
    scaled = Storage(kv=FP8_PER_TOKEN_HEAD)
    (group,) = group_layers([spec(CHUNK, storage=scaled), spec(storage=scaled)], RULES, hybrid_manager=False)
    assert [layer.page_size_bytes for layer, _ in group.members] == [32_768, 33_792]
    (plain,) = group_layers([spec(CHUNK), spec()], RULES, hybrid_manager=False)
    assert not plain.container


def test_without_the_hybrid_manager_v4_windows_become_mla():
    (group,) = group_layers([v4(V4_WINDOW, 64), v4(C4, 256)], RULES, hybrid_manager=False)
    assert [layer.block_size for layer, _ in group.members] == [256, 256]


def test_without_the_hybrid_manager_what_stays_mixed_is_refused():
    with pytest.raises(EngineError, match="Leave it on"):
        group_layers([spec(GDN), spec()], RULES, hybrid_manager=False)
    with pytest.raises(EngineError, match="Leave it on"):
        group_layers([spec(GDN), spec(WINDOW)], RULES, hybrid_manager=False)


def test_two_windows_as_full_attention_are_refused():
    other = spec(SlidingWindow(**HEADS, sliding_window=64))
    with pytest.raises(EngineError, match="64, 1024"):
        group_layers([spec(), spec(WINDOW), other], RULES, hybrid_manager=False)


def test_a_window_and_a_chunk_as_full_attention_are_a_container():
    (group,) = group_layers([spec(), spec(WINDOW), spec(CHUNK)], RULES, hybrid_manager=False)
    assert group.container


FLASH = [0, 0] + [4, 128] * 20 + [4]
PRO = [128 if layer % 2 == 0 else 4 for layer in range(61)]
SPECS = {
    0: [v4(V4_WINDOW, 64)],
    4: [v4(V4_WINDOW, 64), v4(C4I_STATE, 4), v4(C4I, 256), v4(C4_STATE, 4), v4(C4, 256)],
    128: [v4(V4_WINDOW, 64), v4(C128_STATE, 8), v4(C128, 256)],
}


@pytest.mark.parametrize(
    ("ratios", "memory", "per_block", "num_blocks", "request_bytes"),
    [  # formulas.md 4.5
        (FLASH, 60 * GIB, 1_051_776, 61_253, 7_835_731_200),
        (PRO, 40 * GIB, 1_482_048, 28_979, 11_041_257_600),
    ],
)
def test_deepseek_v4(ratios, memory, per_block, num_blocks, request_bytes):
    groups = group_layers([layer for ratio in ratios for layer in SPECS[ratio]], RULES)
    found = pool(groups, memory, max_model_len=1_048_576)
    assert found.bytes_per_block[0].value == per_block
    assert found.num_blocks.value == num_blocks
    assert found.request_bytes[0].value == request_bytes


def test_least_padding_prefers_the_larger():
    assert least_padding([21, 43, 21, 20], 21) == 22
    assert least_padding([30, 61, 30, 31], 30) == 31
    assert least_padding([2, 2], 2) == 2


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        ([v4(V4_WINDOW, 64), v4(C4, 256), spec()], "full_attention"),
        ([v4(V4_WINDOW, 64), v4(C4, 256), v4(C128, 128)], "one block size"),
        ([v4(V4_WINDOW, 64), v4(C128, 256)], "37,440"),
        (
            [
                v4(V4_WINDOW, 64),
                v4(C4, 256),
                v4(C4I, 256),
                v4(C4_STATE, 4),
                v4(C4I_STATE, 4),
                v4(C4I_STATE, 4),
            ],
            "equally many",
        ),
        (
            [
                v4(V4_WINDOW, 64),
                v4(SlidingWindowMLA(head_size=512, qk_rope_head_dim=64, sliding_window=64), 64),
            ],
            "one block size",
        ),
    ],
)
def test_deepseek_v4_refusals(layers, reason):
    with pytest.raises(EngineError, match=reason):
        group_layers(layers, RULES)


@pytest.mark.parametrize(
    ("available", "num_blocks"),
    [(56 * GIB, 28_672), (56 * 10**9, 26_702), (56 * 2**20, 28)],
)
def test_blocks_of_llama(available, num_blocks):
    found = pool(group_layers([spec()] * 32, RULES), available, max_model_len=16)
    assert (found.num_blocks.value, found.usable_blocks.value) == (num_blocks, num_blocks - 1)


@pytest.mark.parametrize(
    ("context", "concurrency", "whole"), [(131_072, 3.5, 3), (2_048, 224, 223), (2_000, 229.376, 229)]
)
def test_requests_of_llama(context, concurrency, whole):
    found = pool(group_layers([spec()] * 32, RULES), 56 * GIB, max_model_len=context)
    assert float(found.concurrency) == concurrency
    assert found.whole_requests.value == whole


def test_starcoder2_as_in_the_engines_log():
    """market.md: 769 blocks per request, 2,198,512 tokens, 178.68x."""
    layer = spec(SlidingWindow(num_kv_heads=2, head_size=128, head_size_v=128, sliding_window=4096))
    groups = group_layers([layer] * 30, RULES)
    # floor(n / 769 · 16384) of the printed tokens gives the number of blocks
    found = pool(groups, 0, max_model_len=16_384, num_gpu_blocks_override=137_407)
    assert found.blocks_per_request.value == 769
    assert round(float(found.concurrency), 2) == 178.68


def test_a_request_that_does_not_fit_and_the_longest_that_does():
    found = pool(group_layers([spec()] * 32, RULES), 8 * GIB, max_model_len=131_072)
    assert (found.fits, found.longest_context) == (False, 65_536)
    fitted = pool(
        group_layers([spec()] * 32, RULES), 8 * GIB, max_model_len=131_072, auto_fit_max_model_len=True
    )
    assert (fitted.fits, fitted.settings.max_model_len) == (True, 65_536)
    with pytest.raises(EngineError, match="single token"):
        pool(group_layers([spec()], RULES), 100, auto_fit_max_model_len=True)
    assert pool(group_layers([spec()], RULES), 0).longest_context == 0


def test_a_number_of_blocks_replaces_the_memory():
    found = pool(group_layers([spec()] * 2, RULES), 1, max_model_len=160, num_gpu_blocks_override=10)
    assert (found.fits, found.num_blocks.value) == (True, 10)
    assert not pool(group_layers([spec()] * 2, RULES), 1, max_model_len=161, num_gpu_blocks_override=10).fits


def test_a_model_without_a_cache():
    found = pool([], 100, num_gpu_blocks_override=7)
    assert (found.fits, found.stages[0].available_bytes) == (True, 100)
    assert blocks.num_blocks([], Settings(), RULES, 5).value == 1
    assert (blocks.bytes_per_block([], Settings(), RULES).value, tensors([])) == (0, ())
    with pytest.raises(EngineError, match="no block"):
        _ = found.concurrency


def test_requests_without_blocks_cannot_be_counted():
    found = pool(group_layers([spec(CROSS)], RULES), GIB, max_num_encoder_input_tokens=0)
    with pytest.raises(EngineError, match="no block"):
        _ = found.concurrency


def test_sinks_take_blocks_for_good():
    found = pool(group_layers([spec(SINK)], RULES), 165 * 65_536, max_model_len=160)
    assert (found.usable_blocks.value, found.sink_blocks) == (164, 4)
    assert found.whole_requests.value == 16


def test_stages_and_a_v4_group_that_one_has_nothing_of():
    layers = [layer for ratio in (4, 4, 128, 128) for layer in SPECS[ratio]]
    groups = group_layers(layers, RULES)
    first = frozenset(range(10))
    halves = [
        Stage(groups=tuple(group.on_stage(part) for group in groups), available_bytes=GIB)
        for part in (first, frozenset(range(10, len(layers))))
    ]
    found = open_pool(halves, Settings(max_model_len=1_000), RULES)
    assert [group.present for group in halves[0].groups].count(False) == 1
    counts = [blocks.num_blocks(stage.groups, Settings(), RULES, GIB).value for stage in halves]
    assert found.num_blocks.value == min(counts)


@quick(max_examples=30)
@given(st.lists(st.sampled_from([spec(), spec(HALF)]), min_size=1, max_size=6), st.integers(0, 10**7))
def test_blocks_are_what_fits_into_the_memory(layers, available):
    groups = group_layers(layers, RULES)
    count = blocks.num_blocks(groups, Settings(), RULES, available).value
    assert count == naive.pool_blocks(available, [layer.page_size_bytes for layer in layers])
    assert count * blocks.bytes_per_block(groups, Settings(), RULES).value <= available


@quick(max_examples=30)
@given(
    st.lists(st.sampled_from([spec(), spec(WINDOW), spec(HALF), spec(CHUNK)]), min_size=1, max_size=30),
    st.integers(0, 2**33),
    st.integers(1, 200_000),
)
def test_the_longest_context_fits_and_one_more_does_not(layers, available, context):
    groups = group_layers(layers, RULES)
    settings = Settings(max_model_len=context)
    longest = blocks.longest_that_fits(groups, settings, RULES, available)
    contexts = [length for length in (longest, longest + 1) if 0 < length <= context]
    fits = [blocks.fits(groups, Settings(max_model_len=length), RULES, available) for length in contexts]
    assert fits == [length <= longest for length in contexts]
    assert sum(group.num_layers for group in groups) == len(layers)
    needed = [blocks.request_bytes(groups, Settings(max_model_len=n), RULES).value for n in (1, context)]
    assert all(shorter <= longer for shorter, longer in pairwise(needed))


def test_attention_beside_state():
    """formulas.md 4.6: Qwen3.5-397B-A17B."""
    state = int(spec(GDN).page.value)
    sizes = {"token_page": int(spec(QWEN, 1).page.value), "state_page": state, "mamba_chunk_size": 64}
    found = align(**sizes, block_size=16, kernel_block_size=16, mode=MambaMode.NONE)
    assert (found.block_size.value, found.mamba_block_size) == (2_096, None)
    assert found.mamba_page_padded.value == 4_292_608
    exact = align(
        token_page=1_024,
        state_page=16_384,
        block_size=16,
        kernel_block_size=16,
        mode=MambaMode.ALIGN,
        mamba_chunk_size=64,
    )
    assert (exact.mamba_block_size.value, exact.mamba_page_padded) == (16, None)
    none = align(**{**sizes, "state_page": 0}, block_size=16, kernel_block_size=16, mode=MambaMode.ALL)
    assert (none.block_size.value, none.mamba_page_padded) == (16, None)


def test_memory_of_the_article():
    found = available_bytes(
        total_bytes=80 * GIB,
        gpu_memory_utilization=0.9,
        weights_bytes=15 * GIB,
        activation_bytes=GIB,
    )
    assert found.value == 60_129_542_144
    assert available_bytes(total_bytes=1, gpu_memory_utilization=1, kv_cache_memory_bytes=7).value == 7
    with pytest.raises(FieldError, match="-1 is outside"):
        available_bytes(total_bytes=-1, gpu_memory_utilization=0.9)
    with pytest.raises(FieldError, match=r"1\.1 is outside"):
        available_bytes(total_bytes=1, gpu_memory_utilization=1.1)


@pytest.mark.parametrize(
    ("layers", "stages", "expected"), [(61, 4, (15, 15, 16, 15)), (10, 4, (2, 3, 3, 2)), (7, 1, (7,))]
)
def test_layers_of_stages(layers, stages, expected):
    assert layers_per_stage(layers, stages) == expected


def test_stages_have_bounds():
    with pytest.raises(FieldError, match="0 is outside"):
        layers_per_stage(3, 0)
    with pytest.raises(FieldError, match="-1 is outside"):
        layers_per_stage(-1, 1)


@given(st.integers(1, 128), st.integers(1, 64))
def test_kv_heads_of_a_rank(total, tp):
    heads = num_kv_heads(total, tp).value
    assert heads * tp >= total - total % tp
    assert num_kv_heads(total, tp, use_mla=True).value == 1
