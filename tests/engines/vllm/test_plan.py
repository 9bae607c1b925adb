"""From a model plan to an allocation."""

import pytest

from calculator.caches import (
    KDA,
    RGLRU,
    ChunkedLocal,
    CompressorState,
    CrossAttention,
    FullAttention,
    RingBuffer,
    SinkAttention,
    SparseIndexKey,
)
from calculator.engines.vllm import MambaMode, Settings, allocate
from calculator.engines.vllm.spec import SpecType
from calculator.errors import EngineError, FieldError
from calculator.formats import (
    BF16,
    FP4_E2M1,
    FP8,
    FP8_DS_MLA,
    FP8_PER_TOKEN_HEAD,
    FP8_V4,
    INT4_PER_TOKEN_HEAD,
    NVFP4,
    NVFP4_DS_MLA,
    TURBOQUANT,
    Storage,
)
from calculator.model import ModelPlan
from tests.engines.vllm.shapes import (
    CROSS,
    ENCODER,
    FULL,
    GDN,
    HEADS,
    INDEX,
    LATENT,
    MAMBA,
    QWEN,
    SINK,
    V4_LAYERS,
    WINDOW,
)

VERSION = "0.22.0"
GIB = 2**30
WIDE = {**HEADS, "head_size": 192}


def plan(*layers):
    return ModelPlan(layers=tuple(layer if isinstance(layer, tuple) else (layer,) for layer in layers))


def allocated(layers, kv=BF16, **settings):
    return allocate(plan(*layers), Storage(kv=kv), Settings(**settings), VERSION)


@pytest.mark.parametrize(
    ("cache", "page"),
    [
        (FullAttention(**WIDE), 81_920),
        (ChunkedLocal(**WIDE, attention_chunk_size=64), 98_304),
        (CrossAttention(**WIDE), 98_304),
    ],
)
def test_v_of_another_size_counts_only_where_the_engine_has_one(cache, page):
    """formulas-newest.md 3.1: chunked and cross attention have it only in later versions."""
    assert allocated([cache]).bytes_per_block.value == page


def test_gemma_like():
    """formulas.md 4.4."""
    found = allocated([*[WINDOW] * 40, *[FULL] * 8], max_model_len=131_072, available_memory_bytes=20 * GIB)
    assert found.bytes_per_block.value == 524_288
    assert found.pool.num_blocks.value == 40_960
    assert found.pool.blocks_per_request.value == 11_077
    assert found.request_bytes.value == 5_807_538_176
    assert [cap.value if cap else None for cap in found.admission_caps()] == [577] * 5 + [None]


@pytest.mark.parametrize(
    ("mode", "caching", "blocks", "state_block"),
    [
        (None, None, 2_096, 262_144),
        (None, True, 2_096, 2_096),
        (MambaMode.ALIGN, None, 2_096, 2_096),
        (MambaMode.ALL, True, 2_096, 2_096),
        (MambaMode.ALL, False, 2_096, 262_144),
        (MambaMode.NONE, None, 2_096, 262_144),
    ],
)
def test_attention_beside_state(mode, caching, blocks, state_block):
    found = allocated(
        [*[GDN] * 3, QWEN] * 15,
        max_model_len=262_144,
        mamba_cache_mode=mode,
        enable_prefix_caching=caching,
        available_memory_bytes=60 * GIB,
    )
    assert found.settings.block_size == blocks
    assert [group.spec.block_size for group in found.groups] == [state_block] * 3 + [blocks]
    assert found.bytes_per_block.value == 64_389_120


def test_mamba_may_keep_a_state_at_every_block():
    found = allocated([MAMBA, FULL], enable_prefix_caching=True, max_model_len=10_000)
    assert found.settings.mamba_cache_mode is MambaMode.ALL
    assert found.groups[0].spec.block_size == found.settings.block_size
    alone = allocated([MAMBA], enable_prefix_caching=True)
    assert alone.groups[0].spec.block_size == 16


