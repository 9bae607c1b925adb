import json
from fractions import Fraction

import pytest

from calculator import Scenario, catalogue, estimate
from calculator.caches import (
    MLA,
    CrossAttention,
    EncoderOnlyAttention,
    FullAttention,
    GatedDeltaNet,
    SlidingWindow,
)
from calculator.errors import LimitError
from calculator.estimate import EXACT_LIMIT, Estimate, LayerTokens
from calculator.locales import LANGUAGES, text
from calculator.model import ModelPlan
from calculator.units import human, number_json


def answer(**values):
    return estimate(Scenario().changed(values))


# --- figures that were published or worked out by hand, never by this code ---


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16])
def test_mla_61_layers_576_dims_is_the_same_on_every_rank(tp):
    found = answer(tensor_parallel_size=tp, context_tokens=8_192)
    (group,) = found.as_json()["groups"]
    assert group["caches"][0]["unit_bytes"] == 1_152
    assert found.per_rank.bytes_per_token.value == 70_272
    assert human(70_272) == "68.6 KiB"
    assert found.per_rank.total_bytes.value == 575_668_224 == 549 * 1024**2
    assert found.whole_model.total_bytes.value == 575_668_224


@pytest.mark.parametrize(
    ("model", "per_token"),
    [
        ("llama-7b", 524_288),
        ("llama-3.1-8b", 131_072),
        ("deepseek-v2", 69_120),
        ("deepseek-v3", 70_272),
        ("kimi-k2.6", 70_272),
        ("deepseek-v3.2", 78_324),
        ("glm-5.1", 100_152),
        ("minimax-m2.7", 253_952),
        ("qwen3.5-397b-a17b", 30_720),
    ],
)
def test_bytes_per_token_of_the_catalogue_in_16_bit(model, per_token):
    assert answer(model=model).whole_model.bytes_per_token.value == per_token


@pytest.mark.parametrize(("dtype", "state"), [("fp32", 192_061_440), ("bf16", 97_689_600)])
def test_the_state_of_qwen3_5(dtype, state):
    found = answer(model="qwen3.5-397b-a17b", state_dtype=dtype)
    assert found.whole_model.constant_bytes.value == state


def test_eight_global_and_forty_window_layers_hold_19_3_per_cent_of_the_layer_tokens():
    found = answer(
        architecture="window", num_layers=48, num_global_layers=8, sliding_window=1_024, context_tokens=32_768
    )
    tokens = found.layer_tokens()
    assert (tokens.held, tokens.unforgetting) == (303_104, 1_572_864)
    assert round(100 * tokens.held / tokens.unforgetting, 1) == 19.3


def test_fewer_kv_heads_than_ranks_leave_one_head_on_each():
    llama_70b = {
        "architecture": "full",
        "num_layers": 80,
        "num_kv_heads": 8,
        "head_size": 128,
        "head_size_v": 128,
    }
    assert answer(**llama_70b).per_rank.bytes_per_token.value == 327_680
    assert answer(**llama_70b, tensor_parallel_size=8).per_rank.bytes_per_token.value == 40_960
    assert answer(**llama_70b, tensor_parallel_size=16).per_rank.bytes_per_token.value == 40_960


def window(layers: int, full: int, heads: int, size: int, tokens: int, context: int):
    return answer(
        architecture="window",
        num_layers=layers,
        num_global_layers=full,
        num_kv_heads=heads,
        head_size=size,
        head_size_v=size,
        sliding_window=tokens,
        context_tokens=context,
    )


def test_windows_are_not_ignored_in_gemma_3_27b():
    total = answer(model="gemma-3-27b").per_rank.total_bytes.value
    assert round(total / 1024**3, 2) == 8.04


def test_18_full_layers_and_18_of_window_128_as_in_gpt_oss():
    short = window(36, 18, 8, 64, 128, 128)
    assert short.per_rank.total_bytes.value == 128 * 73_728
    long = window(36, 18, 8, 64, 128, 100_000)
    assert round(long.per_rank.total_bytes.value / 1024**3, 4) == 3.4376


