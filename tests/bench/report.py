"""What follows from the figures: medians, ratios, and the tables, for a screen or the README."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

from tests.bench.budgets import FASTER, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Measure -> what the table calls it, and how much of it makes one there.
MEASURES = {
    "answer_ms": ("answer readable, s", 1e3),
    "painted_ms": ("charts painted, s", 1e3),
    "live_ms": ("Python live, s", 1e3),
    "charts_bytes": ("sent for the charts, MB", 1e6),
    "received_bytes": ("sent until live, MB", 1e6),
    "later_bytes": ("sent later, when idle, MB", 1e6),
    "requests": ("requests until live", 1),
}
COMPARED = ("answer_ms", "painted_ms", "live_ms")
RATIOS = {"plain / ours": ("plain", "ours"), FASTER: ("stock", "ours")}
HEADINGS = {
    "ours": "ours, first visit",
    "ours, warm": "ours, further visits",
    "plain": "our plain start",
    "stock": "stock flow",
}

Table = list[list[str]]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed."""
    return sorted(values)[max(math.ceil(len(values) * percent / 100), 1) - 1]


def starts(rows: Mapping[str, list[dict[str, float]]]) -> dict[str, Any]:
    """The visits of one condition by row, and what follows from them."""
    medians = {
        row: {measure: median(visit[measure] for visit in visits) for measure in MEASURES}
        for row, visits in rows.items()
    }
    ratios = {
        name: {measure: medians[other][measure] / medians[ours][measure] for measure in COMPARED}
        for name, (other, ours) in RATIOS.items()
    }
    return {"medians": medians, "ratios": ratios, "visits": dict(rows)}


def moves(moves_ms: Sequence[float]) -> dict[str, Any]:
    """The moves of a slider, and what follows from them."""
    at = {f"p{percent}": percentile(moves_ms, percent) for percent in (50, 95)}
    return {"slider_ms": at | {"max": max(moves_ms)}, "moves_ms": list(moves_ms)}


def machine_line(result: Mapping[str, Any]) -> str:
    """When, on what, with what."""
    machine = result["machine"]
    return (
        f"{machine['date']}, {machine['cores']} cores (load {machine['load_average']}), "
        f"{machine['platform']}, {machine['browser']}; the server packs text with gzip"
    )


def budget_table(result: Mapping[str, Any]) -> Table:
    """Every budget beside what was measured on this machine as it is."""
    first = next(iter(result["conditions"].values()))
    return [["figure", "budget", "measured", ""], *verdicts(first, result["slider_ms"])]


def starts_table(condition: Mapping[str, Any]) -> Table:
    """The starts under one condition."""
    visits, ratios = condition["visits"], condition["ratios"]
    lines = [["median (min–max)", *(HEADINGS[row] for row in visits), *ratios]]
    for measure, (label, unit) in MEASURES.items():
        cells = [_cell([visit[measure] / unit for visit in row], unit) for row in visits.values()]
        lines.append(
            [
                label,
                *cells,
                *(f"{ratio[measure]:.2f}" if measure in ratio else "" for ratio in ratios.values()),
            ]
        )
    return lines


def condition_title(name: str, condition: Mapping[str, Any]) -> str:
    """What the starts below it were measured under."""
    runs = len(next(iter(condition["visits"].values())))
    return f"{name[0].upper()}{name[1:]} ({condition['how']}), {runs} × each flow, in turns:"


def moves_line(result: Mapping[str, Any]) -> str:
    """The moves of a slider."""
    slider = result["slider_ms"]
    return (
        f"layers slider to drawn chart, ms: p50 {slider['p50']:.1f}, p95 {slider['p95']:.1f}, "
        f"max {slider['max']:.1f} ({len(result['moves_ms'])} moves)"
    )


def aligned(lines: Table) -> str:
    """A table for a screen."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    rows = ("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines)
    return "\n".join(rows)


def marked_down(lines: Table) -> str:
    """A table for the README."""
    head, *rows = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, "|---" * len(lines[0]) + "|", *rows])


def report(result: Mapping[str, Any], drawn: Any = aligned) -> str:
    """Everything for reading; `drawn` makes the text of a table."""
    parts = [machine_line(result), drawn(budget_table(result))]
    for name, condition in result["conditions"].items():
        parts += [condition_title(name, condition), drawn(starts_table(condition))]
    return "\n\n".join([*parts, moves_line(result)])


def _cell(values: Sequence[float], unit: float) -> str:
    digits = 0 if unit == 1 else 2
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"
