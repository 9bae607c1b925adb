"""Full and window pools: one budget, split by a ratio. In IEEE doubles, as the engine.

Source: SGLang 0.5.13 `model_executor/pool_configurator.py`, HybridSWAPoolConfigurator.
"""

from dataclasses import dataclass

from ...explain import Expression, lift, symbol, whole
from .cell import aligned


@dataclass(frozen=True, kw_only=True)
class WindowModel:
    """Layers of a stage and bytes per token and layer of both kinds."""

    full_layers: int
    window_layers: int
    full_row: Expression
    window_row: Expression


@dataclass(frozen=True, kw_only=True)
class WindowSplit:
    """Tokens of both pools; `tokens` is what requests may take."""

    tokens: Expression
    full: Expression
    window: Expression


def cell(model: WindowModel, ratio: float) -> Expression:
    """`F · L_full + ratio · S · L_swa` bytes per token; without full layers `S · L_swa`."""
    window = symbol("S", model.window_row)
    if not model.full_layers:
        return window * symbol("L_swa", model.window_layers)
    full = symbol("F", model.full_row) * symbol("L_full", model.full_layers)
    return full + symbol("ratio", ratio) * window * symbol("L_swa", model.window_layers)


def split(model: WindowModel, ratio: float, tokens: Expression, page_size: int) -> WindowSplit:
    """Both pools for at most `tokens` tokens, in whole pages."""
    held = aligned(tokens, page_size)
    if not model.full_layers:
        return WindowSplit(tokens=held, full=lift(0), window=held)
    window = aligned(whole(symbol("full", held) * symbol("ratio", ratio)), page_size)
    return WindowSplit(tokens=held, full=held, window=window)


def capacity(model: WindowModel, ratio: float, available_bytes: int, page_size: int) -> WindowSplit:
    """Both pools that fit into `available_bytes`."""
    tokens = symbol("available", available_bytes) // symbol("cell", cell(model, ratio))
    return split(model, ratio, tokens, page_size)