def test_a_small_gemma_at_32_768_tokens_takes_139_mib():
    assert round(window(26, 4, 1, 256, 512, 32_768).per_rank.total_bytes.value / 1024**2, 1) == 139.0


def test_a_full_attention_model_of_64_layers_at_100_000_tokens():
    found = answer(architecture="full", num_layers=64, num_kv_heads=8, head_size=128, head_size_v=128)
    assert round(found.per_rank.total_bytes.value / 1024**3, 4) == 24.4141


def test_deepseek_v3_at_100_000_tokens_on_each_of_eight_ranks():
    total = answer(tensor_parallel_size=8).per_rank.total_bytes.value
    assert round(total / 1024**3, 4) == 6.5446


# --- the parts of an answer ---


def test_the_table_has_the_usual_tp_sizes_and_the_chosen_one():
    rows = answer(model="llama-3.1-8b", tensor_parallel_size=6).by_tp()
    assert [row.tp for row in rows] == [1, 2, 4, 6, 8, 16]
    assert [row.amounts.bytes_per_token.value for row in rows] == [
        131_072,
        65_536,
        32_768,
        16_384,
        16_384,
        16_384,
    ]
    assert [row.accepted for row in rows] == [True, True, True, False, True, True]


@pytest.mark.parametrize(
    ("model", "copied"),
    [("deepseek-v3", True), ("deepseek-v3.2", True), ("llama-3.1-8b", False), ("qwen3.5-397b-a17b", False)],
)
def test_only_models_of_latents_are_copied_whole_to_every_rank(model, copied):
    found = answer(model=model)
    assert found.copied is copied
    totals = {row.amounts.total_bytes.value for row in found.by_tp()}
    assert (len(totals) == 1) is copied


def test_a_tp_that_the_engines_refuse_is_said_in_every_language():
    found = answer(model="llama-3.1-8b", tensor_parallel_size=6)
    assert found.notices() == [("notice.tp", {"tp": 6})]
    assert found.as_json()["notices"] == [{"key": "notice.tp", "values": {"tp": 6}}]
    for language in LANGUAGES:
        assert "TP 6" in text(language, "notice.tp", tp=6)
    assert answer(model="llama-3.1-8b", tensor_parallel_size=8).notices() == []


def test_what_the_importer_warned_of_is_said_first():
    plan = catalogue.plan("kimi-k2.6")
    assert answer(model="kimi-k2.6").notices() == list(plan.warnings)


def test_the_curve_counts_all_sequences_and_keeps_the_parts_apart():
    found = answer(model="gemma-3-27b", num_sequences=2)
    low, high = found.curve([1_024, 2_048])
    assert low.linear * 2 == high.linear == 2 * 10 * 8_192 * 2_048
    assert low.bounded == high.bounded == 2 * 52 * 8_192 * 1_024
    (state,) = answer(model="qwen3.5-397b-a17b", num_sequences=3).curve([1])
    assert state.constant == 3 * 192_061_440


def test_state_layers_hold_no_tokens():
    tokens = answer(model="qwen3.5-397b-a17b", context_tokens=1_000).layer_tokens()
    assert (tokens.held, tokens.unforgetting) == (15_000, 15_000)


def test_a_layer_with_two_caches_holds_the_tokens_of_the_longer_one():
    sizes = {"num_kv_heads": 8, "head_size": 128, "head_size_v": 128}
    layer = (SlidingWindow(sliding_window=128, **sizes), FullAttention(**sizes))
    found = Estimate(scenario=Scenario(context_tokens=1_000), plan=ModelPlan(layers=(layer, ())))
    assert found.layer_tokens() == LayerTokens(held=1_000, unforgetting=1_000)


def test_tokens_of_an_encoder_are_none_of_the_context():
    sizes = {"num_kv_heads": 12, "head_size": 64, "head_size_v": 64}
    cross, full = CrossAttention(num_encoder_tokens=1_500, **sizes), FullAttention(**sizes)
    plan = ModelPlan(layers=((full, cross), (cross,), (EncoderOnlyAttention(**sizes),)))
    found = Estimate(scenario=Scenario(context_tokens=10), plan=plan)
    assert found.layer_tokens() == LayerTokens(held=10, unforgetting=10)


