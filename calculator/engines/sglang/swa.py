"""Full and window pools: one budget, split by a ratio. In IEEE doubles, as the engine.

Source: SGLang 0.5.13 and 0.5.23 `model_executor/pool_configurator.py`, HybridSWAPoolConfigurator.
"""

from dataclasses import dataclass

from ...errors import EngineError
from ...explain import Expression, lift, symbol, whole
from .cell import aligned


@dataclass(frozen=True, kw_only=True)
class WindowModel:
    """Layers of a stage and bytes per token and layer of both kinds, and the layers of a drafter."""

    full_layers: int
    window_layers: int
    full_row: Expression
    window_row: Expression
    draft_full_layers: int = 0
    draft_window_layers: int = 0

    @property
    def full_cell(self) -> Expression:
        """Bytes of a full token, `F · L_full`, the drafter's layers among them."""
        return symbol("F", self.full_row) * symbol("L_full", self.full_layers + self.draft_full_layers)

    @property
    def window_cell(self) -> Expression:
        """Bytes of a window token, `S · L_swa`."""
        return symbol("S", self.window_row) * symbol("L_swa", self.window_layers + self.draft_window_layers)


@dataclass(frozen=True, kw_only=True)
class WindowSplit:
    """Tokens of both pools; `tokens` is what requests may take."""

    tokens: Expression
    full: Expression
    window: Expression


def cell(model: WindowModel, ratio: float) -> Expression:
    """`F · L_full + ratio · S · L_swa` bytes per token; without full layers `S · L_swa`."""
    if not model.full_layers:
        return model.window_cell + model.full_cell if model.draft_full_layers else model.window_cell
    return model.full_cell + symbol("ratio", ratio) * model.window_cell


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


def capped(model: WindowModel, window: Expression, available_bytes: int, page_size: int) -> WindowSplit:
    """The full pool beside a window pool of a given size.

    Source: SGLang 0.5.23 SWARequestCapPoolConfigurator.

    Raises:
        EngineError: nothing is left for the full pool.
    """
    fixed = symbol("window", window) * model.window_cell
    left = symbol("available", available_bytes) - fixed
    full = aligned(left // symbol("cell", model.full_cell), page_size)
    if full.value <= 0:
        raise EngineError("sglang.window_cap", value=int(window.value))
    return WindowSplit(tokens=full, full=full, window=window)


def check_window(split: WindowSplit, window: int, page_size: int) -> None:
    """Refuse a window pool in which no request fits; one without full layers is not looked at.

    Source: SGLang 0.5.23 validate_swa_pool_size.

    Raises:
        EngineError: it holds no more than a window and a page.
    """
    held = int(split.window.value)
    if split.full.value and held <= window + page_size:
        raise EngineError("sglang.window_small", value=held, least=window + page_size + 1)
