"""Bytes per token ("cell size") of a rank's layers, and the tokens that fit.

Source: SGLang 0.5.13 `model_executor/pool_configurator.py`, DefaultPoolConfigurator.
"""

from ...errors import EngineError
from ...explain import Expression, symbol
from ...formats import FP8, FP8_DS_MLA, FP8_INDEX, HalfByteRow, Row, StorageFormat

# Backends whose kernels read FP8 latents without scales; the last two only on ROCm.
PLAIN_LATENT_BACKENDS = frozenset({"trtllm"})
PLAIN_LATENT_BACKENDS_ROCM = PLAIN_LATENT_BACKENDS | {"tilelang", "aiter"}


def planned(row: Row, storage: StorageFormat, layers: int) -> Expression:
    """What the engine divides the memory by: `row · L · s`, or for FP4 halves and scales of all layers.

    A packed latent is priced like a plain one.
    """
    depth = symbol("L", layers)
    if isinstance(storage, HalfByteRow):
        return row.elements * depth // 2 + _planned_scales(row, depth)
    return row.elements * depth * symbol("s", storage.element_bytes)


def _planned_scales(row: Row, depth: Expression) -> Expression:
    """FP4 scales: of all layers at once and V as wide as K, or of one latent at a time."""
    if row.heads is None:
        return row.elements // 16 * depth
    return row.heads * row.vectors["key"] * depth * 2 // 16


def planned_index(index: Row, layers: int) -> Expression:
    """Index keys of a sparse-attention indexer: `(d_i + ⌊d_i / 128⌋ · 4) · L`."""
    return FP8_INDEX.row_bytes(index) * symbol("L", layers)


def latent_format(
    storage: StorageFormat, *, sparse: bool, backend: str, platform: str = "cuda"
) -> StorageFormat:
    """How a latent is really stored: FP8 with scales where a sparse-attention kernel reads them.

    Source: calculate_mla_kv_cache_dim.

    Raises:
        EngineError: rows with scales were asked for, and the backend or a model without an indexer has none.
    """
    plain = PLAIN_LATENT_BACKENDS_ROCM if platform == "hip" else PLAIN_LATENT_BACKENDS
    packed = sparse and backend not in plain
    if storage == FP8_DS_MLA and not packed:
        raise EngineError("sglang.plain_rows", backend=backend)
    return FP8_DS_MLA if packed and storage == FP8 else storage


def aligned(tokens: Expression, page_size: int) -> Expression:
    """Whole pages: `⌊tokens / P⌋ · P`."""
    page = symbol("P", page_size)
    return tokens // page * page


def capacity(available_bytes: int, cell: Expression, page_size: int) -> Expression:
    """Tokens of one rank: `⌊⌊available / cell⌋ / P⌋ · P`."""
    return aligned(symbol("available", available_bytes) // symbol("cell", cell), page_size)
