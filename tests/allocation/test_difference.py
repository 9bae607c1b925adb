"""Logical and allocated bytes: the difference by its reasons."""

from hypothesis import given, settings
from hypothesis import strategies as st

from calculator import ModelPlan, Scenario, catalogue, estimate
from calculator.allocation import DIFFERENCE, allocate
from calculator.caches import CrossAttention, EncoderOnlyAttention, FullAttention, SlidingWindow
from calculator.errors import EngineError
from calculator.footprint import footprint
from calculator.locales import LANGUAGES, text
from calculator.serving import VERSIONS
from tests.engines.vllm.shapes import CHUNK, FULL, GDN, HIDDEN, INDEX, LATENT, MAMBA, V4_LAYERS, WINDOW

HEADS = {"num_kv_heads": 4, "head_size": 96, "head_size_v": 64}
ODD = FullAttention(**HEADS)
PLANS = {
    "full": [(FULL,)] * 5,
    "other V": [(ODD,)] * 3,
    "latents": [(LATENT,)] * 6,
    "sparse": [(LATENT, INDEX)] * 6,
    "windows": [(WINDOW,), (WINDOW,), (FULL,)] * 3,
    "halves": [(WINDOW,)] * 4 + [(FULL,)] * 4,
    "all windows": [(SlidingWindow(**HEADS, sliding_window=100),)] * 4,
    "chunks": [(CHUNK,), (FULL,)] * 2,
    "delta": [(GDN,), (GDN,), (GDN,), (FULL,)] * 2,
    "mamba": [(MAMBA,), (FULL,)] * 2,
    "V4": [V4_LAYERS[0], V4_LAYERS[4], V4_LAYERS[128], V4_LAYERS[4]],
    "encoder and decoder": [(FULL, CrossAttention(**HEADS))] * 2,
    "encoder": [(EncoderOnlyAttention(**HEADS),)] * 2 + [(FULL,)] * 2,
    "hidden states": [(FULL,), (HIDDEN,)],
    "nothing": [(), (FULL,)],
}
CLASSES = st.sampled_from([None, "MistralForCausalLM"])


@settings(max_examples=200)
@given(data=st.data())
def test_the_reasons_sum_to_the_difference(data):
    """allocated - logical, for the growth per token and the bytes at the context, on both engines."""
    draw = data.draw
    plan = ModelPlan(layers=tuple(PLANS[draw(st.sampled_from(sorted(PLANS)))]), architecture=draw(CLASSES))
    if draw(st.booleans()):
        plan = catalogue.plan(draw(st.sampled_from(catalogue.ids())))
    engine = draw(st.sampled_from(["vllm", "sglang"]))
    values = {
        "engine": engine,
        "engine_version": draw(st.sampled_from(VERSIONS[engine])),
        "kv_cache_dtype": draw(st.sampled_from(["bf16", "fp8", "fp4_e2m1", "nvfp4", "turboquant_3bit_nc"])),
        "tensor_parallel_size": draw(st.sampled_from([1, 2, 8])),
        "pipeline_parallel_size": draw(st.sampled_from([1, 2])),
        "context_tokens": draw(st.integers(1, 300_000)),
        "num_sequences": draw(st.integers(1, 9)),
    }
    if engine == "vllm":
        values |= {
            "enable_prefix_caching": draw(st.sampled_from(["auto", "on"])),
            "decode_context_parallel_size": draw(st.sampled_from([1, 2])),
        }
    else:
        values |= {
            "data_parallel_size": draw(st.sampled_from([1, 2])),
            "page_size": draw(st.sampled_from([0, 256])),
        }
    scenario = Scenario().changed({**values, "tensor_parallel_size": max(2, values["tensor_parallel_size"])})
    try:
        found = allocate(scenario, plan)
    except EngineError:
        return
    stored = footprint(plan, scenario.storage, scenario.tensor_parallel_size).amounts(
        scenario.context_tokens, scenario.num_sequences
    )
    for name in DIFFERENCE:
        parts = [getattr(part, name).value for part in found.difference]
        assert sum(parts) == getattr(found.per_rank, name).value - getattr(stored, name).value, name
    assert all(part.total_bytes.value == int(part.total_bytes.value) for part in found.difference)
    assert all(text(lang, f"part.{part.reason}") for part in found.difference for lang in LANGUAGES)


