"""The overview of the types, row by row: growth, ranks, prefix, vLLM's specs and SGLang's pool."""

from dataclasses import replace

import pytest

from calculator.caches import Growth
from calculator.engines import sglang, vllm
from calculator.errors import EngineError
from calculator.formats import FP8, Storage
from calculator.model import ModelPlan
from calculator.reuse import Need, need
from tests.engines.vllm.shapes import (
    CHUNK,
    CROSS,
    ENCODER,
    FULL,
    GDN,
    INDEX,
    LATENT,
    MAMBA,
    SINK,
    V4_LAYERS,
    WINDOW,
)

GIB = 2**30
GROUPED = replace(MAMBA, n_groups=16)  # a single group would be copied to every rank
STORAGE = Storage(kv=FP8)
LINEAR, BOUNDED, CONSTANT = Growth.LINEAR, Growth.BOUNDED, Growth.CONSTANT

# caches of a layer, how the first grows, whether TP splits it, why vLLM refuses decode context parallelism,
# what a prefix needs, vLLM's specs, SGLang's pool or why it has none
ROWS = {
    "GQA": ((FULL,), LINEAR, True, None, Need.LEADING_RUN, ["FullAttentionSpec"], "MHATokenToKVPool"),
    "MLA": ((LATENT,), LINEAR, False, None, Need.LEADING_RUN, ["MLAAttentionSpec"], "MLATokenToKVPool"),
    "DSA": (
        (LATENT, INDEX),
        LINEAR,
        False,
        None,
        Need.LEADING_RUN,
        ["MLAAttentionSpec", "MLAAttentionSpec"],
        "DSATokenToKVPool",
    ),
    "DeepSeek-V4": (
        V4_LAYERS[4],
        BOUNDED,
        False,
        "vllm.cp_window",
        Need.WINDOW,
        ["MLAAttentionSpec"] * 2 + ["SlidingWindowMLASpec"] * 3,
        "DeepSeekV4TokenToKVPool",
    ),
    "sliding window": (
        (WINDOW,),
        BOUNDED,
        True,
        "vllm.cp_window",
        Need.WINDOW,
        ["SlidingWindowSpec"],
        "SWAKVPool",
    ),
    "chunked local": (
        (CHUNK,),
        BOUNDED,
        True,
        "vllm.cp_window",
        Need.CHUNK,
        ["ChunkedLocalAttentionSpec"],
        "SWAKVPool",
    ),
    "sink": ((SINK,), LINEAR, True, None, Need.LEADING_RUN, ["SinkFullAttentionSpec"], "sglang.kind"),
    "gated delta net": (
        (GDN,),
        CONSTANT,
        True,
        "vllm.cp_state",
        Need.SNAPSHOT,
        ["MambaSpec"],
        "HybridLinearKVPool",
    ),
    "Mamba-2": (
        (GROUPED,),
        CONSTANT,
        True,
        "vllm.cp_state",
        Need.SNAPSHOT,
        ["MambaSpec"],
        "HybridLinearKVPool",
    ),
    "cross": ((CROSS,), CONSTANT, True, None, Need.NEVER, ["CrossAttentionSpec"], "sglang.kind"),
    "encoder-only": ((ENCODER,), CONSTANT, True, None, Need.NEVER, [], "NoOpMHATokenToKVPool"),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row_of_the_overview(row):
    caches, growth, split, refusal, needed, specs, pool = row
    first = caches[0]
    assert (first.growth, bool(first.split_heads), need(first)) == (growth, split, needed)
    halved = first.unit_bytes(STORAGE, 2).value * 2 == first.unit_bytes(STORAGE, 1).value
    assert halved is split
    assert sorted(specs_of(caches)) == specs
    if refusal is not None:
        with pytest.raises(EngineError) as refused:
            specs_of(caches, tensor_parallel_size=16, decode_context_parallel_size=2)
        assert refused.value.key == refusal
    if pool.startswith("sglang."):
        with pytest.raises(EngineError) as refused:
            pool_of(caches)
        assert refused.value.key == pool
    else:
        assert pool_of(caches) == pool


@pytest.mark.parametrize("row", ["GQA", "MLA", "DSA"])
def test_what_grows_with_all_tokens_is_shared_by_decode_context_parallelism(row):
    caches = ROWS[row][0]
    whole, shared = (
        vllm.allocate(
            ModelPlan(layers=(caches,)),
            STORAGE,
            vllm.Settings(max_model_len=64_000, tensor_parallel_size=16, decode_context_parallel_size=ranks),
            "0.22.0",
        )
        for ranks in (1, 2)
    )
    assert shared.request_bytes.value * 2 == whole.request_bytes.value


def test_states_grow_by_blocks_in_mode_all_alone():
    def needed(mode, context):
        settings = vllm.Settings(max_model_len=context, mamba_cache_mode=mode)
        return vllm.allocate(ModelPlan(layers=((MAMBA,),)), STORAGE, settings, "0.22.0").request_bytes.value

    for mode in vllm.MambaMode:
        grown = needed(mode, 1_000_000) > needed(mode, 100_000)
        assert grown is (mode is vllm.MambaMode.ALL)


def specs_of(caches, **chosen):
    settings = vllm.Settings(max_model_len=4096, **chosen)
    found = vllm.allocate(ModelPlan(layers=(caches,)), STORAGE, settings, "0.22.0")
    return [spec.type.value for spec in found.model.specs]


def pool_of(caches):
    """Recurrent layers stand beside attention, as SGLang has no pool of states alone."""
    plan = ModelPlan(layers=(caches, (FULL,)) if need(caches[0]) is Need.SNAPSHOT else (caches,))
    page_size = sglang.default_page_size(plan, STORAGE)
    settings = sglang.Settings(available_memory_bytes=8 * GIB, page_size=page_size)
    return sglang.allocate(plan, STORAGE, settings, "0.5.13").pool
