"""Chart 1: memory per rank against context, a line for each way of growing and one for the total.

The points are placed by a `Scale` and drawn on plain linear scales: a Bokeh axis cannot change from linear to
logarithmic once it is drawn, and its byte formatter calls 1,024-based units KB and GB.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from html import escape

import panel as pn
from bokeh.core.properties import field, value
from bokeh.model import Model
from bokeh.models import Axis, ColumnDataSource, FixedTicker, HoverTool, LinearAxis, Range1d
from bokeh.plotting import figure

from ..locales import text
from ..units import SYSTEMS, exact, human
from .scales import contexts, count_text, scale, with_steps
from .state import State
from .theme import DASHES, THEMES, Theme

HEIGHT = 340
FONT = "system-ui, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"
LINES = ("linear", "bounded", "constant", "total")
WIDTHS = {
    "linear": 4.5,
    "bounded": 4.5,
    "constant": 4.5,
    "total": 1.5,
}  # thin: seen on what it coincides with
HIGHEST_LABEL = 1.04
LABEL_GAP = 0.07  # of the axis: direct labels stand at least this far apart
BARE = {
    "sizing_mode": "stretch_width",
    "toolbar_location": None,
    "border_fill_color": None,
    "background_fill_color": None,
    "outline_line_color": None,
}


NOWHERE = float("nan")


class Curves(pn.viewable.Viewer):
    """The figure; it follows `state`."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state
        self.points = ColumnDataSource()
        # The direct labels: an axis takes just the room that they need.
        self.names = LinearAxis(ticker=FixedTicker())
        self.marks = ColumnDataSource()  # where a growth stops; the last one is the chosen context
        self.hover = HoverTool(mode="vline", point_policy="follow_mouse")
        self.figure = figure(
            height=HEIGHT,
            x_range=Range1d(0, 1.01),
            y_range=Range1d(0, 1.08),
            tools=[self.hover],
            min_border_left=72,
            **BARE,
        )
        self.figure.add_layout(self.names, "right")
        self.figure.xaxis[0].ticker, self.figure.yaxis[0].ticker = FixedTicker(), FixedTicker()
        self.place()
        self.lines = {
            name: self.figure.line(
                "x", name, source=self.points, line_dash=DASHES[name], line_width=WIDTHS[name]
            )
            for name in LINES
        }
        self.hover.renderers = [self.lines["total"]]
        dotted = {"line_color": "colour", "line_dash": "dotted"}
        self.drops = self.figure.segment("x", 0, "x", "top", source=self.marks, **dotted)
        self.dot = self.figure.scatter("x", "top", size="size", source=self.marks)
        aligned = {"text_align": "align", "text_baseline": field("baseline")}
        shifted = {"x_offset": "beside", "y_offset": "above"}
        self.words = self.figure.text("x", "top", text="text", source=self.marks, **aligned, **shifted)
        self.annotate()
        self.paint()
        state.param.watch(self.place, ["answer", "language", "theme"])
        state.param.watch(self.paint, ["theme"])

    def place(self, *_: object) -> None:
        """Place every point and write every word anew."""
        answer, language = self.state.answer, self.state.language
        scenario = answer.scenario
        write = partial(human, system=scenario.units)
        bounds = answer.rank.bounds()
        tokens = contexts(scenario.context_tokens, bounds)
        if scenario.growth == "held":
            tokens = with_steps(tokens, answer.held_steps())
        parts = self.state.curve(tokens)
        present = [name for name in LINES if getattr(parts[-1], name)] or ["total"]
        across = scale(scenario.axes, tokens[0], tokens[-1], 1024)
        least = min(getattr(parts[0], name) for name in present)
        up = scale(scenario.axes, least, parts[-1].total, SYSTEMS[scenario.units][1])
        empty = [NOWHERE] * len(tokens)  # a line that the model does not have
        self.amounts = {name: [getattr(part, name) for part in parts] for name in present}
        lines = {name: list(map(up.place, amounts)) for name, amounts in self.amounts.items()}
        columns: dict[str, list[object]] = {
            "x": [across.place(count) for count in tokens],
            "tokens": [_count(language, count) for count in tokens],
            **{name: lines.get(name, empty) for name in LINES},
            **{f"{name}_text": [""] * len(tokens) for name in present},  # `annotate` writes them
        }
        replace(self.points, columns)
        shown = [bound for bound in bounds if bound <= tokens[-1]]
        chosen = parts[tokens.index(scenario.context_tokens)].total
        places = [across.place(count) for count in (*shown, scenario.context_tokens)]
        # Words stand on the side that has room: left of the dot, as the line rises.
        right = [*(at < 0.5 for at in places[:-1]), places[-1] < 0.3]
        theme, bends = THEMES[self.state.theme], len(shown)
        marks: dict[str, list[object]] = {
            "x": [*places],
            "top": [*[1.05] * bends, up.place(chosen)],
            "text": [*(text(language, "chart.bend", tokens=bound) for bound in shown), write(chosen)],
            "align": ["left" if one else "right" for one in right],
            "beside": [6 if one else -6 for one in right],
            "baseline": [*["top"] * bends, "bottom"],
            "above": [*[0] * bends, -6],
            "size": [*[0] * bends, 9],
            "colour": [*[theme.bounded] * bends, theme.muted],
        }
        replace(self.marks, marks)
        ends = _apart({name: up.place(getattr(parts[-1], name)) for name in present})
        _write(self.names, {height: text(language, f"growth.{name}") for name, height in ends.items()})
        _write(self.figure.xaxis[0], {across.place(tick): count_text(tick) for tick in across.ticks})
        _write(self.figure.yaxis[0], {up.place(tick): write(tick) for tick in up.ticks})
        update(self.figure.xaxis[0], axis_label=text(language, f"chart.x.{scenario.axes}"))
        rows = {text(language, f"growth.{name}"): f"@{name}_text" for name in reversed(present)}
        update(self.hover, tooltips=tooltip("@tokens", rows))

    def annotate(self) -> None:
        """Write what hangs at the mouse, a third of a move's work: while a slider moves nobody reads it."""
        units = self.state.answer.scenario.units
        texts = {f"{name}_text": [_amount(one, units) for one in self.amounts[name]] for name in self.amounts}
        replace(self.points, {**self.points.data, **texts})

    def paint(self, *_: object) -> None:
        """Put on the colours of the theme."""
        theme = THEMES[self.state.theme]
        for name, line in self.lines.items():
            line.glyph.line_color = theme.ink if name == "total" else getattr(theme, name)
        self.dot.glyph.update(fill_color=theme.ink, line_color=theme.card)
        self.words.glyph.update(text_color=theme.ink, text_font_size="12px", text_font=value(FONT))
        paint(self.figure, theme)
        self.names.update(major_label_text_color=theme.ink, axis_line_color=None, major_tick_line_color=None)

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.pane.Bokeh(self.figure, sizing_mode="stretch_width")