def test_the_json_is_that_of_the_contract():
    found = answer(model="qwen3.5-397b-a17b", tensor_parallel_size=2)
    written = found.as_json()
    assert list(written) == [
        "schema",
        "scenario",
        "engine",
        "per_rank",
        "whole_model",
        "logical",
        "groups",
        "difference",
        "capacity",
        "transfer",
        "derivation",
        "notices",
    ]
    assert written["schema"] == 1
    assert written["scenario"]["model"] == "qwen3.5-397b-a17b"
    assert written["whole_model"] == {
        "bytes_per_token": 30_720,
        "bounded_bytes": 0,
        "constant_bytes": 192_061_440,
        "total_bytes": 3_264_061_440,
    }
    assert written["per_rank"] == written["logical"]
    assert written["per_rank"]["bytes_per_token"] == 15_360
    state, full = written["groups"]
    assert full["layers"] == list(range(3, 60, 4))
    assert full["caches"] == [
        {
            "kind": "full_attention",
            "format": "bf16",
            "growth": "linear",
            "unit_bytes": 1_024,
            "bound_tokens": None,
        }
    ]
    assert state["caches"][0]["kind"] == GatedDeltaNet.kind
    assert (state["caches"][0]["format"], state["caches"][0]["growth"]) == ("fp32", "constant")
    assert json.loads(json.dumps(written)) == written


def test_a_bound_is_named_in_the_json():
    groups = answer(model="gemma-3-27b").as_json()["groups"]
    assert {group["caches"][0]["bound_tokens"] for group in groups} == {1_024, None}


def test_a_derivation_has_symbols_numbers_value_and_source():
    line = answer().as_json()["derivation"][0]
    assert line == {
        "quantity": "groups.0.mla.unit_bytes",
        "symbols": "(R + D_r) · s",
        "numbers": "(512 + 64) · 2",
        "value": 1_152,
        "source": MLA.source,
    }


def test_a_rate_that_is_a_fraction_is_written_as_one():
    assert number_json(Fraction(15_401, 4)) == {"numerator": 15_401, "denominator": 4}
    assert number_json(Fraction(8, 4)) == 2
    assert number_json(63_897.6) == 63_897.6, "an engine's double stays one"


# --- the limit ---

LARGEST = {
    "architecture": "full",
    "num_layers": 1024,
    "num_kv_heads": 1024,
    "head_size": 4096,
    "head_size_v": 4096,
}


def test_2_to_the_53_bytes_are_refused_and_one_token_less_is_not():
    # 2^10 layers of 4 heads of 1 + 1 elements of 2 bytes are 2^14 bytes per token.
    shape = {"architecture": "full", "num_layers": 1024, "num_kv_heads": 4, "head_size": 1, "head_size_v": 1}
    with pytest.raises(LimitError) as caught:
        answer(**shape, context_tokens=2**27, num_sequences=2**12)
    assert caught.value.values == {"value": 2**53, "highest": 2**53}
    almost = answer(**shape, context_tokens=2**27 - 1, num_sequences=2**12)
    assert almost.whole_model.total_bytes.value == 2**53 - 2**26


def test_more_ranks_do_not_make_an_inexact_model_exact():
    with pytest.raises(LimitError):
        answer(**LARGEST, tensor_parallel_size=1024, context_tokens=2**27)


@pytest.mark.parametrize(
    ("language", "advice"), [("en", "fewer sequences or a shorter context"), ("zh", "减少序列数或缩短上下文")]
)
def test_the_limit_is_told_with_value_bound_and_what_to_do(language, advice):
    with pytest.raises(LimitError) as caught:
        answer(**LARGEST, context_tokens=2**27)
    sentence = caught.value.message(language)
    assert f"{2**27 * 2**34:,}" in sentence
    assert f"{EXACT_LIMIT:,}" in sentence
    assert "2^53" in sentence
    assert advice in sentence


def test_a_total_past_any_reading_is_only_said_to_be_huge():
    with pytest.raises(LimitError, match=r"^> 2\^64 bytes"):
        answer(**LARGEST, context_tokens=2**27, num_sequences=1_000_000)
