"""What the core alone takes, in this Python: an estimate of a hybrid with a curve of 1,000 contexts.

Of logical bytes, and with what the newest version of each engine allocates.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

from calculator import Scenario, estimate
from calculator.serving import VERSIONS

CONTEXTS = [1_000 * number for number in range(1, 1_001)]
RUNS = 7
LAYERS = (61, 610)  # ten times the layers, but as many layer groups


def measure_core() -> dict[str, dict[str, float]]:
    """Milliseconds by engine and number of layers, the median of some runs."""
    return {
        engine: {str(layers): median(_once(engine, layers) for _ in range(RUNS)) for layers in LAYERS}
        for engine in VERSIONS
    }


def core_line(milliseconds: dict[str, dict[str, float]]) -> str:
    """The figures for reading."""
    figures = "; ".join(
        f"{engine} " + ", ".join(f"{layers} layers {taken:.1f}" for layers, taken in by_layers.items())
        for engine, by_layers in milliseconds.items()
    )
    return f"core, hybrid of window and full attention, estimate and 1,000 contexts, ms: {figures}"


def _once(engine: str, layers: int) -> float:
    choices = {"architecture": "window", "num_layers": layers, "num_global_layers": layers // 6}
    scenario = Scenario().changed({**choices, "engine": engine})
    start = perf_counter()
    estimate(scenario).curve(CONTEXTS)
    return (perf_counter() - start) * 1e3
