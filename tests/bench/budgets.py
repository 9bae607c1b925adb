"""What every figure must stay within, and by how much it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

FASTER = "stock / ours"


@dataclass(frozen=True)
class Budget:
    """A bound of one figure: the first condition's `part` ("medians" or "ratios") by row and measure."""

    label: str
    bound: float
    unit: str
    path: tuple[str, ...]
    scale: float = 1
    at_least: bool = False

    def reached(self, result: Mapping[str, Any]) -> float:
        """The figure, in the budget's unit."""
        figure: Any = result
        for step in self.path:
            figure = figure[step]
        return float(figure) / self.scale

    def verdict(self, result: Mapping[str, Any]) -> list[str]:
        """A row of the table: what, budget, measured, by how much."""
        reached = self.reached(result)
        spare = (reached - self.bound) if self.at_least else (self.bound - reached)
        sign = "≥" if self.at_least else "≤"
        word = "met, spare" if spare >= 0 else "MISSED by"
        return [
            self.label,
            f"{sign} {self.bound:g} {self.unit}",
            f"{reached:.2f} {self.unit}",
            f"{word} {abs(spare):.2f} {self.unit}",
        ]


def _seconds(label: str, bound: float, row: str, measure: str) -> Budget:
    return Budget(label, bound, "s", ("medians", row, measure), 1e3)


def _megabytes(label: str, bound: float, measure: str) -> Budget:
    return Budget(label, bound, "MB", ("medians", "ours", measure), 1e6)


def _times(label: str, bound: float, measure: str) -> Budget:
    return Budget(label, bound, "×", ("ratios", FASTER, measure), at_least=True)


def _milliseconds(label: str, bound: float, percentile: str) -> Budget:
    return Budget(label, bound, "ms", ("slider_ms", percentile))


BUDGETS = [
    _seconds("answer readable, first visit", 0.3, "ours", "answer_ms"),
    _seconds("charts painted, first visit", 0.8, "ours", "painted_ms"),
    _seconds("Python live, first visit", 1.3, "ours", "live_ms"),
    _seconds("answer readable, further visits", 0.15, "ours, warm", "answer_ms"),
    _seconds("charts painted, further visits", 0.4, "ours, warm", "painted_ms"),
    _seconds("Python live, further visits", 1.0, "ours, warm", "live_ms"),
    _megabytes("sent until live, first visit", 14, "received_bytes"),
    _megabytes("of it for the painted charts", 1.2, "charts_bytes"),
    _times("answer faster than the stock flow", 25, "answer_ms"),
    _times("charts faster than the stock flow", 10, "painted_ms"),
    _times("live faster than the stock flow", 6, "live_ms"),
    _milliseconds("move of a slider to drawn chart, p50", 25, "p50"),
    _milliseconds("move of a slider to drawn chart, p95", 50, "p95"),
]


def verdicts(starts: Mapping[str, Any], slider_ms: Mapping[str, float]) -> list[list[str]]:
    """The rows of all budgets. `starts` has the medians and ratios of this machine as it is."""
    figures = {**starts, "slider_ms": slider_ms}
    return [budget.verdict(figures) for budget in BUDGETS]
