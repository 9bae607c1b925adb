"""Bytes per token ("cell size") of a rank's layers, and the tokens that fit.

Source: SGLang 0.5.13 and 0.5.23 `model_executor/pool_configurator.py`, DefaultPoolConfigurator; 0.5.23
`layers/quantization/fp4_kv_cache_quant_method.py`.
"""

from dataclasses import dataclass

from ...errors import EngineError
from ...explain import Expression, ceiling, symbol
from ...formats import FP4_MX_BLOCK16, FP8, FP8_DS_MLA, FP8_INDEX, MXFP8, HalfByteRow, Row, StorageFormat


def planned(row: Row, storage: StorageFormat, layers: int) -> Expression:
    """What the engine divides the memory by: `row · L · s`, or for FP4 halves and scales of all layers.

    A packed latent is priced like a plain one.
    """
    depth = symbol("L", layers)
    if storage == FP4_MX_BLOCK16 and row.heads is not None:
        return block16_row(row) * depth
    if isinstance(storage, HalfByteRow):
        return row.elements * depth // 2 + _planned_scales(row, depth)
    if storage == MXFP8:
        return row.elements * depth + row.elements * depth // MXFP8.scale_group
    return row.elements * depth * symbol("s", storage.element_bytes)


def as_stored(row: Row, storage: StorageFormat, layers: int) -> Expression:
    """What rows really take, scales included: `row bytes · L`."""
    return storage.row_bytes(row) * symbol("L", layers)


def block16_row(row: Row) -> Expression:
    """K and V of one layer in halves with a scale for 16 elements of all heads, V as wide as K."""
    assert row.heads is not None
    key = row.vectors["key"]
    return 2 * (row.heads * (key // 2) + row.heads * key // 16)


def nvfp4(row: Row, layers: int, scales: "Nvfp4Scales") -> Expression:
    """`2 · H · ⌊d / 2⌋ · L`, scales in each order that a backend reads, one workspace; V as wide as K."""
    assert row.heads is not None
    key, depth = row.vectors["key"], symbol("L", layers)
    data = 2 * row.heads * (key // 2) * depth
    orders = scales.native + scales.linear
    price = data + symbol("g", orders) * (2 * row.heads * (key // 16) * depth)
    return price + 2 * row.heads * key if scales.workspace else price


@dataclass(frozen=True, kw_only=True)
class Nvfp4Scales:
    """The orders of scales that the backends of both phases read, and an FP8 workspace for K and V.

    TRT-LLM reads FP4 itself, on SM100 with scales in an order of its own; FlashInfer's prefill reads FP8 from
    a workspace that all layers share.
    """

    native: bool
    linear: bool
    workspace: bool

    @classmethod
    def of(cls, prefill: str, decode: str) -> "Nvfp4Scales":
        """Those of two backends.

        Raises:
            EngineError: a backend that does not read NVFP4 in its phase.
        """
        for backend, known in ((prefill, ("trtllm_mha", "flashinfer")), (decode, ("trtllm_mha",))):
            if backend not in known:
                raise EngineError("sglang.fp4_backend", backend=backend, backends=", ".join(known))
        workspace = prefill == "flashinfer"
        return cls(native=True, linear=workspace, workspace=workspace)


def _planned_scales(row: Row, depth: Expression) -> Expression:
    """FP4 scales: of all layers at once and V as wide as K, or of one latent at a time."""
    if row.heads is None:
        return row.elements // 16 * depth
    return row.heads * row.vectors["key"] * depth * 2 // 16


@dataclass(frozen=True, kw_only=True)
class IndexPrice:
    """Index keys of `layers`, one for `pool` tokens; of `ratio` times the tokens, `ranks` times over."""

    key: Row
    layers: int
    pool: int = 1
    ratio: int = 1
    ranks: int = 1

    @property
    def bytes(self) -> Expression:
        """`⌈(d_i + ⌊d_i / 128⌋ · 4) / pool⌉ · L_idx`."""
        return self.of(self.layers)

    def of(self, layers: int) -> Expression:
        """The same for other layers."""
        price = planned_index(self.key, layers, self.pool)
        for name, factor in (("ratio", self.ratio), ("dcp", self.ranks)):
            price = price if factor == 1 else price * symbol(name, factor)
        return price


def planned_index(index: Row, layers: int, pool: int = 1) -> Expression:
    """Index keys of a sparse-attention indexer: `⌈(d_i + ⌊d_i / 128⌋ · 4) / pool⌉ · L_idx`."""
    key = FP8_INDEX.row_bytes(index)
    return (key if pool == 1 else ceiling(key, symbol("pool", pool))) * symbol("L_idx", layers)


def with_drafter(
    latents: Expression, layers: int, draft_layers: int, index: IndexPrice | None = None, ratio: int = 1
) -> Expression:
    """The cell and the drafter's layers at the price of the model's own: `+ ⌊cell · L_draft / L⌋`.

    Beside index keys the drafter has one for each of its layers; with HiSparse it has room for all tokens,
    `ratio` times those of the device.
    """
    if not draft_layers:
        return latents if index is None else latents + index.bytes
    own = symbol("cell", latents)
    drafts = own * symbol("L_draft", draft_layers) // symbol("L", layers)
    if index is None:
        return own + (drafts if ratio == 1 else drafts * symbol("ratio", ratio))
    for name, factor in (("ratio", index.ratio), ("dcp", index.ranks)):
        drafts = drafts if factor == 1 else drafts * symbol(name, factor)
    return own + index.bytes + drafts + index.of(draft_layers)


def latent_format(
    storage: StorageFormat, *, sparse: bool, backend: str, plain: frozenset[str] = frozenset()
) -> StorageFormat:
    """How a latent is really stored: FP8 with scales where a sparse-attention kernel reads them.

    `plain` are the backends that do not. Source: calculate_mla_kv_cache_dim.

    Raises:
        EngineError: rows with scales were asked for, and the backend or a model without an indexer has none.
    """
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
