"""Any model and settings through the engine: pools, sizes, notes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from calculator import catalogue
from calculator.caches import (
    KDA,
    MLA,
    ChunkedLocal,
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    EncoderOnlyAttention,
    FullAttention,
    GatedDeltaNet,
    IndexKey,
    LinearAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
    SlidingWindow,
    SlidingWindowMLA,
)
from calculator.engines.sglang import Settings, allocate, default_page_size
from calculator.engines.sglang.held import Family
from calculator.engines.sglang.state import state_shape
from calculator.errors import EngineError
from calculator.formats import BF16, FP4_E2M1, FP8, FP8_DS_MLA, FP8_V4, Storage
from calculator.model import ModelPlan

GIB = 2**30
FULL = FullAttention(num_kv_heads=8, head_size=128, head_size_v=128)
WINDOW = SlidingWindow(num_kv_heads=8, head_size=128, head_size_v=128, sliding_window=4096)
CHUNK = ChunkedLocal(num_kv_heads=8, head_size=128, head_size_v=128, attention_chunk_size=8192)
LATENT = MLA(kv_lora_rank=512, qk_rope_head_dim=64)
INDEX = IndexKey(index_head_dim=128)
DELTA = GatedDeltaNet(
    conv_kernel=4,
    linear_num_key_heads=16,
    linear_num_value_heads=64,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
)
KIMI = KDA(conv_kernel=4, linear_num_heads=32, linear_head_dim=128)
V4_WINDOW = SlidingWindowMLA(head_size=512, qk_rope_head_dim=64, sliding_window=128)
C4 = (
    V4_WINDOW,
    CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=4),
    CompressedIndexKey(index_head_dim=128, compress_ratio=4),
    CompressorState(state_width=2048, sliding_window=8),
)
C128 = (V4_WINDOW, CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=128))
FLASH = ModelPlan(layers=((V4_WINDOW,),) * 2 + (C4, C128) * 20 + (C4,))
PRO = ModelPlan(layers=(C128,) * 2 + (C4, C128) * 29 + (C4,))


def alike(*caches, layers=32):
    return ModelPlan(layers=(caches,) * layers)


def settings(**chosen):
    return Settings(**{"available_memory_bytes": 60 * GIB, "page_size": 64, **chosen})


def run(plan, kv=BF16, **chosen):
    return allocate(plan, Storage(kv=kv), settings(**chosen), "0.5.13")


def tokens(plan, kv=BF16, **chosen):
    return run(plan, kv, **chosen).tokens.value


@pytest.mark.parametrize(
    ("plan", "kv", "pool", "planned", "allocated"),
    [
        (alike(FULL), BF16, "MHATokenToKVPool", 131_072, 131_072),
        (alike(FULL), FP4_E2M1, "MHATokenToKVPoolFP4", 36_864, 36_864),
        (alike(LATENT, layers=61), BF16, "MLATokenToKVPool", 70_272, 70_272),
        (alike(LATENT, layers=60), FP4_E2M1, "MLATokenToKVPoolFP4", 19_440, 19_440),
        (alike(LATENT, INDEX, layers=61), FP8, "DSATokenToKVPool", 43_188, 48_068),
        (alike(LATENT, INDEX, layers=61), FP8_DS_MLA, "DSATokenToKVPool", 43_188, 48_068),
        (ModelPlan(layers=((DELTA,),) * 3 + ((FULL,),)), BF16, "HybridLinearKVPool", 4096, 4096),
        (ModelPlan(layers=((KIMI,),) * 3 + ((LATENT,),)), BF16, "HybridLinearKVPool", 1152, 1152),
        (ModelPlan(layers=((FULL,), (WINDOW,))), BF16, "SWAKVPool", 4096 * 1.8, 4096 * 1.8),
        (ModelPlan(layers=((WINDOW,),)), BF16, "SWAKVPool", 4096, 4096),
    ],
)
def test_every_model_gets_its_pool(plan, kv, pool, planned, allocated):
    got = run(plan, kv)
    assert got.pool == got.stages[0].pool.name == pool
    assert got.tightest.planned_bytes_per_token.value == planned
    assert got.tightest.allocated_bytes_per_token.value == allocated


def test_the_backend_decides_about_scales():
    plan = alike(LATENT, INDEX, layers=61)
    got = run(plan, FP8, dsa_backend="trtllm")
    assert got.tightest.allocated_bytes_per_token.value == 43_188
    assert got.notes == ()
    assert run(plan, FP8).notes[0][0] == "sglang.note_sparse"
    rocm = run(plan, FP8, dsa_backend="aiter", platform="hip")
    assert rocm.tightest.allocated_bytes_per_token.value == 43_188


def test_hisparse_keeps_more_index_keys_than_latents():
    plan = alike(LATENT, INDEX, layers=61)
    got = run(plan, FP8, hisparse_host_to_device_ratio=2)
    assert got.pool == "HiSparseDSATokenToKVPool"
    assert got.logical_tokens.value == 2 * got.tokens.value
    assert got.tightest.allocated_bytes_per_token.value == (656 + 2 * 132) * 61


def test_deepseek_v4():
    got = run(FLASH, FP8_V4, page_size=256)
    assert got.pool == "DeepSeekV4TokenToKVPool"
    assert got.tightest.planned_bytes_per_token.value == pytest.approx(15_897.45)
    assert (got.tokens.value, got.sizes.window.value) == (4_052_480, 405_248)
    assert got.allocated_bytes.value == 64_671_085_248
    assert [key for key, _ in got.notes] == ["sglang.note_v4_padding"]
    in_bf16 = run(FLASH, BF16, page_size=256)
    assert in_bf16.tokens.value == got.tokens.value
    assert "sglang.note_v4_rows" in dict(in_bf16.notes)
    assert tokens(PRO, FP8, page_size=256) == 2_719_232
    assert tokens(FLASH, FP8, page_size=256, speculative_num_draft_tokens=2) == 2_475_264
    assert tokens(FLASH, FP8, page_size=256, online_c128=True) == 8_257_792
    assert tokens(FLASH, FP8, page_size=256, hisparse_host_to_device_ratio=2) == 4_484_864
    narrow = tuple(
        tuple(
            replace(cache, index_head_dim=64) if isinstance(cache, CompressedIndexKey) else cache
            for cache in layer
        )
        for layer in FLASH.layers
    )
    for halves, key_bytes in ((False, 64 + 4), (True, 32 + 4)):  # DeepSeekV4IndexerPool.get_bytes_per_token
        of_keys = run(ModelPlan(layers=narrow), FP8, page_size=256, fp4_indexer=halves).stages[0].pool
        assert of_keys.buffers[3].dims[1] == 64 * key_bytes
    fp4 = run(FLASH, FP8, page_size=256, fp4_indexer=True)
    assert fp4.allocated_bytes.value == 63_309_365_952
    assert run(alike(V4_WINDOW, layers=2), page_size=256).family is Family.V4


def test_states_take_their_share_first():
    got = run(catalogue.plan("qwen3.5-397b-a17b"), page_size=1)
    assert (got.states.slots.value, got.states.token_bytes.value) == (158, 34_078_801_920)
    assert got.states.per_request.value == 192_061_440
    assert got.tokens.value == 34_078_801_920 // 30_720
    assert got.requests.value == 52
    assert got.stages[0].pool.extra_bytes.value == 192_061_440
    off = run(catalogue.plan("qwen3.5-397b-a17b"), radix_cache=False, max_running_requests=64)
    assert (off.states.slots.value, off.requests.value) == (64, 64)
    extra = run(catalogue.plan("qwen3.5-397b-a17b"), mamba_extra_buffer=True, overlap_schedule=False)
    assert extra.requests.value == 158 // 4
    given = run(catalogue.plan("qwen3.5-397b-a17b"), max_mamba_cache_size=100)
    assert given.states.slots.value == 100


def test_every_pipeline_stage_prices_the_states_of_the_whole_model():
    plan = catalogue.plan("qwen3.5-397b-a17b")
    one, two = run(plan), run(plan, pipeline_parallel_size=2)
    assert two.states.per_request.value == one.states.per_request.value
    halves = [stage.pool.extra_bytes.value for stage in two.stages]
    assert sum(halves) == one.stages[0].pool.extra_bytes.value
    alone = ModelPlan(layers=((FULL,), (FULL,), (DELTA,), (FULL,)))
    first = run(alone, pipeline_parallel_size=2).stages[0].pool
    assert all(buffer.name in ("k_buffer", "v_buffer") for buffer in first.buffers)


def test_a_drafter_has_copies_of_states_for_every_request():
    got = run(catalogue.plan("qwen3.5-397b-a17b"), speculative_num_draft_tokens=4, max_running_requests=48)
    copies = {buffer.name: buffer.dims for buffer in got.stages[0].pool.buffers}
    assert copies["intermediate_ssm"] == (45, 23, 4, 64, 128, 128)
    assert got.requests.value == 22
    assert got.request_map.dims == (23, 131_072 + 4 + 4)


def test_the_tightest_stage_decides_for_all():
    plan = alike(LATENT, layers=61)
    got = run(plan, pipeline_parallel_size=4)
    assert [(stage.first, stage.end) for stage in got.stages] == [(0, 15), (15, 30), (30, 45), (45, 61)]
    assert (got.tightest.first, got.tightest.end) == (45, 61)
    assert got.tokens.value == 60 * GIB // (1152 * 16) // 64 * 64
    custom = run(plan, pipeline_parallel_size=2, stage_layers=(41, 20))
    assert (custom.tightest.first, custom.tightest.end) == (0, 41)


def test_windows_of_stages_and_their_ratio():
    plan = ModelPlan(layers=((FULL,), (WINDOW,), (WINDOW,), (CHUNK,)))
    got = run(plan, pipeline_parallel_size=2, swa_full_tokens_ratio=0.5)
    assert got.stages[0].pool.total_bytes.value > 0
    names = [{buffer.name for buffer in stage.pool.buffers} for stage in got.stages]
    assert names[0] - names[1] == {"full_k_buffer", "full_v_buffer"}
    assert got.attention_window == 8192
    two = ModelPlan(layers=((FULL,), (WINDOW,)))
    assert run(two, hierarchical_cache=True).sizes.window.value < run(two).tokens.value
    assert run(two).attention_window == 4095


@pytest.mark.parametrize(
    ("architecture", "more", "pool"),
    [
        ("Gemma4ForConditionalGeneration", {}, "SWAKVPool"),
        ("Gemma4UnifiedForConditionalGeneration", {}, "SWAKVPool"),
        ("GptOssForCausalLM", {"hierarchical_cache": True}, "SWAKVPool"),
        ("Gemma3ForConditionalGeneration", {}, "MHATokenToKVPool"),
        ("MistralForCausalLM", {}, "MHATokenToKVPool"),
        # server_args.py: a host cache switches the split off for these.
        ("MiMoV2FlashForCausalLM", {}, "SWAKVPool"),
        ("MiMoV2FlashForCausalLM", {"hierarchical_cache": True}, "MHATokenToKVPool"),
        ("Step3p7ForConditionalGeneration", {"hierarchical_cache": True}, "MHATokenToKVPool"),
    ],
)
def test_the_class_of_a_model_decides_about_its_window_pool(architecture, more, pool):
    """SGLang 0.5.13 is_hybrid_swa_model, disable_hybrid_swa_memory."""
    layers = ((FULL,), (WINDOW,)) * 16
    got = run(ModelPlan(layers=layers, architecture=architecture), **more)
    assert got.pool == pool
    if pool == "SWAKVPool":
        assert not got.notes
    else:
        assert got.tightest.planned_bytes_per_token.value == 131_072
        assert got.notes == (("sglang.note_no_window_pool", {"architecture": architecture}),)
    flagged = ModelPlan(layers=layers, architecture="OwnForCausalLM", hybrid_swa=True)
    assert run(flagged).pool == "SWAKVPool"


def test_without_a_class_windows_are_taken_to_have_a_pool_and_that_is_said():
    got = run(ModelPlan(layers=((FULL,), (WINDOW,)) * 16))
    assert (got.pool, got.notes) == ("SWAKVPool", (("sglang.note_window_pool", {}),))


def test_heads_are_split_over_attention_ranks_only():
    plan = alike(FULL)
    assert tokens(plan, tensor_parallel_size=8) == 8 * tokens(plan)
    assert tokens(plan, tensor_parallel_size=8, data_parallel_size=4) == 2 * tokens(plan)
    assert tokens(plan, tensor_parallel_size=8, data_parallel_size=2, context_parallel_size=4) == tokens(plan)
    latents = alike(LATENT)
    assert tokens(latents, tensor_parallel_size=8) == tokens(latents)
    workers = run(plan, tensor_parallel_size=8, data_parallel_size=4, max_running_requests=100)
    assert workers.requests.value == 25


def test_a_limit_of_tokens_is_page_aligned():
    assert tokens(alike(FULL), max_total_tokens=1_000) == 960
    assert tokens(alike(FULL), max_total_tokens=2**40) == 491_520


def test_embedding_models_keep_one_page():
    encoder = EncoderOnlyAttention(num_kv_heads=8, head_size=128, head_size_v=128)
    for got in (run(alike(encoder)), run(alike(FULL), prefill_only=True)):
        assert got.pool == "NoOpMHATokenToKVPool"
        assert got.stages[0].pool.buffers[0].dims == (64, 8, 128)


def test_fp4_stores_values_as_wide_as_keys():
    plan = alike(FullAttention(num_kv_heads=4, head_size=192, head_size_v=128), layers=48)
    got = run(plan, FP4_E2M1)
    assert got.tightest.planned_bytes_per_token.value == 35_328
    assert got.tightest.allocated_bytes_per_token.value == 41_472
    assert got.notes[0][0] == "sglang.note_wide_values"


def test_beside_recurrent_state_values_are_stored_as_wide_as_keys():
    # HybridLinearKVPool is not told v_head_dim, so its MHATokenToKVPool takes head_dim for V.
    attention = FullAttention(num_kv_heads=4, head_size=192, head_size_v=128)
    got = run(ModelPlan(layers=((DELTA,), (attention,)) * 2))
    assert got.tightest.planned_bytes_per_token.value == 2 * 4 * (192 + 128) * 2
    assert got.tightest.allocated_bytes_per_token.value == 2 * 4 * (192 + 192) * 2
    assert got.stages[0].pool.buffers[1].dims[1:] == (4, 192)
    assert got.notes[0][0] == "sglang.note_wide_values"


@pytest.mark.parametrize(("architecture", "value"), [("Step3p5ForCausalLM", 192), ("MiMoV2ForCausalLM", 128)])
@pytest.mark.parametrize("version", ["0.5.13", "0.5.23"])
def test_only_some_window_pools_are_told_the_width_of_values(architecture, value, version):
    """`is_hybrid_swa_compress`: the others' MHATokenToKVPool takes head_dim for V."""
    full = FullAttention(num_kv_heads=4, head_size=192, head_size_v=128)
    window = SlidingWindow(num_kv_heads=4, head_size=192, head_size_v=128, sliding_window=128)
    plan = ModelPlan(layers=((full,), (window,)), architecture=architecture)
    got = allocate(plan, Storage(), settings(swa_full_tokens_ratio=0.5), version)
    assert got.tightest.planned_bytes_per_token.value == 4 * (192 + 128) * 2 * 1.5
    assert got.tightest.allocated_bytes_per_token.value == 4 * (192 + value) * 2 * 1.5
    assert {buffer.dims[-1] for buffer in got.stages[0].pool.buffers} == {192, value}


