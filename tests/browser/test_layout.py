"""Nothing moves when Python takes over, and nothing is wider than the page."""

import pytest

from calculator.fields import TABS

from .calculator_page import CalculatorPage
from .conftest import watching
from .watched import origin

PLACES = """() => Object.fromEntries(['headline', 'strip', 'curves', 'bars', 'layers']
  .map((id) => [id, document.getElementById(id).getBoundingClientRect().toJSON()]))"""
SHIFTS = """() => new Promise((resolve) => {
  const [{ domContentLoadedEventEnd: parsed }] = performance.getEntriesByType('navigation');
  new PerformanceObserver((list) => resolve(list.getEntries()
    .filter(({ startTime }) => startTime > parsed).reduce((sum, { value }) => sum + value, 0)))
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => resolve(0), 500); // no entry, no call
})"""
SMALL = 0.02  # "good" ends at 0.1


def where(page):
    return {
        name: (place["x"], place["y"], place["width"]) for name, place in page.page.evaluate(PLACES).items()
    }


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_moves_when_python_takes_over(browser, site, width):
    with watching(browser, origin(site), viewport={"width": width, "height": 900}) as watched:
        page = CalculatorPage(watched.page)
        watched.page.goto(site)
        before = where(page)
        assert page.find("html").get_attribute("data-kv-state") in {"loading", "painted"}
        page.wait_for("live")
        after = where(page)
        for name in before:
            assert after[name] == pytest.approx(before[name], abs=1), name
        assert page.page.evaluate(SHIFTS) < SMALL


@pytest.mark.parametrize("width", [390, 768, 1024, 1440, 2560])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_never_scrolls_sideways(live, width, language):
    live.set(model="qwen3.5-397b-a17b", language=language)
    live.page.set_viewport_size({"width": width, "height": 900})
    try:
        for tab in TABS:
            live.open_tab(tab)
            live.page.evaluate(
                "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
            )
            scroll, client = live.page.evaluate(
                "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            )
            assert scroll <= client, tab
        for chart in ("curves", "bars"):
            box = live.find(f"#{chart}").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
    finally:
        live.page.set_viewport_size({"width": 1440, "height": 900})
