"""Memory against context for many models, as one SVG: a line each, its name beside its end.

Drawn as text rather than by Bokeh, because it is made only while its tab is open and must not make the start
longer; the style sheet dims the other lines while one is hovered or focused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product
from math import log2

from ..comparison import Compared, Weighed
from .scales import Scale, count_text, scale

LEAST = 1024
POINTS = 40
LEFT, TOP, BOTTOM = 64, 12, 34
LINE_HEIGHT = 16  # of a name
SIZES = {"wide": (960, 300), "narrow": (400, 150)}  # width, and of it room for the names
COLOURS = "abcdefg"  # the themes' lines
DASHES = ("", "8 4", "2 3")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One model's line: its points, and the height of its name."""

    name: str
    amount: str
    colour: str
    dash: str
    points: str
    end: tuple[float, float]
    label: float


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing: the axes with their words, and the lines, lowest last."""

    size: str
    width: int
    height: int
    right: int
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    chosen: float
    lines: tuple[Line, ...]


def contexts(tokens: int, axes: str) -> list[int]:
    """The contexts of the points, the chosen one among them; a linear axis ends at twice as far as chosen."""
    highest = max(2**20, tokens) if axes == "log" else 2 * tokens
    least = min(LEAST, tokens)
    spread = (round(least * 2 ** (log2(highest / least) * step / (POINTS - 1))) for step in range(POINTS))
    return sorted({*spread, tokens, highest})


def charts(
    compared: Sequence[Compared],
    name: Callable[[Compared], str],
    tokens: int,
    axes: str,
    base: int,
    write: Callable[[int], str],
) -> list[Chart]:
    """The drawing in both of `SIZES`, largest model first."""
    drawn = [(one, one.weighed) for one in reversed(compared) if one.weighed]
    at = contexts(tokens, axes)
    sizes = [[weighed.at(count).total for count in at] for _, weighed in drawn]
    highest = max((max(line) for line in sizes), default=1)
    least = min((size for line in sizes for size in line if size), default=1)
    across = scale(axes, at[0], at[-1], 1024)
    up = scale(axes, least, highest, base)
    return [
        _chart(size, [(name(one), weighed) for one, weighed in drawn], sizes, at, tokens, across, up, write)
        for size in SIZES
    ]


def _chart(
    size: str,
    drawn: Sequence[tuple[str, Weighed]],
    sizes: Sequence[Sequence[int]],
    at: Sequence[int],
    tokens: int,
    across: Scale,
    up: Scale,
    write: Callable[[int], str],
) -> Chart:
    width, names = SIZES[size]
    height = max(420, LINE_HEIGHT * len(drawn) + TOP + BOTTOM)
    right, bottom = width - names, height - BOTTOM

    def x(count: float) -> float:
        return round(LEFT + across.place(count) * (right - LEFT), 1)

    def y(amount: float) -> float:
        return round(bottom - up.place(amount) * (bottom - TOP), 1)

    ends = [y(line[-1]) for line in sizes]
    labels = apart(ends, LINE_HEIGHT, TOP, bottom)
    cues = islice(cycle(product(DASHES, COLOURS)), len(drawn))
    return Chart(
        size=size,
        width=width,
        height=height,
        right=right,
        across=tuple((x(tick), count_text(tick)) for tick in across.ticks),
        up=tuple((y(tick), write(tick)) for tick in up.ticks),
        chosen=x(tokens),
        lines=tuple(
            Line(
                name=name,
                amount=write(weighed.at(tokens).total),
                colour=colour,
                dash=dash,
                points=" ".join(f"{x(count)},{y(amount)}" for count, amount in zip(at, line, strict=True)),
                end=(x(at[-1]), end),
                label=label,
            )
            for (name, weighed), line, end, label, (dash, colour) in zip(
                drawn, sizes, ends, labels, cues, strict=True
            )
        ),
    )


def apart(ends: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Heights for names at `ends`, in their order, at least `gap` apart and between `top` and `bottom`."""
    order = sorted(range(len(ends)), key=lambda number: ends[number])
    placed: list[float] = []
    for number in order:
        placed.append(max(ends[number], placed[-1] + gap if placed else top))
    floor = bottom
    for place in reversed(range(len(placed))):
        placed[place] = min(placed[place], floor)
        floor = placed[place] - gap
    heights = dict(zip(order, placed, strict=True))
    return [round(heights[number], 1) for number in range(len(ends))]
