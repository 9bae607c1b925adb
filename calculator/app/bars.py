"""Chart 2: one request of several models side by side, smallest first, split by the way it grows."""

import panel as pn
from bokeh.core.properties import field, value
from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

from ..locales import text
from ..units import exact, human
from .curves import BARE, FONT, replace, tooltip, update
from .state import State
from .theme import HATCHES, THEMES

ROW_HEIGHT = 52
LOW_ROW_HEIGHT = 38  # of many
LEAST_ROWS = 5
PARTS = ("linear", "bounded", "constant")
PART = ("y", "left", "right", "colour", "hatch", "name", "exact")  # what is known of one


class Bars(pn.viewable.Viewer):
    """The figure; it follows `state`."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state
        self.rows = ColumnDataSource()
        self.parts = ColumnDataSource()
        self.hover = HoverTool(mode="hline", point_policy="follow_mouse", limit=1)  # all parts say the same
        self.figure = figure(
            x_range=Range1d(0, 1.3),  # room for the number after the longest bar
            y_range=Range1d(0.5, -0.62),
            tools=[self.hover],
            **BARE,
        )
        self.place()
        self.figure.axis.visible = False
        self.figure.grid.visible = False
        self.bars = self.figure.hbar(
            y="y",
            left="left",
            right="right",
            height=0.42,
            source=self.parts,
            fill_color="colour",
            hatch_pattern=field("hatch"),
            hatch_alpha=0.6,
            line_color=None,
        )
        self.hover.renderers = [self.bars]
        self.words = [
            self.figure.text(0, "name_y", text="name", source=self.rows, text_baseline="bottom"),
            self.figure.text("end", "y", text="amount", source=self.rows, x_offset=6, text_baseline="middle"),
        ]
        self.paint()
        state.param.watch(self.place, ["compared", "language", "units", "theme"])
        state.param.watch(self.paint, ["theme"])

    def place(self, *_: object) -> None:
        """Sort and measure the bars anew."""
        language, units = self.state.language, self.state.units
        bars = [one for one in self.state.compared if one.parts]
        longest = max((bar.parts.total for bar in bars), default=1) or 1  # an encoder takes nothing
        row = ROW_HEIGHT if len(bars) <= 2 * LEAST_ROWS else LOW_ROW_HEIGHT
        update(self.figure, height=row * max(len(bars), LEAST_ROWS) + 12)
        update(self.figure.y_range, start=max(len(bars), LEAST_ROWS) - 0.5)
        rows: dict[str, list[object]] = {
            "y": [row + 0.12 for row in range(len(bars))],
            "name_y": [row - 0.12 for row in range(len(bars))],
            "name": [self.state.compared_name(bar) for bar in bars],
            "end": [bar.parts.total / longest for bar in bars],
            "amount": [human(bar.parts.total, units) for bar in bars],
            "exact": [f"{exact(bar.parts.total)} B" for bar in bars],
        }
        replace(self.rows, rows)
        theme = THEMES[self.state.theme]
        parts: dict[str, list[object]] = {name: [] for name in PART}
        for bar, y, name, total in zip(bars, rows["y"], rows["name"], rows["exact"], strict=True):
            start = 0
            for part in PARTS:
                end = start + getattr(bar.parts, part)
                drawn = (y, start / longest, end / longest, getattr(theme, part), HATCHES[part], name, total)
                for column, one in zip(parts.values(), drawn, strict=True):
                    column.append(one)
                start = end
        replace(self.parts, parts)
        update(self.hover, tooltips=tooltip("@name", {text(language, "growth.total"): "@exact"}))

    def paint(self, *_: object) -> None:
        """Put on the colours of the theme."""
        theme = THEMES[self.state.theme]
        self.bars.glyph.hatch_color = theme.card
        for words in self.words:
            words.glyph.update(text_color=theme.ink, text_font_size="13px", text_font=value(FONT))

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.pane.Bokeh(self.figure, sizing_mode="stretch_width")
