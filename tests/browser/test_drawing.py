"""What BokehJS draws when it is spared some work is what it draws with all of it; and it draws at once."""

from pathlib import Path

import bokeh
import pytest

WHOLE_BOKEH = Path(bokeh.__file__).parent / "server/static/js/bokeh.min.js"
PICTURES = """() => Object.fromEntries([...Bokeh.index.roots].filter(({ canvas_view }) => canvas_view)
  .map(({ el, canvas_view }) => [el.parentElement.id, canvas_view.primary.canvas.toDataURL()]))"""
BOXES = """() => ['curves', 'bars'].map((id) => {
  const { width, height } = document.getElementById(id).getBoundingClientRect();
  return `<div id="${id}" style="width: ${width}px; height: ${height}px"></div>`;
}).join('')"""
EMBED = """async (address) => {
  const { documents, items, roots } = await (await fetch(address)).json();
  items[0].roots = Object.fromEntries(Object.entries(roots).map(([element, root]) => [root, element]));
  items[0].root_ids = Object.values(roots);
  await Bokeh.embed.embed_items(documents, items);
}"""


@pytest.mark.parametrize("look", ["en-light", "zh-dark"])
def test_the_charts_are_those_that_the_whole_of_bokeh_draws(fresh, site, dist, look):
    language, theme = look.split("-")
    fresh.open(f"{site}?lang={language}&theme={theme}")
    drawn, boxes = fresh.page.evaluate(PICTURES), fresh.page.evaluate(BOXES)
    assert drawn.keys() == {"curves", "bars"}
    (document,) = dist.glob(f"charts-{look}-*.json")
    fresh.page.route("**/bare.html", lambda route: route.fulfill(body=boxes, content_type="text/html"))
    fresh.page.goto(f"{site}bare.html")
    fresh.page.add_script_tag(path=WHOLE_BOKEH)
    fresh.page.evaluate(EMBED, f"{site}{document.name}")
    assert fresh.page.evaluate(PICTURES) == drawn


def test_a_move_is_drawn_without_waiting_for_a_frame(fresh, site):
    fresh.open(site)
    before = fresh.page.evaluate(PICTURES)
    fresh.page.evaluate("() => { window.requestAnimationFrame = () => 0; }")
    fresh.slide("num_layers", 30)
    after = fresh.page.evaluate(PICTURES)
    assert after["curves"] != before["curves"]
    assert after["bars"] == before["bars"]
