"""Several models side by side."""

import json

import pytest

from calculator import Scenario, catalogue, comparison, estimate
from calculator.comparison import comparison_json
from calculator.own import MOST_COMPARED

MINE = '[["Mine", "2*full_attention(num_kv_heads=1,head_size=64,head_size_v=64)"]]'


def compared(**values: object) -> dict[str, object]:
    """The compared models by their key."""
    return {one.key: one for one in comparison(Scenario().changed(values))}


def test_the_five_flagships_at_100_000_tokens_smallest_first():
    bars = comparison(Scenario())
    assert [(bar.key, bar.parts.linear) for bar in bars] == [
        ("qwen3.5-397b-a17b", 3_072_000_000),
        ("kimi-k2.6", 7_027_200_000),
        ("deepseek-v3.2", 7_832_400_000),
        ("glm-5.1", 10_015_200_000),
        ("minimax-m2.7", 25_395_200_000),
    ]
    assert [bar.parts.constant for bar in bars] == [192_061_440, 0, 0, 0, 0]
    assert [bar.parts.bounded for bar in bars] == [0] * 5
    assert bars[0].parts.total == 3_264_061_440


def test_the_largest_flagship_is_8_27_times_the_smallest_and_7_78_with_its_state():
    bars = comparison(Scenario())
    assert round(bars[-1].parts.linear / bars[0].parts.linear, 2) == 8.27
    assert round(bars[-1].parts.total / bars[0].parts.total, 2) == 7.78


def test_the_comparison_follows_its_own_length_and_the_formats_but_no_other_slider():
    plain = comparison(Scenario())
    moved = Scenario().changed({"context_tokens": 5, "num_sequences": 9, "num_layers": 7, "units": "GB"})
    assert comparison(moved) == plain
    assert compared(compare_tokens=50_000)["kimi-k2.6"].parts.linear == 3_513_600_000
    assert compared(kv_cache_dtype="fp8")["kimi-k2.6"].parts.linear == 3_513_600_000


def test_it_is_of_one_rank():
    two = compared(tensor_parallel_size=2)
    assert two["kimi-k2.6"].parts.total == 7_027_200_000, "a latent is on every rank"
    assert two["minimax-m2.7"].parts.total == 25_395_200_000 // 2


@pytest.mark.parametrize("engine", ["logical", "vllm", "sglang"])
@pytest.mark.parametrize("model", [*catalogue.FLAGSHIPS, "gemma-3-27b", "llama-3.1-8b"])
def test_a_model_has_the_figures_of_its_own_estimate(engine, model):
    values = {"engine": engine, "tensor_parallel_size": 4, "compare_tokens": 30_000, "compared": model}
    (one,) = comparison(Scenario().changed(values))
    answer = estimate(Scenario().changed({**values, "model": model, "context_tokens": 30_000}))
    if answer.refusal:
        assert one.refusal.key == answer.refusal.key
        return
    expected = answer.allocated.per_rank if answer.allocated else answer.per_rank
    assert one.weighed.bytes_per_token == expected.bytes_per_token.value
    assert one.weighed.bounded_bytes == expected.bounded_bytes.value
    assert one.weighed.constant_bytes == expected.constant_bytes.value
    assert one.parts.total == expected.total_bytes.value
    assert one.weighed.at(30_000) == one.parts


def test_the_present_model_and_pins_stand_beside_the_catalogue():
    found = compared(compared="this,glm-5.1", pins=MINE, num_layers=2)
    layers = json.loads(MINE)[0][1]
    assert list(found) == [layers, "this", "glm-5.1"], "smallest first"
    assert [one.name for one in found.values()] == ["Mine", "", "GLM 5.1"]
    assert found["this"].parts.total == 2 * 576 * 2 * 100_000
    assert found[layers].parts.total == 2 * 2 * 64 * 2 * 100_000


def test_models_that_a_format_or_an_engine_cannot_hold_come_last_with_the_reason():
    found = compared(kv_cache_dtype="nvfp4")
    assert [key for key, one in found.items() if one.parts] == ["qwen3.5-397b-a17b", "minimax-m2.7"]
    assert {one.refusal.key for one in found.values() if not one.parts} == {"error.format"}
    refused = compared(engine="vllm", compared="deepseek-v4-flash")["deepseek-v4-flash"]
    assert (refused.parts, refused.weighed, refused.refusal.key) == (None, None, "vllm.v4_format")


def test_what_cannot_be_counted_exactly_is_refused():
    wide = '[["Wide", "1024*full_attention(num_kv_heads=1024,head_size=4096,head_size_v=4096)"]]'
    (one,) = comparison(Scenario().changed({"compared": "", "pins": wide, "compare_tokens": 2**27}))
    assert one.refusal.key == "error.limit"


def test_nothing_compared_is_nothing():
    assert comparison(Scenario().changed({"compared": ""})) == []


def test_as_many_models_as_may_be_compared_are():
    ids = ",".join(catalogue.ids()[:MOST_COMPARED])
    assert len(compared(compared=ids)) == MOST_COMPARED


def test_the_json_has_whole_numbers_or_the_reason():
    scenario = Scenario().changed(
        {"compared": "this,deepseek-v4-flash", "engine": "vllm", "compare_tokens": 8192}
    )
    written = comparison_json(scenario)
    assert json.loads(json.dumps(written)) == {
        "schema": 1,
        "tokens": 8192,
        "engine": {"name": "vllm", "version": scenario.serving.version},
        "models": [
            {
                "model": "this",
                "name": "",
                "bytes_per_token": 70_272,
                "bounded_bytes": 0,
                "constant_bytes": 0,
                "total_bytes": 70_272 * 8192,
            },
            written["models"][1],
        ],
    }
    assert written["models"][1].keys() == {"model", "name", "refusal"}
