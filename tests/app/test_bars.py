"""Chart 2: the compared models as bars, smallest first, each part as long as its bytes."""

from itertools import pairwise

import pytest

from calculator import catalogue
from calculator.app.bars import PARTS, Bars
from calculator.app.theme import HATCHES, THEMES
from calculator.comparison import comparison
from calculator.locales import LANGUAGES, text
from calculator.units import exact, human
from tests.app.page import changed, hover_rows, opened

CHANGES = {
    "at the start": {},
    "short": {"compare_tokens": "1"},
    "long": {"compare_tokens": str(2**27)},
    "a format of heads": {"model": "llama-7b", "kv_cache_dtype": "nvfp4"},
    "other formats": {"kv_cache_dtype": "fp8", "state_dtype": "bf16"},
}
every_change = pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)


def drawn(**changes):
    state = opened()
    bars = Bars(state)
    changed(state, **changes)
    return bars


def test_the_figures_of_the_article_are_on_the_bars():
    rows = drawn().rows.data
    assert rows["exact"] == [
        "3,264,061,440 B",  # 3,072,000,000 and 192,061,440 of state
        "7,027,200,000 B",
        "7,832,400,000 B",
        "10,015,200,000 B",
        "25,395,200,000 B",
    ]
    assert set(rows["name"]) == {catalogue.entry(model).name for model in catalogue.FLAGSHIPS}


def test_no_bars_are_drawn_where_no_model_can_be():
    bars = drawn()
    bars.state.compared = []
    assert all(len(column) == 0 for source in (bars.rows, bars.parts) for column in source.data.values())


@every_change
def test_bars_are_sorted_and_as_long_as_their_bytes(changes):
    bars = drawn(**changes)
    rows = bars.rows.data
    compared = [one for one in comparison(bars.state.scenario) if one.parts]
    totals = [bar.parts.total for bar in compared]
    assert all(before <= after for before, after in pairwise(totals))
    assert rows["name"] == [catalogue.entry(bar.key).name for bar in compared]
    assert rows["end"] == [pytest.approx(total / totals[-1]) for total in totals]
    assert rows["end"][-1] == 1
    assert rows["exact"] == [f"{exact(total)} B" for total in totals]


@every_change
def test_the_parts_of_a_bar_follow_each_other_and_add_up(changes):
    bars = drawn(**changes)
    rows, parts = bars.rows.data, bars.parts.data
    compared = [one for one in comparison(bars.state.scenario) if one.parts]
    longest = compared[-1].parts.total
    edges = zip(parts["left"], parts["right"], strict=True)
    for row, bar in enumerate(compared):
        edge = 0
        for part, (left, right) in zip(PARTS, edges, strict=False):
            assert left == edge
            assert right - left == pytest.approx(getattr(bar.parts, part) / longest, abs=1e-12)
            edge = right
        assert edge == rows["end"][row]
    assert not list(edges)
    for name in ("y", "name", "exact"):
        assert parts[name] == [one for one in rows[name] for _ in PARTS]


@pytest.mark.parametrize("units", ["GiB", "GB"])
def test_the_words_at_the_bars_are_those_of_the_readouts(units):
    bars = drawn(units=units)
    assert bars.rows.data["amount"] == [human(bar.parts.total, units) for bar in bars.state.compared]


def test_bars_and_words_are_within_the_picture():
    bars = drawn()
    rows, seen = bars.rows.data, bars.figure.y_range
    assert all(seen.end < y < seen.start for y in rows["y"] + rows["name_y"])  # the first bar is on top
    assert max(rows["end"]) < bars.figure.x_range.end - 0.2  # room for the number after it


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_hover_follows_the_language(language):
    hover = drawn(language=language).hover.tooltips
    assert hover_rows(hover) == {text(language, "growth.total"): "@exact"}
    assert "@name" in hover


@pytest.mark.parametrize("name", THEMES)
def test_the_theme_colours_bars_and_words(name):
    bars, theme = drawn(theme=name), THEMES[name]
    assert bars.bars.glyph.hatch_color == theme.card
    assert bars.parts.data["colour"][: len(PARTS)] == [getattr(theme, part) for part in PARTS]
    assert set(bars.parts.data["colour"]) == {getattr(theme, part) for part in PARTS}
    assert {words.glyph.text_color for words in bars.words} == {theme.ink}


def test_the_parts_differ_by_more_than_colour():
    hatches = drawn().parts.data["hatch"]
    assert hatches[: len(PARTS)] == [HATCHES[part] for part in PARTS]
    assert len(set(hatches)) == len(PARTS)
