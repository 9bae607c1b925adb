"""The engine view: engines' figures typed in and read off the page, refusals, logical beside allocated."""

import re

import pytest
from playwright.sync_api import expect

from calculator.locales import text
from tests.engine_cases import expressed

from .calculator_page import CalculatorPage
from .conftest import origin, watching
from .test_accessibility import assert_no_violations

CASES = list(expressed())[::3][:20]


@pytest.fixture(scope="module")
def engine(browser, site):
    """A live page of these tests' own: engine settings stay when the engine is changed."""
    with watching(browser, origin(site)) as watched:
        page = CalculatorPage(watched.page).open(site)
        page.open_tab("engine")
        yield page


def enter(page, choices):
    """All choices; first those that decide which other controls are there and which formats suit them."""
    first = ("engine", "kv_cache_dtype", "architecture")
    page.set(
        **{field: str(choices[field]) for field in (*first, *(name for name in choices if name not in first))}
    )


@pytest.mark.parametrize(
    ("choices", "figures"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_page_shows_the_engines_figures(engine, choices, figures):
    enter(engine, choices)
    for name, expected in figures.items():
        shown = engine.value(f"capacity.{name}").get_attribute("value")
        assert float(shown) == pytest.approx(expected, rel=1e-9), name


def test_the_cases_are_of_both_engines():
    assert {choices["engine"] for _, choices, _ in CASES} == {"vllm", "sglang"}
    assert len(CASES) == 20
    assert len({choices["engine_version"] for _, choices, _ in CASES}) == 4


def test_logical_shows_no_engine(engine):
    engine.set(engine="logical")
    expect(engine.find("#engine")).to_have_text(text("en", "engine.none"))
    assert not {"block_size", "page_size", "engine_version"} & set(engine.fields())


def test_each_engine_has_its_own_settings(engine):
    engine.set(engine="vllm")
    assert "block_size" in engine.fields()
    assert "page_size" not in engine.fields()
    engine.set(engine="sglang")
    assert "page_size" in engine.fields()
    assert "block_size" not in engine.fields()


def test_a_refusal_stands_where_the_figures_were_and_the_logical_bytes_stay(engine):
    engine.set(engine="vllm", kv_cache_dtype="bf16", model="llama-3.1-8b", tensor_parallel_size="3")
    expect(engine.find("#engine .refusal")).to_contain_text("vLLM")
    assert engine.number("per_rank.bytes_per_token") > 0
    engine.set(tensor_parallel_size="1")
    expect(engine.find("#engine .refusal")).to_have_count(0)


def test_allocated_stands_beside_logical_with_the_difference(engine):
    engine.set(engine="vllm", model="gemma-3-27b", context_tokens="131072")
    logical = engine.number("per_rank.total_bytes")
    allocated = engine.number("allocated.total_bytes")
    assert allocated > logical
    expect(engine.find("#engine")).to_contain_text(f"+{allocated - logical:,} B")


@pytest.mark.parametrize("name", ["vllm", "sglang"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_axe_finds_nothing_in_the_engine_view(engine, name, language):
    engine.set(engine=name, model="gemma-3-27b", language=language)
    assert_no_violations(engine, f"{name}, {language}")
    engine.set(language="auto")


def test_memory_is_typed_with_its_unit(engine):
    engine.set(engine="vllm", model="llama-3.1-8b", context_tokens="131072", available_memory_bytes="56 GiB")
    assert engine.number("capacity.num_blocks") == 28_672
    engine.type("available_memory_bytes", "lots")
    expect(engine.message("available_memory_bytes")).not_to_be_empty()
    assert engine.number("capacity.num_blocks") == 28_672
    engine.type("available_memory_bytes", "56 GiB")
    expect(engine.message("available_memory_bytes")).to_be_empty()


def test_the_version_is_switched_and_is_in_the_address(engine):
    engine.open_tab("engine")
    engine.set(engine="vllm", kv_cache_dtype="bf16", model="gemma-3-27b", context_tokens="131072")
    newest = engine.number("capacity.blocks_per_request")
    engine.set(engine_version="0.22.0")
    expect(engine.page).to_have_url(re.compile("ev=0.22.0"))
    assert engine.number("capacity.blocks_per_request") < newest
    engine.set(engine_version="newest")
    assert engine.number("capacity.blocks_per_request") == newest


def test_what_changed_stands_side_by_side_with_the_rule(engine):
    engine.set(engine="vllm", kv_cache_dtype="bf16", model="gemma-3-27b", context_tokens="131072")
    shown = engine.piece("changed")
    expect(shown).to_contain_text("0.22.0 → 0.33.0")
    expect(shown).to_contain_text(text("en", "change.steps"))
    pair = [
        int(
            shown.locator(f'[data-kv-changed="figure.blocks_per_request.{side}"]').first.get_attribute(
                "value"
            )
        )
        for side in ("old", "new")
    ]
    assert pair == [11_654, 14_726]
    assert_no_violations(engine, "what changed")
    engine.set(engine="sglang", model="llama-3.1-8b", context_tokens="2048")
    expect(engine.piece("changed")).to_contain_text(text("en", "changed.nothing"))
    engine.open_tab("engine")
