"""Chart 1: what is drawn is the estimate, whatever the axes, the units, the language and the theme."""

import json
import math
import re
from itertools import pairwise

import pytest
from bokeh.document import Document
from bokeh.models import CustomJS
from hypothesis import given
from hypothesis import strategies as st

from calculator.app.curves import HIGHEST_LABEL, LABEL_GAP, LINES, Curves, _apart
from calculator.app.main import App
from calculator.app.rehearsal import every_sort
from calculator.app.scales import contexts
from calculator.app.theme import THEMES
from calculator.locales import LANGUAGES, text
from calculator.units import BINARY, DECIMAL, human
from tests.app.page import SYSTEM, changed, hover_rows, opened

MODELS = {
    "latent": {},
    "grouped": {"model": "llama-3.1-8b"},
    "window": {"model": "gemma-3-27b"},
    "state": {"model": "qwen3.5-397b-a17b"},
    "only windows": {"model": "mistral-7b-v0.1"},
    "only states": {"architecture": "state", "num_global_layers": "0"},
    "narrow windows": {"architecture": "window", "num_global_layers": "0", "sliding_window": "1"},
    "windows that never end": {"architecture": "window", "sliding_window": str(2**27)},
    "hardly growing windows": {"architecture": "window", "num_global_layers": "0", "sliding_window": "300"},
    "one token": {"context_tokens": "1"},
    "far": {"context_tokens": str(2**27)},
    "many": {"num_sequences": "512", "tensor_parallel_size": "8"},
}
every_model = pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
every_axes = pytest.mark.parametrize("axes", ["log", "linear"])


def drawn(axes="log", **changes):
    return Curves(changed(opened(), axes=axes, **changes))


def labels(axis):
    assert list(axis.major_label_overrides) == list(axis.ticker.ticks)
    return axis.major_label_overrides


# --- the points ---


@every_axes
@every_model
def test_the_drawn_points_are_the_estimate(changes, axes):
    chart = drawn(axes, **changes)
    answer, data = chart.state.answer, chart.points.data
    tokens = [int(re.sub(r"\D", "", words)) for words in data["tokens"]]
    assert tokens == contexts(answer.scenario.context_tokens, answer.rank.bounds())
    parts = answer.curve(tokens)
    present = [name for name in LINES if getattr(parts[-1], name)]
    for name in present:
        exact = [
            int(re.search(r"\(([\d,]+) B\)", words)[1].replace(",", "")) for words in data[f"{name}_text"]
        ]
        assert exact == [getattr(part, name) for part in parts]
        assert [words.split(" (")[0] for words in data[f"{name}_text"]] == [human(amount) for amount in exact]
    # The heights say the same numbers: the top is the largest, and the scale inverted gives each of them.
    highest = parts[-1].total
    lowest = min(getattr(parts[0], name) for name in present)
    logarithmic = axes == "log" and min(data[name][0] for name in present) == 0
    for name in present:
        for place, part in zip(data[name], parts, strict=True):
            amount = getattr(part, name)
            back = lowest * (highest / lowest) ** place if logarithmic else place * highest
            assert back == pytest.approx(amount, rel=1e-6)
    for place, count in zip(data["x"], tokens, strict=True):
        back = tokens[0] * (tokens[-1] / tokens[0]) ** place if axes == "log" else place * tokens[-1]
        assert back == pytest.approx(count, rel=1e-6)


def marked(chart, *names):
    """What stands at each mark; the last one is the chosen context."""
    columns = [chart.marks.data[name] for name in names]
    return list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))


@every_axes
@every_model
def test_the_dot_and_the_bends_stand_on_the_lines(changes, axes):
    chart = drawn(axes, **changes)
    answer, data = chart.state.answer, chart.points.data
    *bends, dot = marked(chart, "x", "top")
    assert dot in list(zip(data["x"], data["total"], strict=True))
    assert marked(chart, "size")[-1] > max(marked(chart, "size")[:-1], default=0) == 0
    assert {x for x, _ in bends} <= set(data["x"])
    bounds = [bound for bound in answer.rank.bounds() if bound <= max(2**20, answer.scenario.context_tokens)]
    assert marked(chart, "text")[:-1] == [text("en", "chart.bend", tokens=bound) for bound in bounds]


