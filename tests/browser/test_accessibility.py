"""axe finds nothing, in every theme and language; names and values are there for those who listen."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from calculator.fields import TABS


def assert_no_violations(page, where):
    # Injected by the debugger, which the page's policy does not govern.
    results = Axe().run(page.page)
    assert results.violations_count == 0, f"{where}:\n{results.generate_report()}"


@pytest.mark.parametrize(
    ("language", "theme", "model"),
    [
        ("en", "light", "deepseek-v3"),
        ("en", "dark", "gemma-3-27b"),
        ("zh", "light", "qwen3.5-397b-a17b"),
        ("zh", "dark", "deepseek-v4-flash"),
    ],
)
def test_axe_finds_nothing_in_any_tab_nor_with_a_refusal_shown(live, model, theme, language):
    live.set(model=model, theme=theme, language=language)
    for tab in TABS:
        live.open_tab(tab)
        assert_no_violations(live, f"tab {tab}")
    live.type("context_tokens", "none")
    live.page.keyboard.press("Tab")
    expect(live.message("context_tokens")).not_to_be_empty()
    assert_no_violations(live, "with a refusal")


@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing_on_a_narrow_page(live, width):
    live.page.set_viewport_size({"width": width, "height": 900})
    try:
        assert_no_violations(live, f"{width} wide")
    finally:
        live.page.set_viewport_size({"width": 1440, "height": 900})


def test_axe_finds_nothing_while_loading(fresh, site):
    fresh.page.route("**/bokeh.min.js", lambda route: None)  # the charts stay pictures
    fresh.page.goto(site, wait_until="commit")
    expect(fresh.find("#curves .still polyline.total")).to_be_visible()
    assert_no_violations(fresh, "loading")
    assert fresh.find("html").get_attribute("data-kv-state") == "loading"


def test_every_input_is_named_by_the_words_beside_it(live):
    live.set(model="qwen3.5-397b-a17b")
    for field in live.fields():
        name = live.control(field).locator("label").inner_text()
        expect(live.box(field)).to_have_accessible_name(name)
        if live.slider(field).count():
            expect(live.slider(field)).to_have_accessible_name(name)
            assert live.slider(field).get_attribute("aria-valuetext")


def test_a_refusal_describes_its_box(live):
    live.type("num_layers", "none")
    expect(live.box("num_layers")).to_have_accessible_description(live.message("num_layers").inner_text())


def test_charts_are_images_with_a_sentence(live):
    for chart, words in {"curves": "68.6 KiB", "bars": "Kimi K2.6"}.items():
        image = live.find(f"#{chart}")
        expect(image).to_have_role("img")
        expect(image).to_have_attribute("aria-label", re.compile(words))


def test_changes_are_announced_once_the_user_pauses(live):
    live.type("num_layers", "60")
    expect(live.find("#live")).to_have_attribute("role", "status")
    expect(live.find("#live")).to_contain_text("67.5 KiB")
