"""Every model of the catalogue on both engines: refused for the engine's reasons alone, else within the laws.

The reasons are derived here anew: which kinds have a spec or a pool, how heads go to ranks, which formats a
kind is stored in. Nothing of the engines' own checks is used.
"""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import settings as quick
from hypothesis import strategies as st

from calculator import catalogue
from calculator.caches import Mamba2, State
from calculator.engines import sglang, vllm
from calculator.errors import EngineError
from calculator.footprint import footprint
from calculator.formats import (
    BF16,
    FP4_E2M1,
    FP8,
    FP8_DS_MLA,
    FP8_PER_TOKEN_HEAD,
    NVFP4,
    TURBOQUANT,
    Storage,
)

GIB = 2**30
MEMORY = 600 * GIB
FORMATS = (BF16, FP8, FP8_DS_MLA, FP8_PER_TOKEN_HEAD, NVFP4, FP4_E2M1, TURBOQUANT[0])
MODELS = catalogue.ids()
V4 = {"sliding_window_mla", "compressed_latent"}
WINDOWS = {"sliding_window", "chunked_local"}
HEADS = WINDOWS | {"full_attention", "cross_attention", "encoder_only_attention", "sink_attention"}
# Model classes with a pool of their own for windows in SGLang 0.5.13.
WINDOW_POOLS = ("Llama4", "GptOss", "MiMoV2", "Step3p5", "Step3p7ForCond", "Gemma4", "Laguna")


def kinds_of(plan):
    return {cache.kind for cache in plan.caches()}


def heads_divide(plan, tp):
    """Heads are shared out evenly or copied to equally many ranks; those of states are only shared."""
    for cache in plan.caches():
        groups = {cache.n_groups} - {1} if isinstance(cache, Mamba2) else set()
        heads = {cache.mamba_num_heads} | groups if isinstance(cache, Mamba2) else set(cache.split_heads)
        for count in heads:
            if count % tp and (isinstance(cache, State) or tp % count):
                return False
    return True