def reasons(engine, plan=None, **values):
    version = {"vllm": "0.22.0", "sglang": "0.5.13"}[engine]
    chosen = {"engine": engine, "engine_version": version, "context_tokens": 100_000, **values}
    scenario = Scenario().changed(chosen)
    made = allocate(scenario, plan or scenario.plan())
    return {part.reason: (part.bytes_per_token.value, part.total_bytes.value) for part in made.difference}


def test_blocks_of_the_last_token():
    """DeepSeek-V3, 100,000 tokens in blocks of 64: 1,563 blocks hold 32 tokens more, of 70,272 bytes."""
    assert reasons("vllm", model="deepseek-v3") == {"block_rounding": (0, 32 * 70_272)}
    assert reasons("vllm", model="deepseek-v3", num_sequences=3) == {"block_rounding": (0, 3 * 32 * 70_272)}


def test_scales_of_packed_rows():
    """V3.2 in FP8: 656 bytes for 576, in 61 layers; SGLang's pages have 64 tokens as well."""
    rows = (61 * 80, 61 * 80 * 100_000)
    filled = (0, 32 * 61 * (656 + 132))
    assert reasons("vllm", model="deepseek-v3.2", kv_cache_dtype="fp8") == {
        "stored_form": rows,
        "block_rounding": filled,
    }
    assert reasons("sglang", model="deepseek-v3.2", kv_cache_dtype="fp8") == {
        "stored_form": rows,
        "page_rounding": filled,
    }


def test_windows_of_gemma():
    """52 of 62 layers have a window of 1,024 tokens and 8,192 bytes per token and layer."""
    row = 16 * (128 + 128) * 2
    assert reasons("sglang", model="gemma-3-27b") == {
        "windows_kept": (52 * row, 52 * row * (100_000 - 1_024))
    }
    found = reasons("vllm", model="gemma-3-27b")
    assert found["steps_under_way"] == (0, 52 * row * (1_023 + 8_192 - 1_024))
    assert found["block_rounding"] == (0, 52 * row * 1)
    assert found["window_block"] == (0, 52 * row * 16)
    # Six groups of ten layers: 52 windows leave eight places empty, in 577 blocks of 16 tokens.
    assert found["shared_blocks"] == (0, 8 * 577 * 16 * row)


def test_states_padded_to_a_page_of_attention():
    """formulas.md 4.6: Qwen3.5, 45 states of 4,268,032 bytes in pages of 4,292,608."""
    found = reasons("vllm", model="qwen3.5-397b-a17b")
    assert found["page_padding"] == (0, 45 * (4_292_608 - 4_268_032))


def test_ranks_and_stages_that_share():
    found = reasons("vllm", model="deepseek-v3", tensor_parallel_size=8, decode_context_parallel_size=8)
    assert found["context_ranks"] == (-70_272 * 7 / 8, -70_272 * 87_500)
    halves = reasons("sglang", model="llama-3.1-8b", pipeline_parallel_size=2)
    assert halves == {"other_stages": (-65_536, -65_536 * 100_000)}
    heads = reasons("sglang", model="llama-3.1-8b", tensor_parallel_size=4, data_parallel_size=2)
    assert heads == {"attention_ranks": (32_768, 32_768 * 100_000)}


def test_pages_of_v4_are_padded_to_576_bytes():
    """formulas.md 6.3: a C4 page of 64 rows has 37,440 bytes, a C128 page of 2 rows 1,728."""
    plan = ModelPlan(layers=tuple(PLANS["V4"]))
    found = reasons("sglang", plan, context_tokens=1_024, kv_cache_dtype="fp8_v4")
    c4, c128, window = 37_440 - 64 * 584, 1_728 - 2 * 584, 149_760 - 256 * 584
    assert found["page_padding"][1] == 4 * (2 * c4 + c128) + 2 * 4 * window
    assert found["page_padding"][0] * 256 == 2 * c4 + c128


def test_the_json_and_the_derivations_have_the_parts():
    answer = estimate(Scenario().changed({"engine": "vllm"}))
    assert answer.as_json()["difference"] == [
        {"reason": "block_rounding", "bytes_per_token": 0, "total_bytes": 32 * 70_272}
    ]
    lines = {line.quantity: line.value for line in answer.derivations()}
    assert lines["difference.block_rounding.total_bytes"] == 32 * 70_272
