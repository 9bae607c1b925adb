"""The way back: what is typed or chosen can be undone by the browser, what a slider passes by is not kept."""

import re

import pytest
from playwright.sync_api import expect

from .calculator_page import CalculatorPage
from .conftest import watching
from .watched import origin


@pytest.fixture(scope="module")
def page(browser, site):
    """A live page with a history of its own, allowed to use the clipboard."""
    with watching(browser, origin(site), permissions=["clipboard-read", "clipboard-write"]) as watched:
        yield CalculatorPage(watched.page).open(site)


def entries(page):
    return page.page.evaluate("() => history.length")


def settled(page, pattern):
    """The address bar follows the scenario a moment later."""
    expect(page.page).to_have_url(re.compile(pattern))


def test_back_and_forward_lead_through_what_was_typed_and_chosen(page):
    page.reset()
    settled(page, r"\?v=1&m=deepseek-v3$")
    before = entries(page)
    page.type("num_layers", "60")
    page.page.keyboard.press("Tab")
    settled(page, "L=60$")
    page.choose("kv_cache_dtype", "fp8")
    settled(page, "L=60&f=fp8")
    page.open_tab("ranks")
    settled(page, "f=fp8&tab=ranks$")
    assert entries(page) > before
    page.page.go_back()
    settled(page, "f=fp8$")
    expect(page.find("#tab-layers")).to_have_attribute("aria-selected", "true")
    page.page.go_forward()
    expect(page.find("#tab-ranks")).to_have_attribute("aria-selected", "true")
    page.page.go_back()
    while "L=60" in page.address():
        page.page.go_back()
        page.settle()
    expect(page.box("num_layers")).to_have_value("61")
    assert page.number("per_rank.bytes_per_token") == 70_272
    page.page.go_forward()
    expect(page.box("num_layers")).to_have_value("60")
    assert page.result()["scenario"]["num_layers"] == 60


def test_typing_makes_one_entry_however_many_keys(page):
    page.reset()
    for units, address in (("GB", "u=GB$"), ("GiB", r"\?v=1&m=deepseek-v3$")):  # no way forward is left
        page.choose("units", units)
        settled(page, address)
    before = entries(page)
    for text in ("1", "12", "125"):
        page.type("num_layers", text)
        settled(page, f"L={text}$")
    page.page.keyboard.press("Enter")
    page.page.wait_for_timeout(1000)  # the entry is made once the address is at rest
    assert entries(page) == before + 1
    page.page.go_back()
    expect(page.box("num_layers")).to_have_value("61")


def test_a_slider_makes_no_entry_and_the_way_back_keeps_where_it_was_left(page):
    page.reset()
    settled(page, r"\?v=1&m=deepseek-v3$")
    before = entries(page)
    page.slide("num_layers", 40)
    settled(page, "L=40$")
    page.slide("num_layers", 30)
    settled(page, "L=30$")
    assert entries(page) == before
    page.choose("units", "GB")
    settled(page, "L=30&u=GB$")
    page.page.go_back()
    settled(page, "L=30$")
    expect(page.box("num_layers")).to_have_value("30")
    expect(page.box("units")).to_have_value("GiB")


def test_a_model_that_is_picked_is_gone_back_to_whatever_is_typed_next(page):
    page.reset()
    settled(page, r"\?v=1&m=deepseek-v3$")
    page.choose("model", "gemma-3-27b")
    page.type("context_tokens", "2048")
    settled(page, "m=gemma-3-27b&t=2048$")
    page.page.keyboard.press("Tab")
    page.choose("model", "qwen3.5-397b-a17b")
    settled(page, "m=qwen3.5-397b-a17b&t=2048$")
    for earlier in ("m=gemma-3-27b&t=2048$", "m=gemma-3-27b$", "m=deepseek-v3$"):
        page.page.go_back()
        settled(page, earlier)


def test_what_is_compared_can_be_gone_back_from(page):
    page.reset()
    page.open_tab("compare")
    settled(page, "tab=compare$")
    before = entries(page)
    page.find("#compare_box").click()
    page.page.keyboard.insert_text("llama-3.1-8b")
    page.page.keyboard.press("Enter")
    settled(page, "x=.*llama-3.1-8b")
    page.find("#compare_pin").click()
    settled(page, "&p=")
    assert entries(page) == before + 2
    page.page.go_back()
    settled(page, "llama-3.1-8b[^&]*&tab=compare$")
    page.page.go_back()
    settled(page, r"\?v=1&m=deepseek-v3&tab=compare$")


def test_the_link_that_is_copied_is_the_present_scenario(page, site):
    page.reset()
    page.type("num_layers", "33")
    page.find("#copy").click()
    expect(page.find("#status")).to_have_text("Link copied")
    assert page.page.evaluate("() => navigator.clipboard.readText()") == f"{site}?v=1&m=deepseek-v3&L=33"


def test_a_link_to_a_tab_opens_it(page, site):
    page.open(f"{site}?m=gemma-3-27b&tab=ranks")
    expect(page.find("#tab-ranks")).to_have_attribute("aria-selected", "true")
    expect(page.find("#panel-ranks")).to_be_visible()
    assert page.table("ranks")[0][0] == "1"
    expect(page.find("#panel-layers")).to_be_hidden()