def test_the_layout_of_rocm():
    got = run(alike(FULL), platform="hip", kv_cache_layout="vectorized_5d")
    assert len(got.stages[0].pool.buffers[0].dims) == 5


def test_figures_come_with_their_derivation():
    for plan, page in ((FLASH, 256), (catalogue.plan("qwen3.5-397b-a17b"), 64), (alike(FULL), 64)):
        got = run(plan, page_size=page)
        lines = got.derivations()
        assert all(line.expression.symbols and line.source.startswith("SGLang 0.5.13") for line in lines)
        buffers = [line.value for line in lines if line.quantity.startswith("sglang.buffers.")]
        assert sum(buffers) == got.allocated_bytes.value


@pytest.mark.parametrize("tp", [1, 2, 4])
@pytest.mark.parametrize(
    "cache",
    [
        DELTA,
        KIMI,
        Mamba2(conv_kernel=4, mamba_num_heads=128, mamba_head_dim=64, state_size=128, n_groups=8),
        Mamba2(conv_kernel=4, mamba_num_heads=128, mamba_head_dim=64, state_size=128, n_groups=1),
        Mamba1(conv_kernel=4, intermediate_size=8192, state_size=16),
        ShortConvolution(conv_kernel=3, hidden_size=2048),
        LinearAttention(num_heads=64, head_dim=128),
    ],
)
def test_states_weigh_what_their_kind_says(cache, tp):
    assert state_shape(cache, Storage(), tp).layer_bytes.value == cache.unit_bytes(Storage(), tp).value


