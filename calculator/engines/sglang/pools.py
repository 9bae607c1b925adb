"""The device pools: which buffers a cache in a format becomes.

Source: SGLang 0.5.13 `mem_cache/memory_pool.py`, `swa_memory_pool.py`, `hisparse_memory_pool.py`.
"""

from dataclasses import replace

from ...errors import EngineError
from ...explain import Expression, lift, symbol
from ...formats import FP8_INDEX, HalfByteRow, PackedLatent, Row, StorageFormat
from .buffers import ELEMENT_BYTES, Buffer, Extent, Pool, Sent, element_of, pages_of
from .state import StateShape

VECTOR_BYTES = 16  # of the ROCm layout


def attention_pool(row: Row, storage: StorageFormat, extent: Extent) -> Pool:
    """K and V of every token: MHATokenToKVPool, or its FP4 variant, whose V is as wide as K."""
    assert row.heads is not None
    key, value = row.vectors["key"], row.vectors["value"]
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


def sparse_pool(
    row: Row, index: Row, storage: StorageFormat, extent: Extent, host_to_device_ratio: int | None = None
) -> Pool:
    """Latents and the index keys beside them: DSATokenToKVPool.

    With HiSparse the index keys of all tokens, those in host memory too, stay on the device.
    """
    logical = symbol("tokens", extent.tokens)
    if host_to_device_ratio is not None:
        logical = logical * symbol("ratio", host_to_device_ratio)
    keys = Buffer(
        name="index_k_with_scale_buffer",
        shape=(pages_of(logical, extent.page), extent.page * FP8_INDEX.row_bytes(index)),
        element="uint8",
        layers=extent.depth,
        sent=Sent.EXTRA,
    )
    name = "DSATokenToKVPool" if host_to_device_ratio is None else "HiSparseDSATokenToKVPool"
    return Pool(name=name, buffers=(*latent_pool(row, storage, extent).buffers, keys))


def window_pool(full: Pool | None, window: Pool) -> Pool:
    """Two attention pools, of full layers and of window layers (each with its own capacity and heads).

    Raises:
        EngineError: FP4, which no path of the engine gives to this pool.
    """
    parts = [("full", full, Sent.PAGES)] if full else []
    parts += [("swa", window, Sent.EXTRA)]
    if any(pool is not None and pool.name != "MHATokenToKVPool" for _, pool, _ in parts):
        raise EngineError("sglang.swa_fp4")
    return Pool(
        name="SWAKVPool",
        buffers=tuple(
            replace(buffer, name=f"{prefix}_{buffer.name}", sent=sent)
            for prefix, pool, sent in parts
            if pool is not None
            for buffer in pool.buffers
        ),
    )


def state_pool(
    shape: StateShape, layers: int, slots: int, draft_tokens: int = 0, draft_slots: int = 0
) -> Pool:
    """MambaPool: one slot per state and a spare one; with a drafter, a copy per draft token."""
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
            shape=(*copies, *dims),
            element=element_of(storage),
            layers=depth,
            stacked=True,
        )
        for name, dims, storage in tensors
        if draft_tokens
    ]
    return Pool(name="MambaPool", buffers=(*held, *drafts))


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
