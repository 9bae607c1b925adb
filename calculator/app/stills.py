"""The charts as HTML and SVG, from what their figures hold: the page shows them before BokehJS can draw."""

from bokeh.models import Axis

from .bars import PARTS, Bars
from .curves import LINES, Curves
from .readouts import templates


def curves(chart: Curves) -> str:
    """The curves; what the labels say and where they stand is read off the figure."""
    across, up = chart.figure.x_range.end, chart.figure.y_range.end
    points = chart.points.data
    marks = [chart.marks.data[name] for name in ("x", "top", "text")]
    *bends, (at, height, amount) = zip(*marks, strict=True)
    lines = []
    for name in LINES:
        if f"{name}_text" in points:
            places = zip(points["x"], points[name], strict=True)
            lines.append((name, " ".join(f"{x / across:.4f},{1 - y / up:.4f}" for x, y in places)))
    still = {
        "lines": lines,
        "across": _ticks(chart.figure.xaxis[0], across),
        "up": _ticks(chart.figure.yaxis[0], up),
        "names": _ticks(chart.names, up),
        "bends": [(round(x / across, 4), word) for x, _, word in bends],
        "chosen": (round(at / across, 4), round(height / up, 4)),
        "amount": amount,
        "label": chart.figure.xaxis[0].axis_label,
    }
    return templates().get_template("stills.html").module.curves(still)


def bars(chart: Bars) -> str:
    """The bars."""
    longest = chart.figure.x_range.end
    first, last = chart.figure.y_range.end, chart.figure.y_range.start
    rows, parts = chart.rows.data, chart.parts.data
    lengths = [end - start for start, end in zip(parts["left"], parts["right"], strict=True)]
    still = {
        "height": chart.figure.height,
        "rows": [
            {
                "name": rows["name"][row],
                "amount": rows["amount"][row],
                "top": (rows["name_y"][row] - first) / (last - first),
                "parts": [(part, lengths[len(PARTS) * row + at] / longest) for at, part in enumerate(PARTS)],
            }
            for row in range(len(rows["y"]))
        ],
    }
    return templates().get_template("stills.html").module.bars(still)


def _ticks(axis: Axis, end: float) -> list[tuple[float, str]]:
    """What is written on an axis, and at which share of it."""
    return [(round(at / end, 4), word) for at, word in axis.major_label_overrides.items()]
