"""Where numbers stand on an axis, and which of them are written there."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log2

POINTS = 96
STEPS = 48


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Where a number stands between 0 and 1, and which numbers are written on the axis."""

    place: Callable[[float], float]
    ticks: tuple[int, ...]


def scale(kind: str, lowest: int, highest: int, base: int) -> Scale:
    """A linear scale from 0, or a logarithmic one from `lowest`; ticks are round in units of `base`."""
    lowest, highest = max(lowest, 1), max(highest, 1)  # nothing at all is drawn on the axis
    if kind == "linear" or highest <= lowest:
        step = _round_step(highest / 5, base)
        return Scale(place=lambda number: number / highest, ticks=tuple(range(0, highest + 1, step)))
    span = log2(highest / lowest)
    grain = 2 if base == 1024 else 10
    factor = grain ** max(1, round(span / 6 / log2(grain)))
    tick, ticks = 1, []
    while tick <= highest:
        if tick >= lowest:
            ticks.append(tick)
        tick *= factor if tick >= lowest else grain
    if len(ticks) < 2:  # too short for powers: a linear scale can be read
        return scale("linear", lowest, highest, base)
    return Scale(
        place=lambda number: log2(number / lowest) / span if number > lowest else 0.0, ticks=tuple(ticks)
    )


def _round_step(rough: float, base: int) -> int:
    """1, 2 or 5 (or a power of two) times a power of the unit, at least `rough`."""
    unit = 1
    while unit * base <= rough:
        unit *= base
    steps = [2**power for power in range(11)] if base == 1024 else [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    return next(step for step in steps if step * unit >= rough) * unit


def contexts(scenario_tokens: int, bounds: tuple[int, ...]) -> list[int]:
    """The contexts of the points: even on a logarithmic axis, the chosen one and every bend exactly."""
    highest = max(2**20, scenario_tokens)
    spread = {round(2 ** (8 + (log2(highest) - 8) * step / (POINTS - 1))) for step in range(POINTS)}
    return sorted({*spread, highest, scenario_tokens, *(bound for bound in bounds if bound <= highest), 256})


def with_steps(tokens: list[int], steps: Iterable[int]) -> list[int]:
    """`tokens` with both sides of the first steps of each length, so that a saw-tooth is seen as one."""
    sides = {step * turn + side for step in steps for turn in range(1, STEPS + 1) for side in (0, 1)}
    return sorted({*tokens, *(side for side in sides if tokens[0] <= side <= tokens[-1])})


def count_text(count: int) -> str:
    """`64Ki`, `1Mi`: round counts on an axis; others in full."""
    for size, suffix in ((2**20, "Mi"), (2**10, "Ki")):
        if count and count % size == 0:
            return f"{count // size}{suffix}"
    return f"{count:,}"