few = hypothesis_settings(max_examples=30)  # each allocates a whole model
models = st.sampled_from(
    [
        alike(FULL),
        alike(LATENT, layers=7),
        alike(LATENT, INDEX, layers=9),
        ModelPlan(layers=((FULL,), (WINDOW,), (WINDOW,)) * 3),
        ModelPlan(layers=((DELTA,), (DELTA,), (FULL,)) * 2),
        FLASH,
    ]
)


def page_of(plan, otherwise):
    """The page that the plan needs, or another where any will do."""
    needed = default_page_size(plan, Storage())
    return otherwise if needed == 1 else needed


@few
@given(models, st.integers(10 * GIB, 200 * GIB), st.sampled_from([1, 16, 128, 256]))
def test_pools_stay_within_the_memory_but_for_scales_and_spare_pages(plan, memory, otherwise):
    page_size = page_of(plan, otherwise)
    got = run(plan, page_size=page_size, available_memory_bytes=memory)
    assert got.tokens.value % page_size == 0
    stage = got.stages[0]
    priced = stage.planned_bytes_per_token.value * got.tokens.value
    left = memory if got.states is None else got.states.token_bytes.value
    assert priced <= left
    assert left - priced < stage.planned_bytes_per_token.value * (page_size + 1)
    spare = sum(buffer.layers.value * buffer.item_bytes.value for buffer in stage.pool.buffers)
    pages = got.tokens.value // page_size
    assert got.allocated_bytes.value <= memory * 1.13 + 2 * spare + pages  # 656 against 576 bytes at the most


@few
@given(models, st.integers(10 * GIB, 100 * GIB), st.integers(0, 100 * GIB))
def test_more_memory_never_holds_less(plan, memory, more):
    page_size = page_of(plan, 256)
    less = run(plan, page_size=page_size, available_memory_bytes=memory)
    grown = run(plan, page_size=page_size, available_memory_bytes=memory + more)
    # One slot more may take more than the tokens gained.
    slot = 0 if less.states is None else less.states.per_request.value
    tokens_of_slot = slot / less.tightest.planned_bytes_per_token.value
    assert less.tokens.value <= grown.tokens.value + tokens_of_slot + 256
    assert less.states is None or less.states.slots.value <= grown.states.slots.value


@few
@given(models, st.sampled_from([BF16, FP8]))
def test_allocated_is_never_below_planned_but_by_window_rounding(plan, kv):
    stage = run(plan, kv, page_size=page_of(plan, 256)).stages[0]
    assert stage.allocated_bytes_per_token.value >= stage.planned_bytes_per_token.value * 0.999


def test_a_model_that_does_not_fit_at_all():
    with pytest.raises(EngineError, match="Not enough memory"):
        run(alike(FULL), available_memory_bytes=1000)
