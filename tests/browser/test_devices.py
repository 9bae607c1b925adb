"""Fingers, magnified pages, forced colours, reduced motion and paper."""

import pytest
from playwright.sync_api import expect

from calculator.fields import TABS

from .calculator_page import CalculatorPage
from .conftest import watching
from .test_accessibility import assert_no_violations
from .watched import origin

# What is touched and is less high than a finger needs.
TARGETS = """() => [...document.querySelectorAll('button, select, input, summary, a.button')]
  .filter((one) => one.checkVisibility() && !one.matches('.how, [type=checkbox]') && !one.closest('dialog'))
  .map((one) => [one.id || one.textContent.trim() || one.ariaLabel, one.getBoundingClientRect().height])
  .filter(([, height]) => height < 44)"""
TOOLTIP = """(said) => [...document.querySelectorAll('.bk-Tooltip')]
  .some((one) => one.checkVisibility() && one.shadowRoot.textContent.includes(said))"""
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def phone(browser, site):
    with watching(browser, origin(site), **PHONE) as watched:
        yield CalculatorPage(watched.page).open(f"{site}?m=gemma-3-27b&e=vllm")


def test_everything_that_is_touched_is_at_least_44_pixels_high(phone):
    for tab in TABS:
        phone.open_tab(tab)
        assert phone.page.evaluate(TARGETS) == []
        assert phone.page.evaluate(SIDEWAYS) <= 0


def test_a_how_can_be_touched_without_hitting_its_neighbours(phone):
    heights = phone.find(".how").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().height)")
    assert min(heights) >= 44


def test_a_phone_shows_the_answer_first_and_the_inputs_one_touch_away(phone):
    top = phone.find("#headline").bounding_box()["y"]
    assert top < phone.find("#inputs").bounding_box()["y"]
    phone.find('.jump a[href="#inputs"]').tap()
    expect(phone.find("#box-model")).to_be_in_viewport()
    expect(phone.find("#brief")).to_be_in_viewport()
    expect(phone.find("#brief")).to_contain_text("8.04 GiB")
    phone.find('.jump a[href="#answers"]').tap()
    expect(phone.find("#headline")).to_be_in_viewport()


def test_a_tap_on_a_chart_says_what_stands_there(browser, site):
    with watching(browser, origin(site), **PHONE) as watched:
        tap(CalculatorPage(watched.page).open(f"{site}?m=gemma-3-27b&e=vllm"))


def tap(phone):
    for chart, said in (("curves", "tokens"), ("bars", " B")):
        box = phone.find(f"#{chart}")
        box.scroll_into_view_if_needed()
        box.tap(position={"x": 120, "y": 120})
        phone.page.wait_for_function(TOOLTIP, arg=said)


def test_axe_finds_nothing_on_a_phone(phone):
    for tab in ("layers", "ranks", "factors", "engine"):
        phone.open_tab(tab)
        assert_no_violations(phone, f"phone, {tab}")


@pytest.mark.parametrize(
    "settings",
    [
        {"viewport": {"width": 720, "height": 450}, "device_scale_factor": 2},  # 1440 wide at 200 %
        {"forced_colors": "active", "reduced_motion": "reduce"},
        {"forced_colors": "active", "color_scheme": "dark"},
    ],
    ids=["200 %", "forced colours, reduced motion", "forced colours, dark"],
)
def test_axe_finds_nothing_whatever_the_browser_is_set_to(browser, site, settings):
    with watching(browser, origin(site), **settings) as watched:
        page = CalculatorPage(watched.page).open(f"{site}?m=gemma-3-27b")
        for tab in TABS:
            page.open_tab(tab)
            assert_no_violations(page, f"{settings}, {tab}")
        assert watched.page.evaluate(SIDEWAYS) <= 0


def test_axe_finds_nothing_in_the_dialogs(live):
    for theme in ("light", "dark"):
        for language in ("en", "zh"):
            live.set(theme=theme, language=language)
            for opener in ("#help", '[data-how="per_rank.total_bytes"]'):
                live.find(opener).click()
                live.settle()
                assert_no_violations(live, f"{opener}, {theme}, {language}")
                live.page.keyboard.press("Escape")


def test_motion_stops_where_it_is_not_wanted(live):
    live.page.emulate_media(reduced_motion="reduce")
    try:
        moving = live.page.evaluate(
            """() => [...document.querySelectorAll('*')].filter((one) => ['', '::before'].some((part) =>
              parseFloat(getComputedStyle(one, part).transitionDuration) > 0
              || getComputedStyle(one, part).animationName !== 'none')).map(({ tagName }) => tagName)"""
        )
        assert moving == []
    finally:
        live.page.emulate_media(reduced_motion="no-preference")


def test_paper_shows_the_answers_with_address_and_date_and_no_inputs(live):
    live.set(model="gemma-3-27b")
    live.page.emulate_media(media="print")
    try:
        live.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
        expect(live.find("#printed")).to_contain_text("?v=1&m=gemma-3-27b")
        expect(live.find("#printed")).to_contain_text("20")  # a year
        expect(live.find("#chosen")).to_contain_text("Gemma 3 27B · TP 1 · BF16")
        for hidden in (".rail", "#copy", ".view", '[role="tablist"]', ".jump"):
            expect(live.find(hidden)).to_be_hidden()
        for shown in ("#headline", "#curves", "#bars", "#layers"):
            expect(live.find(shown)).to_be_visible()
    finally:
        live.page.emulate_media(media="screen")
