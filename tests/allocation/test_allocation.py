"""A scenario on an engine: published figures, refusals, and what must hold beside the logical bytes."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator import ModelPlan, Scenario, catalogue, estimate
from calculator.allocation import allocate
from calculator.caches import CompressorState, SlidingWindowMLA
from calculator.engines.sglang import default_page_size
from calculator.errors import EngineError, FieldError
from calculator.fields import FIELDS
from calculator.formats import NVFP4, Storage
from calculator.serving import OF_ENGINE, VERSIONS

ENGINES = ("vllm", "sglang")
GIB = 2**30


def on(engine: str, **values: object):
    return estimate(Scenario().changed({"engine": engine, **values}))


def capacity(answer) -> dict[str, object]:
    return {figure.name: figure.value.value for figure in answer.allocated.capacity}


def test_llama_at_56_gib_has_the_blocks_of_the_worked_example():
    answer = on("vllm", model="llama-3.1-8b", context_tokens=131_072, available_memory_bytes=56 * GIB)
    found = capacity(answer)
    assert found["num_blocks"] == 28_672
    assert found["blocks_per_request"] == 8_192
    assert found["concurrency"] == Fraction(7, 2)
    assert found["whole_requests"] == 3


def test_short_requests_count_the_null_block():
    answer = on("vllm", model="llama-3.1-8b", context_tokens=2_048, available_memory_bytes="56 GiB")
    assert capacity(answer)["concurrency"] == 224
    assert capacity(answer)["whole_requests"] == 223


@pytest.mark.parametrize(("version", "batches"), [("0.22.0", 1), ("0.33.0", 2)])
def test_gemma_window_costs_more_than_its_logical_bytes(version, batches):
    answer = on("vllm", model="gemma-3-27b", context_tokens=131_072, engine_version=version)
    # Pages of 131,072 bytes: (1,023 + steps of 8,192) tokens in blocks of 16, one block for the alignment.
    pages = -(-(1_023 + batches * 8_192) // 16) + 1
    groups = -(-52 // 10)
    assert answer.allocated.per_rank.bounded_bytes.value == groups * pages * 10 * 131_072
    assert answer.per_rank.bounded_bytes.value == 436_207_616


@pytest.mark.parametrize(("version", "states"), [("0.22.0", 3), ("0.33.0", 6)])  # 0.33.0 reuses states
def test_qwen_takes_whole_blocks_of_its_padded_states(version, states):
    answer = on("vllm", model="qwen3.5-397b-a17b", context_tokens=100_000, engine_version=version)
    assert capacity(answer)["bytes_per_block"] == 64_389_120
    assert answer.allocated.per_rank.constant_bytes.value == states * 64_389_120
    assert answer.per_rank.constant_bytes.value == 192_061_440


@pytest.mark.parametrize(("version", "planned"), [("0.5.13", 43_188), ("0.5.23", 48_068)])
def test_v3_2_in_fp8_was_planned_below_what_is_allocated(version, planned):
    answer = on("sglang", model="deepseek-v3.2", kv_cache_dtype="fp8", engine_version=version)
    assert capacity(answer)["planned_bytes_per_token"] == planned
    assert capacity(answer)["allocated_bytes_per_token"] == 48_068
    assert answer.allocated.per_rank.bytes_per_token.value == 48_068


def test_with_trt_llm_the_rows_are_plain():
    answer = on("sglang", model="deepseek-v3.2", kv_cache_dtype="fp8", dsa_backend="trtllm")
    assert capacity(answer)["allocated_bytes_per_token"] == 43_188


@pytest.mark.parametrize(("version", "slots"), [("0.5.13", 158), ("0.5.23", 157)])  # one is a spare
def test_qwen_state_slots_are_those_of_the_worked_split(version, slots):
    memory = {"available_memory_bytes": 60 * GIB, "engine_version": version}
    assert capacity(on("sglang", model="qwen3.5-397b-a17b", **memory))["state_slots"] == slots


def test_dcp_divides_the_tokens_of_mla():
    answer = on("vllm", tensor_parallel_size=8, decode_context_parallel_size=8, context_tokens=163_840)
    assert capacity(answer)["blocks_per_request"] == 320


@pytest.mark.parametrize(
    ("engine", "values"),
    [
        ("vllm", {"model": "llama-3.1-8b", "tensor_parallel_size": 3}),
        ("sglang", {"model": "llama-3.1-8b", "tensor_parallel_size": 3}),
        ("vllm", {"model": "gemma-3-27b", "tensor_parallel_size": 8, "decode_context_parallel_size": 8}),
        ("vllm", {"model": "llama-3.1-8b", "kv_cache_dtype": "fp4_e2m1"}),
        ("sglang", {"architecture": "window", "kv_cache_dtype": "fp4_e2m1"}),
        ("sglang", {"model": "llama-3.1-8b", "hisparse_host_to_device_ratio": 2}),
    ],
)
def test_a_refusal_gives_the_reason_and_leaves_the_logical_bytes(engine, values):
    answer = on(engine, **values)
    assert isinstance(answer.refusal, EngineError)
    assert answer.allocated is None
    assert answer.per_rank.total_bytes.value > 0
    assert (answer.refusal.key, answer.refusal.values) in answer.notices()


def test_too_little_memory_is_said():
    answer = on("vllm", available_memory_bytes="1 GiB")
    assert not answer.allocated.fits
    assert ("notice.memory", {"value": GIB}) in answer.notices()


def test_transfer_is_that_of_the_worked_requests():
    llama = on("vllm", model="llama-3.1-8b", context_tokens=131_072).as_json()["transfer"]
    assert llama == {"request_bytes": 17_179_869_184}
    sparse = on("sglang", model="deepseek-v3.2", kv_cache_dtype="fp8", context_tokens=100_000).as_json()[
        "transfer"
    ]
    assert sparse == {"pages": 1_563, "kv_bytes": 4_002_880_512, "extra_bytes": 805_457_664}


def test_the_version_belongs_to_its_engine():
    with pytest.raises(FieldError, match="Engine version"):
        Scenario().changed({"engine": "vllm", "engine_version": VERSIONS["sglang"][0]})
    chosen = Scenario().changed({"engine": "vllm", "engine_version": VERSIONS["vllm"][0]})
    assert chosen.changed({"engine": "sglang"}).serving.version == VERSIONS["sglang"][-1]


@pytest.mark.parametrize("given", ["1.5", "-0.1", "1/2", "", "nan", "0.12345"])
def test_a_share_that_is_none_is_refused(given):
    with pytest.raises(FieldError, match="not a share"):
        Scenario().changed({"swa_full_tokens_ratio": given})


@pytest.mark.parametrize("given", ["xB", "60 XiB", "0 B", "-1 GiB", "0.3 B", "9999999 TiB"])
def test_memory_that_is_none_is_refused_at_its_own_field(given):
    with pytest.raises(FieldError) as refused:
        Scenario().changed({"available_memory_bytes": given})
    assert refused.value.field == "available_memory_bytes"


@pytest.mark.parametrize("given", ["60 GiB", "64,424,509,440", "64424509440 B", 64_424_509_440])
def test_memory_is_read_with_or_without_a_unit(given):
    assert Scenario().changed({"available_memory_bytes": given}).serving.available_memory_bytes == 60 * GIB


def test_json_names_the_engine_and_gives_allocated_beside_logical():
    result = on("vllm", model="gemma-3-27b").as_json()
    assert result["engine"] == {"name": "vllm", "version": VERSIONS["vllm"][-1]}
    assert result["per_rank"]["bounded_bytes"] > result["logical"]["bounded_bytes"]
    assert result["capacity"]["bytes_per_block"] == 10 * 131_072


@settings(max_examples=60)
@given(
    model=st.sampled_from(catalogue.ids()),
    engine=st.sampled_from(ENGINES),
    context=st.integers(1, 2**20),
    tp=st.sampled_from([1, 2, 4, 8]),
    kv_cache_dtype=st.sampled_from(["bf16", "fp8"]),
)
def test_an_engine_never_takes_less_than_is_stored(model, engine, context, tp, kv_cache_dtype):
    if any(isinstance(cache, SlidingWindowMLA) for cache in catalogue.plan(model).caches()):
        kv_cache_dtype = "fp8_v4"  # SGLang keeps these rows whatever dtype is asked for
    answer = on(
        engine, model=model, context_tokens=context, tensor_parallel_size=tp, kv_cache_dtype=kv_cache_dtype
    )
    if answer.allocated is None:
        assert answer.refusal is not None
        return
    taken, stored = answer.allocated.per_rank, answer.per_rank
    # vLLM takes a compressor's state block by block; logical bytes have it whole from the first token on.
    filled = [cache.sliding_window for cache in answer.plan.caches() if isinstance(cache, CompressorState)]
    whole = ("total_bytes",) if context >= max(filled, default=0) else ()
    for name in ("bytes_per_token", *whole):
        assert getattr(taken, name).value >= getattr(stored, name).value, name
    # SGLang keeps some of a compressor's states with the pages of the windows.
    beside = "bounded_bytes" if filled else "constant_bytes"
    held, needed = (
        sum(getattr(side, name).value for name in {"constant_bytes", beside}) for side in (taken, stored)
    )
    assert held >= needed
    # Without a window pool the windows grow like all other layers.
    assert taken.bounded_bytes.value >= stored.bounded_bytes.value or (
        taken.bounded_bytes.value == 0 and taken.bytes_per_token.value > stored.bytes_per_token.value
    )
    total = taken.total_bytes.value
    assert Fraction(total).denominator == 1


def test_layers_without_caches_take_no_blocks():
    nothing = allocate(Scenario().changed({"engine": "vllm"}), ModelPlan(layers=((), ())))
    assert nothing.per_rank.total_bytes.value == 0
    assert [figure.name for figure in nothing.capacity] == ["bytes_per_block"]


def test_a_page_is_as_large_as_the_model_needs():
    window = SlidingWindowMLA(head_size=512, qk_rope_head_dim=64, sliding_window=128)
    assert default_page_size(ModelPlan(layers=((window,),)), Storage()) == 256
    assert default_page_size(catalogue.plan("glm-5.1"), Storage()) == 64
    assert default_page_size(catalogue.plan("llama-7b"), Storage()) == 1
    assert default_page_size(catalogue.plan("llama-7b"), Storage(kv=NVFP4)) == 64


def test_every_setting_belongs_to_an_engine():
    known = {name for names in OF_ENGINE.values() for name in names}
    assert {name for name, item in FIELDS.items() if item.of_serving} == known | {"engine"}
