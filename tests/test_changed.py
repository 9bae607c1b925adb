"""What changed between the last two versions: exact figures, the rules that move them, refusals."""

import json
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator import Scenario, catalogue, estimate
from calculator.allocation import rules_of
from calculator.changed import BESIDE, STEPS, Comparison, comparisons
from calculator.cli import main
from calculator.errors import CalculatorError
from calculator.locales import LANGUAGES, text
from calculator.serving import VERSIONS


def compared(**values: object) -> tuple[Comparison, ...]:
    answer = estimate(Scenario().changed(values))
    return comparisons(answer.scenario, answer.plan)


def effects(found: Comparison) -> dict[str, tuple[object, object]]:
    return {
        pair.label: (pair.old and pair.old.value, pair.new and pair.new.value)
        for change in found.changes
        for pair in change.effects
    }


@pytest.mark.parametrize("engine", STEPS)
def test_every_rule_that_changed_is_a_step_or_beside_the_figures(engine):
    old, new = (rules_of(engine, version) for version in VERSIONS[engine][-2:])
    moved = {item.name for item in fields(old) if getattr(old, item.name) != getattr(new, item.name)}
    named = [field for names in STEPS[engine].values() for field in names]
    assert len(named) == len(set(named))
    assert moved <= {*named, *BESIDE}
    assert set(named) <= {item.name for item in fields(old)}


def test_gemma_takes_more_blocks_for_the_steps_under_way():
    # 1,023 + 8,192 tokens of a window against 1,023 + 2 · 8,192, in blocks of 16, one more for the alignment.
    (found,) = compared(engine="vllm", model="gemma-3-27b", context_tokens=131_072)
    assert (found.engine, found.old, found.new) == ("vllm", "0.22.0", "0.33.0")
    (change,) = found.changes
    assert change.names == ("steps",)
    assert effects(found)["figure.blocks_per_request"] == (8_192 + 6 * 577, 8_192 + 6 * 1_089)


def test_the_gemma_like_request_of_the_specification():
    # 8 full layers, 40 windows of 1,024: 5 groups of windows and one of full layers.
    shape = {"architecture": "window", "num_layers": 48, "num_global_layers": 8, "sliding_window": 1_024}
    heads = {"num_kv_heads": 8, "head_size": 256, "head_size_v": 256}
    (found,) = compared(engine="vllm", context_tokens=131_072, **shape, **heads)
    assert effects(found)["figure.blocks_per_request"] == (11_077, 13_637)


def test_v3_2_is_priced_as_it_is_allocated():
    (found,) = compared(engine="sglang", model="deepseek-v3.2", kv_cache_dtype="fp8")
    assert [change.names for change in found.changes] == [("sparse_rows",)]
    assert effects(found)["figure.planned_bytes_per_token"] == (43_188, 48_068)


def test_a_state_is_kept_twice_where_prefixes_are_reused():
    (found,) = compared(engine="vllm", model="qwen3.5-397b-a17b", context_tokens=100_000)
    assert [change.names for change in found.changes] == [("state_reuse",)]
    assert effects(found)["quantity.constant_bytes"] == (3 * 64_389_120, 6 * 64_389_120)


def test_what_a_version_lacks_is_refused_with_its_reason_on_its_side():
    (found,) = compared(engine="sglang", model="llama-3.1-8b", kv_cache_dtype="fp4_e2m1")
    assert isinstance(found.after, CalculatorError)
    assert found.after.key == "sglang.format_gone"
    assert found.changes[-1].names == ("recipes",)
    assert found.changes[-1].refusal is not None
    assert all(pair.new is None for pair in found.figures)
    (found,) = compared(engine="vllm", model="llama-3.1-8b", kv_cache_dtype="int4_per_token_head")
    assert isinstance(found.before, CalculatorError)
    assert found.before.key == "vllm.format_since"
    assert all(pair.old is None for pair in found.figures)
    assert "formats" in found.changes[0].names
    (found,) = compared(engine="vllm", model="qwen3.5-397b-a17b", mamba_cache_mode="all")
    assert found.after.key == "vllm.mode"


def test_logical_bytes_show_both_engines_and_nothing_is_said_where_nothing_changes():
    assert [found.engine for found in compared(model="llama-3.1-8b", context_tokens=2_048)] == [
        "vllm",
        "sglang",
    ]
    found = compared(engine="sglang", model="llama-3.1-8b", context_tokens=2_048)
    assert [one.changes for one in found] == [()]
    assert any(text("en", "changed.nothing") in line for line in found[0].report("en"))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "asked",
    [
        ["--model", "gemma-3-27b", "--engine", "vllm"],
        ["--model", "llama-3.1-8b", "--engine", "sglang", "--kv-cache-dtype", "fp4_e2m1"],
        ["--model", "deepseek-v3.2", "--kv-cache-dtype", "fp8"],
    ],
)
def test_the_command_says_it(capsys, language, asked):
    assert main(["--language", language, "changed", *asked]) == 0
    out = capsys.readouterr().out
    assert "→" in out
    assert main(["changed", "--json", *asked]) == 0
    for one in json.loads(capsys.readouterr().out):
        assert one.keys() == {"engine", "versions", "refused", "figures", "changes"}
        assert one["figures"]


@settings(max_examples=25, deadline=None)
@given(
    model=st.sampled_from(catalogue.ids()),
    engine=st.sampled_from(tuple(STEPS)),
    context=st.integers(1, 2**20),
    tp=st.sampled_from([1, 2, 8]),
    kv_cache_dtype=st.sampled_from(["bf16", "fp8"]),
)
def test_the_steps_lead_from_the_old_figures_to_the_new_ones(model, engine, context, tp, kv_cache_dtype):
    (found,) = compared(
        model=model,
        engine=engine,
        context_tokens=context,
        tensor_parallel_size=tp,
        kv_cache_dtype=kv_cache_dtype,
    )
    last = {pair.label: pair.old and pair.old.value for pair in found.figures}
    for change in found.changes:
        assert change.names
        for pair in change.effects:
            assert last.get(pair.label) == (pair.old and pair.old.value)
            last[pair.label] = pair.new and pair.new.value
    assert last == {pair.label: pair.new and pair.new.value for pair in found.figures}