@every_model
def test_growth_stops_at_the_bend(changes):
    chart = drawn(**changes)
    data = chart.points.data
    *bends, _ = marked(chart, "x")
    for bend in bends:
        at = data["x"].index(bend)
        assert len(set(data["bounded"][at:])) == 1 or len(bends) > 1
        assert len(set(data["bounded"][: at + 1])) == at + 1  # it grew up to there


@every_axes
@every_model
def test_lines_that_the_model_does_not_have_are_nowhere(changes, axes):
    chart = drawn(axes, **changes)
    last = chart.state.answer.curve([2**27])[0]
    names = {name for name in LINES if getattr(last, name)}
    for name in LINES:
        heights = chart.points.data[name]
        assert all(map(math.isfinite, heights)) if name in names else all(map(math.isnan, heights))
    words = {text("en", f"growth.{name}") for name in names}
    rows = hover_rows(chart.hover.tooltips)
    assert rows.keys() == words
    assert set(labels(chart.names).values()) == words
    assert {column.removeprefix("@") for column in rows.values()} <= chart.points.data.keys()


# --- the names of the lines ---


@given(st.dictionaries(st.sampled_from(LINES), st.floats(0, 1), min_size=1))
def test_names_stand_apart_inside_the_axis_in_the_order_of_the_lines(ends):
    placed = _apart(ends)
    assert placed.keys() == ends.keys()
    heights = sorted(placed.values())
    assert heights[0] >= 0
    assert heights[-1] <= HIGHEST_LABEL
    assert all(after - before > LABEL_GAP - 1e-9 for before, after in pairwise(heights))
    for one in ends:
        for other in ends:
            if ends[one] < ends[other]:
                assert placed[one] < placed[other]


@given(st.dictionaries(st.sampled_from(LINES), st.floats(0, 1), min_size=1))
def test_a_name_that_nothing_is_near_stands_at_its_line(ends):
    placed = _apart(ends)
    for name, end in ends.items():
        others = [other for key, other in ends.items() if key != name]
        if all(abs(other - end) > 4 * LABEL_GAP for other in others):
            assert placed[name] == end


@every_axes
@every_model
def test_every_word_on_an_axis_is_within_the_picture(changes, axes):
    chart = drawn(axes, **changes)
    across, up = chart.figure.x_range, chart.figure.y_range
    for axis, seen in ((chart.figure.xaxis[0], across), (chart.figure.yaxis[0], up), (chart.names, up)):
        assert len(labels(axis)) >= (1 if axis is chart.names else 2)
        assert all(seen.start <= place <= seen.end for place in labels(axis))
        assert len(set(labels(axis).values())) == len(labels(axis))


# --- changes ---


def test_the_theme_colours_everything_that_has_a_colour():
    state = opened("m=qwen3.5-397b-a17b&a=window&g=2")
    chart = Curves(state)
    for name in ("dark", "light"):
        changed(state, theme=name)
        theme = THEMES[name]
        assert {key: line.glyph.line_color for key, line in chart.lines.items()} == {
            "linear": theme.linear,
            "bounded": theme.bounded,
            "constant": theme.constant,
            "total": theme.ink,
        }
        assert chart.words.glyph.text_color == chart.dot.glyph.fill_color == theme.ink
        assert marked(chart, "colour") == [theme.bounded, theme.muted]
        assert chart.names.major_label_text_color == theme.ink
        for axis in (chart.figure.xaxis[0], chart.figure.yaxis[0]):
            assert axis.major_label_text_color == axis.axis_label_text_color == theme.muted
            assert axis.axis_line_color == theme.rule
        assert {grid.grid_line_color for grid in chart.figure.grid} == {theme.rule}


def test_the_lines_differ_by_more_than_colour():
    chart = drawn(model="qwen3.5-397b-a17b")
    dashes = {name: tuple(chart.lines[name].glyph.line_dash) for name in ("linear", "bounded", "constant")}
    assert len(set(dashes.values())) == 3