def test_drafted_tokens_widen_a_convolution():
    plain, drafting = (allocated([GDN], num_speculative_blocks=count) for count in (0, 3))
    assert plain.groups[0].page.value == 4_268_032
    assert drafting.groups[0].page.value == 4_268_032 + 3 * 12_288 * 2
    kda = KDA(conv_kernel=4, linear_num_heads=32, linear_head_dim=128)
    unchanged = allocated([kda], num_speculative_blocks=3)
    assert unchanged.groups[0].page.value == 2_170_880


@pytest.mark.parametrize(
    ("kv", "pages"),
    [(BF16, (73_728, 8_448)), (FP8, (41_984, 8_448)), (FP8_DS_MLA, (41_984, 8_448))],
)
def test_sparse_latents_take_the_packed_form(kv, pages):
    found = allocated([(LATENT, INDEX)] * 2, kv)
    assert tuple(spec.page_size_bytes for spec in found.different_specs()) == pages
    assert found.settings.block_size == 64
    assert found.groups[0].container


def test_dense_latents_take_plain_fp8():
    assert allocated([LATENT], FP8).bytes_per_block.value == 36_864
    assert allocated([LATENT], FP8, block_size=16).bytes_per_block.value == 9_216


def test_deepseek_v4_flash():
    layers = [V4_LAYERS[ratio] for ratio in [0, 0] + [4, 128] * 20 + [4]]
    found = allocated(layers, FP8, max_model_len=1_048_576, available_memory_bytes=60 * GIB)
    assert found.bytes_per_block.value == 1_051_776
    assert found.pool.num_blocks.value == 61_253
    assert found.pool.blocks_per_request.value == 7_065
    assert found.request_bytes.value == 7_835_731_200
    assert found.held_blocks(1_000_000) < found.request_bytes.value // found.bytes_per_block.value


def test_turboquant_leaves_both_ends():
    found = allocated([FULL] * 32, TURBOQUANT[1], max_model_len=32_768)
    assert found.bytes_per_block.value == 742_400
    assert allocated([FULL], TURBOQUANT[1]).groups[0].spec.type is SpecType.TURBOQUANT
    hybrid = allocated([GDN, QWEN], TURBOQUANT[1])
    assert {spec.type for spec in hybrid.different_specs()} == {SpecType.MAMBA, SpecType.TURBOQUANT}


def test_encoder_only_layers_get_nothing():
    found = allocated([ENCODER], available_memory_bytes=GIB)
    assert (found.groups, found.held_bytes(100), found.request_bytes.value) == ((), 0, 0)
    assert [line.value for line in found.derivations()] == [0, 0]


def test_cross_attention_counts_encoder_tokens():
    found = allocated([(FULL, CROSS)], max_num_encoder_input_tokens=1_500, max_model_len=448)
    assert found.held_blocks(0) == 0
    assert found.held_blocks(448) == 28 + 94


def test_pipeline_stages_share_the_tightest_pool():
    found = allocated(
        [FULL] * 61, pipeline_parallel_size=2, max_model_len=32_768, available_memory_bytes=40 * GIB
    )
    assert [page.value for page in found.pool.bytes_per_block] == [31 * 65_536, 30 * 65_536]
    assert found.pool.num_blocks.value == 21_140
    assert found.widest is found.stages[0]


def test_context_parallelism_shares_tokens():
    found = allocated([LATENT], tensor_parallel_size=8, decode_context_parallel_size=8, max_model_len=163_840)
    assert found.request_bytes.value == 320 * 73_728
    assert found.held_blocks(163_840) == 320


def test_sinks():
    found = allocated([SINK], available_memory_bytes=GIB)
    assert found.pool.sink_blocks == 4


def test_a_prompt_peaks_before_decoding():
    found = allocated([WINDOW], max_num_batched_tokens=2_048, max_model_len=20_000)
    assert found.prefill_peak_bytes(20_000) > found.held_bytes(20_000)


