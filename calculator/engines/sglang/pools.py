"""The device pools: which buffers a cache in a format becomes.

Source: SGLang 0.5.13 and 0.5.23 `mem_cache/memory_pool.py`, `swa_memory_pool.py`, `hisparse_memory_pool.py`.
"""

from dataclasses import dataclass, replace

from ...errors import EngineError
from ...explain import Expression, lift, symbol
from ...formats import FP8_INDEX, MXFP8, HalfByteRow, PackedLatent, Row, StorageFormat
from .buffers import ELEMENT_BYTES, Buffer, Extent, Pool, Sent, element_of, pages_of
from .cell import Nvfp4Scales
from .state import StateShape

VECTOR_BYTES = 16  # of the ROCm layout
MXFP8_PAGE = 128  # tokens of a page whose scales are interleaved


def attention_pool(row: Row, storage: StorageFormat, extent: Extent) -> Pool:
    """K and V of every token: MHATokenToKVPool, or its FP4 and MXFP8 variants; FP4 keeps V as wide as K."""
    assert row.heads is not None
    key, value = row.vectors["key"], row.vectors["value"]
    if storage == MXFP8:
        return _mxfp8_pool(row, extent)
    if isinstance(storage, HalfByteRow):
        data = (extent.rows, row.heads, key // 2)
        scales = (extent.rows, row.heads * key // 16)
        return Pool(
            name="MHATokenToKVPoolFP4",
            buffers=(
                _tokens("k_buffer", data, "uint8", extent),
                _tokens("v_buffer", data, "uint8", extent),
                _tokens("k_scale_buffer", scales, "uint8", extent, sent=Sent.STAYS),
                _tokens("v_scale_buffer", scales, "uint8", extent, sent=Sent.STAYS),
            ),
        )
    element = element_of(storage)
    return Pool(
        name="MHATokenToKVPool",
        buffers=(
            _tokens("k_buffer", (extent.rows, row.heads, key), element, extent),
            _tokens("v_buffer", (extent.rows, row.heads, value), element, extent),
        ),
    )


def _mxfp8_pool(row: Row, extent: Extent) -> Pool:
    """FP8 with a scale of one byte for 32 elements, interleaved for pages of 128 tokens."""
    heads, group = row.heads, MXFP8.scale_group
    assert heads is not None
    buffers = []
    for name, width in row.vectors.items():
        if width.value % group:
            raise EngineError("sglang.mxfp8", width=int(width.value))
        scales: tuple[Expression, ...] = (extent.rows, heads, width // group)
        if extent.page_size == MXFP8_PAGE:
            scales = (extent.rows // extent.page, heads, lift(group), extent.page // group, width // group)
        prefix = name[0]
        buffers += [
            _tokens(f"{prefix}_buffer", (extent.rows, heads, width), "uint8", extent),
            _tokens(f"{prefix}_scale_buffer", scales, "uint8", extent, sent=Sent.STAYS),
        ]
    return Pool(name="MHATokenToKVPoolMXFP8", buffers=tuple(buffers))


def nvfp4_pool(row: Row, extent: Extent, scales: Nvfp4Scales) -> Pool:
    """MHATokenToKVPool in NVFP4: scales in each order that is read, one FP8 workspace for all layers.

    Raises:
        EngineError: pages or heads that TRT-LLM's order of scales does not take.
    """
    heads, key = row.heads, row.vectors["key"]
    assert heads is not None
    if scales.native and (extent.page_size % 4 or key.value % 64):
        raise EngineError("sglang.nvfp4", page_size=extent.page_size, width=int(key.value))
    data, linear = (extent.rows, heads, key // 2), (extent.rows, heads, key // 16)
    native = (extent.rows // extent.page, heads, extent.page, key // 16)
    buffers = [_tokens(f"{name}_buffer", data, "uint8", extent) for name in "kv"]
    for present, prefix, shape in ((scales.linear, "", linear), (scales.native, "native_", native)):
        if present:
            buffers += [
                _tokens(f"{prefix}{name}_scale_buffer", shape, "uint8", extent, sent=Sent.STAYS)
                for name in "kv"
            ]
    if scales.workspace:
        buffers += [
            Buffer(name=f"dq_{name}_buffer", shape=(extent.rows, heads, key), element="uint8", layers=lift(1))
            for name in "kv"
        ]
    return Pool(name="MHATokenToKVPool", buffers=tuple(buffers))


def sparse_attention_pool(
    row: Row, index_width: int, storage: StorageFormat, extent: Extent, key_layers: int, value_layers: int = 0
) -> Pool:
    """MiniMaxSparseKVPool: K and V of all layers, one BF16 index key per token of the sparse ones.

    `key_layers` keep index keys alone, `value_layers` also values.
    """
    width = (extent.rows, lift(1), symbol("d_i", index_width))
    buffers = [
        replace(buffer, name=f"main_{buffer.name}") for buffer in attention_pool(row, storage, extent).buffers
    ]
    parts = [("index_k_pool_k_buffer", key_layers)]
    parts += [("index_kv_pool_k_buffer", value_layers), ("index_kv_pool_v_buffer", value_layers)]
    buffers += [
        Buffer(
            name=name,
            shape=width,
            element="bfloat16",
            layers=symbol("L_idx", layers),
            item_rows=extent.page,
            sent=Sent.EXTRA,
        )
        for name, layers in parts
        if layers
    ]
    return Pool(name="MiniMaxSparseKVPool", buffers=tuple(buffers))


def vectorised_pool(row: Row, storage: StorageFormat, extent: Extent) -> Pool:
    """The same bytes in pages of 16-byte vectors, an option on ROCm.

    Raises:
        EngineError: a page or a head of K that is not made of whole vectors.
    """
    plain = attention_pool(row, storage, extent)
    assert row.heads is not None
    key, value = row.vectors["key"], row.vectors["value"]
    lanes = symbol("X", VECTOR_BYTES // ELEMENT_BYTES[plain.buffers[0].element])
    if extent.page_size % lanes.value or key.value % lanes.value:
        raise EngineError("sglang.vectorized", value=int(lanes.value))
    pages = extent.rows // extent.page
    shapes = (
        (pages, row.heads, key // lanes, extent.page, lanes),
        (pages, row.heads, extent.page // lanes, value, lanes),
    )
    buffers = tuple(
        replace(buffer, shape=shape, item_rows=lift(1))
        for buffer, shape in zip(plain.buffers, shapes, strict=True)
    )
    return Pool(name=plain.name, buffers=buffers)


def placeholder_pool(row: Row, storage: StorageFormat, extent: Extent) -> Pool:
    """One page that nothing reads, for embedding models that only prefill; counted as 0 by the engine."""
    empty = attention_pool(row, storage, replace(extent, tokens=0))
    return Pool(
        name="NoOpMHATokenToKVPool",
        buffers=tuple(replace(buffer, sent=Sent.NEVER) for buffer in empty.buffers),
    )


def latent_pool(row: Row, storage: StorageFormat, extent: Extent) -> Pool:
    """The latent and rope key of every token: MLATokenToKVPool, or its FP4 variant."""
    if isinstance(storage, HalfByteRow):
        data = (extent.rows, lift(1), row.elements // 2)
        return Pool(
            name="MLATokenToKVPoolFP4",
            buffers=(
                _tokens("kv_buffer", data, "uint8", extent),
                _tokens(
                    "kv_scale_buffer", (extent.rows, row.elements // 16), "uint8", extent, sent=Sent.STAYS
                ),
            ),
        )
    shape = (extent.rows, lift(1), latent_width(row, storage))
    return Pool(name="MLATokenToKVPool", buffers=(_tokens("kv_buffer", shape, element_of(storage), extent),))


def latent_width(row: Row, storage: StorageFormat) -> Expression:
    """Elements of a latent's row: R + D_r, or the bytes of a packed one."""
    return storage.row_bytes(row) if isinstance(storage, PackedLatent) else row.elements


@dataclass(frozen=True, kw_only=True)
class Indexers:
    """Index keys beside latents: of how many layers (None: all), how many tokens share one, HiSparse's ratio.

    With HiSparse the index keys of all tokens, those in host memory too, stay on the device. `tail_requests`
    have keys of theirs that are not pooled yet, `tail_slots` more than the pool for drafts.
    """

    layers: int | None = None
    pool: int = 1
    host_to_device_ratio: int | None = None
    tail_requests: int | None = None
    tail_slots: int = 0


def sparse_pool(row: Row, index: Row, storage: StorageFormat, extent: Extent, indexers: Indexers) -> Pool:
    """Latents and the index keys beside them: DSATokenToKVPool."""
    logical, ratio = symbol("tokens", extent.tokens), indexers.host_to_device_ratio
    if ratio is not None:
        logical = logical * symbol("ratio", ratio)
    depth = extent.depth if indexers.layers is None else symbol("L_idx", indexers.layers)
    entries = extent.page if indexers.pool == 1 else extent.page // symbol("pool", indexers.pool)
    buffers = [
        Buffer(
            name="index_k_with_scale_buffer",
            shape=(pages_of(logical, extent.page), entries * FP8_INDEX.row_bytes(index)),
            element="uint8",
            layers=depth,
            sent=Sent.EXTRA,
        )
    ]
    if indexers.tail_requests is not None:
        slots = symbol("pool", indexers.pool) + symbol("drafts", indexers.tail_slots)
        shape = (symbol("requests", indexers.tail_requests) + 1, slots, index.elements)
        buffers += [
            Buffer(name=name, shape=shape, element="bfloat16", layers=depth)
            for name in ("tail_buffer", "tail_score_buffer")
        ]
    name = "DSATokenToKVPool" if ratio is None else "HiSparseDSATokenToKVPool"
    return Pool(name=name, buffers=(*latent_pool(row, storage, extent).buffers, *buffers))


def window_pool(full: Pool | None, window: Pool) -> Pool:
    """Two attention pools, of full layers and of window layers (each with its own capacity and heads).

    Raises:
        EngineError: FP4, which no path of the engine gives to this pool.
    """
    parts = [("full", full, Sent.PAGES)] if full else []
    parts += [("swa", window, Sent.EXTRA)]
    if any(pool is not None and pool.name.endswith("FP4") for _, pool, _ in parts):
        raise EngineError("sglang.swa_fp4")
    return Pool(
        name="SWAKVPool",
        buffers=tuple(
            replace(
                buffer,
                name=f"{prefix}_{buffer.name}",
                sent=Sent.NEVER if buffer.sent is Sent.NEVER else sent,
            )
            for prefix, pool, sent in parts
            if pool is not None
            for buffer in pool.buffers
        ),
    )


def state_pool(
    shape: StateShape,
    layers: int,
    slots: int,
    draft_tokens: int = 0,
    draft_slots: int = 0,
    *,
    chained: bool = False,
) -> Pool:
    """MambaPool: one slot per state and a spare one; with a drafter, a copy per draft token.

    The convolution windows of a chain of drafts overlap, so that they are kept once (`chained`, 0.5.23).
    """
    depth = symbol("L", layers)
    rows = symbol("slots", slots) + 1
    copies = (symbol("slots_draft", draft_slots) + 1, symbol("D", draft_tokens))
    tensors = [("conv_state", dims, shape.convolution_format) for dims in shape.convolutions]
    tensors += [("temporal_state", shape.recurrent, shape.recurrent_format)] if shape.recurrent else []
    names = {"conv_state": "intermediate_conv_window", "temporal_state": "intermediate_ssm"}
    held = [
        Buffer(
            name=name,
            shape=(rows, *dims),
            element=element_of(storage),
            layers=depth,
            sent=Sent.EXTRA,
            stacked=True,
            state=True,
        )
        for name, dims, storage in tensors
    ]
    drafts = [
        Buffer(
            name=names[name],
            shape=(copies[0], *_chained(dims, draft_tokens, shape.kernel))
            if chained and name == "conv_state"
            else (*copies, *dims),
            element=element_of(storage),
            layers=depth,
            stacked=True,
        )
        for name, dims, storage in tensors
        if draft_tokens
    ]
    return Pool(name="MambaPool", buffers=(*held, *drafts))


def _chained(dims: tuple[Expression, ...], draft_tokens: int, kernel: int) -> tuple[Expression, ...]:
    """The windows of all drafts over each other: `D + k - 2` columns instead of `k - 1`."""
    columns = symbol("D", draft_tokens) + (kernel - 2)
    axis = len(dims) - 1 if int(dims[-1].value) == kernel - 1 else 0
    return tuple(columns if place == axis else size for place, size in enumerate(dims))


def joined(name: str, *pools: Pool) -> Pool:
    """Several pools as one of the engine's classes."""
    return Pool(name=name, buffers=tuple(buffer for pool in pools for buffer in pool.buffers))


def _tokens(
    name: str, shape: tuple[Expression, ...], element: str, extent: Extent, sent: Sent = Sent.PAGES
) -> Buffer:
    """A buffer of one row per token."""
    return Buffer(
        name=name, shape=shape, element=element, layers=extent.depth, item_rows=extent.page, sent=sent
    )