def test_what_hangs_at_the_mouse_is_never_that_of_an_earlier_answer():
    state = opened()
    chart = Curves(state)
    before = list(chart.points.data["total_text"])
    changed(state, num_layers="7")
    assert set(chart.points.data["total_text"]) == {""}
    chart.annotate()
    after = chart.points.data["total_text"]
    assert all(after)
    assert after != before
    changed(state, num_layers="61")
    chart.annotate()
    assert chart.points.data["total_text"] == before


def test_units_change_the_words_and_nothing_that_is_exact():
    state = opened()
    chart = Curves(state)
    before = [words.split("(")[1] for words in chart.points.data["total_text"]]
    for units, names in (("GB", DECIMAL), ("GiB", BINARY)):
        changed(state, units=units)
        chart.annotate()
        assert {words.split(" ")[1] for words in labels(chart.figure.yaxis[0]).values()} <= set(names)
        assert [words.split("(")[1] for words in chart.points.data["total_text"]] == before
        others = set(DECIMAL + BINARY) - set(names)
        assert not {words.split(" ")[1] for words in chart.points.data["total_text"]} & others


def test_the_language_changes_every_word():
    state = opened("m=qwen3.5-397b-a17b&a=window&g=2")
    chart = Curves(state)
    for language in (*LANGUAGES, "en"):
        changed(state, language=language)
        growth = {text(language, f"growth.{name}") for name in ("linear", "bounded", "total")}
        assert set(labels(chart.names).values()) == growth
        assert hover_rows(chart.hover.tooltips).keys() == growth
        assert chart.figure.xaxis[0].axis_label == text(language, "chart.x.log")
        assert chart.points.data["tokens"][0] == text(language, "chart.tokens", tokens=256)
        assert marked(chart, "text")[:-1] == [text(language, "chart.bend", tokens=1024)]


def test_the_axes_change_the_heights_and_the_words():
    state = opened()
    chart = Curves(state)
    before = list(chart.points.data["total"])
    changed(state, axes="linear")
    assert chart.points.data["total"] != before
    assert chart.figure.xaxis[0].axis_label == text("en", "chart.x.linear")
    assert labels(chart.figure.yaxis[0])[0.0] == "0 B"
    changed(state, axes="log")
    assert list(chart.points.data["total"]) == before


@pytest.mark.parametrize("model", every_sort())
def test_the_chart_follows_from_model_to_model_as_if_drawn_anew(model):
    state = opened("m=qwen3.5-397b-a17b")
    chart = Curves(state)
    changed(state, model=model)
    chart.annotate()
    fresh = Curves(state)
    assert chart.marks.data == fresh.marks.data
    for name in chart.points.data.keys() | fresh.points.data.keys():
        for one, other in zip(chart.points.data[name], fresh.points.data[name], strict=True):
            assert one == other or (math.isnan(one) and math.isnan(other))
    assert chart.hover.tooltips == fresh.hover.tooltips
    for mine, new in zip(chart.figure.axis, fresh.figure.axis, strict=True):
        assert labels(mine) == labels(new)


# --- what the browser has to load for it ---


@pytest.fixture
def document():
    made = Document()
    App("m=qwen3.5-397b-a17b", SYSTEM).add_to(made)
    return made


def test_the_document_needs_bokeh_min_js_and_nothing_else(document):
    assert len(list(document.models)) > 50
    for model in document.models:
        module = type(model).__module__
        assert module.startswith(("bokeh.models.", "bokeh.plotting.")), model
        assert not module.startswith(("bokeh.models.widgets", "bokeh.models.glyphs.tex")), model
        assert not getattr(model, "stylesheets", None), model  # a chart waits for each of them
        assert type(model).__name__ not in {"DataTable", "MathML", "TeX", "PlainText"}, model


def test_no_model_of_the_document_has_code_that_the_page_would_have_to_evaluate(document):
    for model in document.models:
        assert not isinstance(model, CustomJS)
        assert not model.js_event_callbacks
        assert not model.js_property_callbacks
        assert not type(model).__name__.startswith("CustomJS")
    written = json.dumps(document.to_json(deferred=False))
    assert "CustomJS" not in written
    assert '"code"' not in written
    assert "panel.models" not in written
