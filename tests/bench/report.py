"""What follows from the figures: medians, ratios, and the table for reading."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Measure -> what the table calls it, and how much of it makes one there.
MEASURES = {
    "answer_ms": ("answer readable, s", 1e3),
    "painted_ms": ("charts painted, s", 1e3),
    "live_ms": ("Python live, s", 1e3),
    "received_bytes": ("received, MB", 1e6),
    "requests": ("requests", 1),
}


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed."""
    return sorted(values)[max(math.ceil(len(values) * percent / 100), 1) - 1]


def summary(
    machine: Mapping[str, object], rows: Mapping[str, list[dict[str, float]]], moves_ms: Sequence[float]
) -> dict[str, Any]:
    """All figures raw, and what follows from them. `rows` holds each row's visits; the first row is ours."""
    medians = {
        row: {measure: median(visit[measure] for visit in visits) for measure in MEASURES}
        for row, visits in rows.items()
    }
    ours, *others = medians
    ratios = {
        f"{row} / {ours}": {measure: medians[row][measure] / medians[ours][measure] for measure in MEASURES}
        for row in others
    }
    slider = {"p50": percentile(moves_ms, 50), "p95": percentile(moves_ms, 95), "max": max(moves_ms)}
    return {
        "schema": 1,
        "machine": dict(machine),
        "medians": medians,
        "ratios": ratios,
        "slider_ms": slider,
        "visits": dict(rows),
        "moves_ms": list(moves_ms),
    }


def table(result: Mapping[str, Any]) -> str:
    """The results for reading."""
    machine, visits, slider = result["machine"], result["visits"], result["slider_ms"]
    lines = [["median (min–max)", *visits, *result["ratios"]]]
    for measure, (label, unit) in MEASURES.items():
        cells = [_cell([visit[measure] / unit for visit in row], unit) for row in visits.values()]
        lines.append([label, *cells, *(f"{ratio[measure]:.2f}" for ratio in result["ratios"].values())])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    aligned = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
    runs = len(next(iter(visits.values())))
    conditions = (
        f"{machine['date']}, {machine['cores']} cores (load {machine['load_average']}), "
        f"{machine['platform']}, {machine['browser']}\n"
        f"{runs} visits each, in turns, from loopback; the server compresses nothing"
    )
    moves = (
        f"layers slider to drawn chart, ms: p50 {slider['p50']:.1f}, p95 {slider['p95']:.1f}, "
        f"max {slider['max']:.1f} ({len(result['moves_ms'])} moves)"
    )
    return "\n".join([conditions, *aligned, moves])


def _cell(values: Sequence[float], unit: float) -> str:
    digits = 0 if unit == 1 else 2
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"