def _apart(ends: dict[str, float]) -> dict[str, float]:
    """Heights for the names of the lines, pushed apart where lines end together."""
    names = sorted(ends, key=lambda name: (ends[name], LINES.index(name)))
    placed: list[float] = []
    for name in names:
        placed.append(max(ends[name], placed[-1] + LABEL_GAP) if placed else ends[name])
    ceiling = HIGHEST_LABEL
    for at in reversed(range(len(placed))):  # back below the top, and only those in the way with them
        placed[at] = min(placed[at], ceiling)
        ceiling = placed[at] - LABEL_GAP
    return dict(zip(names, placed, strict=True))


def _write(drawn: Axis, labels: dict[float, str]) -> None:
    """Write `labels` at their places on an axis."""
    update(drawn.ticker, ticks=list(labels))
    update(drawn, major_label_overrides=labels)


def update(model: Model, **values: object) -> None:
    """Give `model` the values that it does not have: Bokeh examines also those that it has, at every move."""
    for name, new in values.items():
        if getattr(model, name) != new:
            setattr(model, name, new)


def paint(plot: figure, theme: Theme) -> None:
    """The axes and grid of a figure in the colours of a theme."""
    for drawn in plot.axis:
        drawn.update(
            major_label_text_color=theme.muted,
            axis_label_text_color=theme.muted,
            axis_line_color=theme.rule,
            major_tick_line_color=theme.rule,
            minor_tick_line_color=None,
            major_label_text_font=FONT,
            axis_label_text_font=FONT,
            axis_label_text_font_style="normal",
            major_label_text_font_size="12px",
            axis_label_text_font_size="12px",
        )
    plot.grid.grid_line_color = theme.rule


def tooltip(head: str, rows: Mapping[str, str]) -> str:
    """What hangs at the mouse, as HTML: the words of Bokeh's own rows are too pale to be read on white."""
    row = '<div style="display: flex; justify-content: space-between; gap: 16px">{}</div>'
    lines = (row.format(f"<span>{escape(word)}</span><b>{column}</b>") for word, column in rows.items())
    return f"<div>{head}</div>{''.join(lines)}"


def replace(source: ColumnDataSource, columns: dict[str, list[object]]) -> None:
    """Give `source` new columns; of as many points as it has only those that changed travel to the page."""
    old = source.data
    if old.keys() != columns.keys() or any(len(old[name]) != len(columns[name]) for name in old):
        source.data = columns
    elif changed := {name: column for name, column in columns.items() if column != old[name]}:
        old.update(changed)


@lru_cache(1024)
def _count(language: str, tokens: int) -> str:
    return text(language, "chart.tokens", tokens=tokens)


@lru_cache(1024)  # lines coincide, and a slider goes to and fro
def _amount(amount: int, units: str) -> str:
    return f"{human(amount, units)} ({exact(amount)} B)"