def pages_do_not_divide(plan, tp):
    """FP8 with a float32 for K and for V of every head: some page is no divisor of the largest."""
    heads = [cache for cache in plan.caches() if cache.kind in HEADS]
    pages = {max(1, cache.num_kv_heads // tp) * (cache.head_size + cache.head_size_v + 8) for cache in heads}
    return any(max(pages) % page for page in pages)


def vllm_reasons(plan, kv, tp):
    """The refusals of vLLM 0.22.0, any of which may be the one that is named."""
    kinds = kinds_of(plan)
    if not heads_divide(plan, tp):
        yield "vllm.tp"
    if kinds & {"rg_lru", "rwkv5", "sparse_index_key"}:
        yield "vllm.kind"
    if kinds & V4:
        if kv not in (FP8, FP8_DS_MLA):
            yield "vllm.v4_format"
        return
    if kv == FP4_E2M1 and kinds & (HEADS | {"mla"}):
        yield "vllm.format"
    if kv in (NVFP4, FP8_PER_TOKEN_HEAD) and "mla" in kinds:
        yield "vllm.format"
    if kv == FP8_DS_MLA:
        if kinds & HEADS:
            yield "vllm.format"
        elif "mla" in kinds and "index_key" not in kinds:
            yield "vllm.sparse_only"
    if kv == FP8_PER_TOKEN_HEAD and kinds & WINDOWS and pages_do_not_divide(plan, tp):
        yield "vllm.pages"
    if kv in TURBOQUANT and kinds & ((HEADS | {"mla"}) - {"full_attention"}):
        yield "vllm.format"


def sglang_reasons(plan, kv, tp):
    """The refusals of SGLang 0.5.13."""
    kinds = kinds_of(plan)
    states = any(isinstance(cache, State) for cache in plan.caches())
    if not heads_divide(plan, tp):
        yield "sglang.tp"
    if kv == NVFP4:
        yield "sglang.format_since"
    if kv == FP8_PER_TOKEN_HEAD or kv in TURBOQUANT:
        yield "sglang.format"
    if kinds & {"cross_attention", "rg_lru", "sparse_index_key"}:
        yield "sglang.kind"
    if not kinds & (HEADS | {"mla"} | V4):
        yield "sglang.mixture"
    if kv == FP8_DS_MLA:
        if kinds & HEADS:
            yield "sglang.format"
        elif "mla" in kinds and "index_key" not in kinds:
            yield "sglang.plain_rows"
    if kv == FP4_E2M1:
        if kinds & V4:
            yield "sglang.format"
        if states:
            yield "sglang.hybrid_fp4"
        if "index_key" in kinds:
            yield "sglang.sparse_format"
        if "encoder_only_attention" in kinds:
            yield "sglang.prefill_only"
        if kinds & WINDOWS and (plan.hybrid_swa or (plan.architecture or "").startswith(WINDOW_POOLS)):
            yield "sglang.swa_fp4"


def of_vllm(plan, storage, tp, context=4096):
    given_ = vllm.Settings(max_model_len=context, tensor_parallel_size=tp, available_memory_bytes=MEMORY)
    return vllm.allocate(plan, storage, given_, "0.22.0")


def of_sglang(plan, storage, tp, context=4096):
    given_ = sglang.Settings(
        context_length=context,
        tensor_parallel_size=tp,
        available_memory_bytes=MEMORY,
        page_size=sglang.default_page_size(plan, storage),
    )
    return sglang.allocate(plan, storage, given_, "0.5.13")


ENGINES = {"vllm": (of_vllm, vllm_reasons), "sglang": (of_sglang, sglang_reasons)}


@pytest.mark.parametrize("kv", FORMATS, ids=lambda kv: kv.name)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_is_refused_for_these_reasons_alone(engine, kv):
    allocate, reasons = ENGINES[engine]
    refused = 0
    for model, tp in product(MODELS, (1, 4, 8)):
        plan = catalogue.plan(model)
        expected = set(reasons(plan, kv, tp))
        if expected:
            with pytest.raises(EngineError) as refusal:
                allocate(plan, Storage(kv=kv), tp)
            assert refusal.value.key in expected, (model, tp)
            refused += 1
        else:
            allocate(plan, Storage(kv=kv), tp)
    assert refused


def allowed(engine, plan, tp):
    return not set(ENGINES[engine][1](plan, BF16, tp))


@quick(max_examples=30)
@given(
    st.sampled_from([name for name in MODELS if allowed("vllm", catalogue.plan(name), 4)]),
    st.integers(1, 300_000),
    st.sampled_from([1, 2, 4]),
)
def test_what_vllm_allocates_keeps_the_laws(model, context, tp):
    plan, storage = catalogue.plan(model), Storage()
    found = of_vllm(plan, storage, tp, context)
    logical = footprint(plan, storage, tp).parts(context).total
    assert found.request_bytes.value >= logical
    assert found.held_bytes(context) <= found.request_bytes.value
    if "chunked_local" not in kinds_of(plan):  # a chunk that has just begun holds next to nothing
        assert found.held_bytes(context) >= logical
    assert found.pool.num_blocks.value * found.bytes_per_block.value <= MEMORY
    assert not found.pool.fits or found.pool.longest_context == context
    if not found.groups:
        with pytest.raises(EngineError, match="no block"):
            assert found.pool.concurrency
        return
    longer = of_vllm(plan, storage, tp, context + 1)
    assert longer.pool.concurrency <= found.pool.concurrency


@quick(max_examples=30)
@given(
    st.sampled_from([name for name in MODELS if allowed("sglang", catalogue.plan(name), 4)]),
    st.integers(1, 300_000),
    st.sampled_from([1, 2, 4]),
)
def test_what_sglang_allocates_keeps_the_laws(model, context, tp):
    plan, storage = catalogue.plan(model), Storage()
    found = of_sglang(plan, storage, tp, context)
    assert found.tokens.value % found.page_size == 0
    stage = found.tightest
    left = MEMORY if found.states is None else found.states.token_bytes.value
    assert stage.planned_bytes_per_token.value * found.tokens.value <= left
    assert found.requests.value >= 1
    tokens = [buffer for buffer in stage.pool.buffers if not buffer.state]
    assert sum(buffer.bytes.value for buffer in tokens) >= stage.pool.page_bytes.value
    more = of_sglang(plan, storage, tp, context + 1)
    assert (more.tokens.value, more.requests.value) <= (found.tokens.value, found.requests.value)