def test_every_quantity_has_its_derivation():
    found = allocated([FULL] * 2, available_memory_bytes=GIB)
    lines = {line.quantity: line for line in found.derivations()}
    page = lines["vllm.specs.0.full_attention.page_size_bytes"]
    assert page.expression.numbers == "16 · 8 · (128 + 128) · 2"
    assert lines["vllm.bytes_per_block"].expression.symbols == "page · L_group" or page.value == 65_536
    assert lines["vllm.num_blocks"].value == found.pool.num_blocks.value
    assert all(VERSION in line.source for line in lines.values())
    assert allocated([FULL]).pool is None


def test_full_attention_grows_and_a_window_does_not():
    found = allocated([WINDOW, FULL])
    assert [found.grows(group) for group in found.groups] == [False, True]


def test_padding_is_the_difference():
    spec = allocated([FULL], FP8_PER_TOKEN_HEAD).groups[0].spec
    assert allocated([FULL]).padding_bytes(spec).value == 1_024


@pytest.mark.parametrize(
    ("layers", "kv", "settings", "reason"),
    [
        ([RGLRU(conv_kernel=4, lru_width=8)], BF16, {}, "rg_lru"),
        ([(FULL, SparseIndexKey(index_head_dim=128))], BF16, {}, "sparse_index_key"),
        ([FULL], FP4_E2M1, {}, "fp4_e2m1"),
        ([FULL], FP8_DS_MLA, {}, "fp8_ds_mla"),
        ([LATENT], NVFP4, {}, "nvfp4"),
        ([LATENT], NVFP4_DS_MLA, {}, "nvfp4_ds_mla"),
        ([FULL], INT4_PER_TOKEN_HEAD, {}, "int4_per_token_head"),
        ([RingBuffer(ring_width=512, ring_tokens=8)], FP8, {}, "ring_buffer"),
        ([LATENT], FP8_DS_MLA, {}, "indexer"),
        ([LATENT], FP8_V4, {}, "fp8_v4"),
        ([WINDOW], TURBOQUANT[0], {}, "sliding_window"),
        ([V4_LAYERS[4]], BF16, {}, "FP8 only"),
        ([V4_LAYERS[4]], FP8, {"block_size": 30}, "30"),
        ([(*V4_LAYERS[4], CompressorState(state_width=8, sliding_window=9))], FP8, {}, "window of 9"),
        ([SinkAttention(**HEADS, sink_len=10)], BF16, {}, "10 tokens"),
        ([SinkAttention(**HEADS, sink_len=0)], BF16, {}, "sinks"),
        ([FULL], BF16, {"tensor_parallel_size": 3}, "TP 3"),
        ([FULL], BF16, {"pipeline_parallel_size": 2}, "stage"),
        ([FULL, ()], BF16, {"pipeline_parallel_size": 2}, "no cache"),
        ([LATENT], BF16, {"tensor_parallel_size": 4, "decode_context_parallel_size": 3}, "multiple"),
        ([FULL], BF16, {"tensor_parallel_size": 8, "decode_context_parallel_size": 2}, "above 8"),
        ([FULL], BF16, {"tensor_parallel_size": 16, "decode_context_parallel_size": 4}, "at most"),
        ([WINDOW], BF16, {"tensor_parallel_size": 16, "decode_context_parallel_size": 2}, "forget"),
        ([GDN], BF16, {"tensor_parallel_size": 2, "decode_context_parallel_size": 2}, "recurrent"),
        ([FULL, CROSS], BF16, {"prefill_context_parallel_size": 2}, "more than one group"),
    ],
)
def test_what_the_engine_refuses(layers, kv, settings, reason):
    with pytest.raises(EngineError, match=reason) as error:
        allocated(layers, kv, **settings)
    assert error.value.message("zh")


def test_gqa_under_context_parallelism():
    found = allocated([FULL], tensor_parallel_size=16, decode_context_parallel_size=2, max_model_len=320)
    assert found.request_bytes.value == 10 * 8_192


def test_an_unknown_version_is_named():
    with pytest.raises(FieldError, match=r"0\.22\.0"):
        allocate(plan(FULL), Storage(), Settings(), "9")
