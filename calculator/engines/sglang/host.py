"""Host pools of hierarchical caching (HiCache L2): sizes, layouts, shapes.

Source: SGLang 0.5.13 and 0.5.23 `mem_cache/memory_pool_host.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import EngineError, FieldError
from ...explain import Expression, lift, symbol, whole
from ...formats import FP8_INDEX, MXFP8, NVFP4, HalfByteRow, Row, StorageFormat
from .buffers import ELEMENT_BYTES, Buffer, Extent, element_of, pages_of
from .pools import latent_width
from .rules import Rules
from .state import StateShape

GB = 10**9  # the size option and the log lines of the host side are decimal
LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_head", "page_first_kv_split")
ATTENTION_LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_head")
ASYMMETRIC_LAYOUTS = ("page_first", "page_first_direct")
LATENT_LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_first_kv_split")


@dataclass(frozen=True, kw_only=True)
class HostSize:
    """`size_gb` decimal GB (more than 0), or `ratio` times the device pool; in the order of `layout`."""

    layout: str = "layer_first"
    ratio: float = 2.0
    size_gb: int | float = 0


@dataclass(frozen=True, kw_only=True)
class HostPool:
    """A host pool: `buffers` in the order of its layout; `token_bytes` over all layers."""

    token_bytes: Expression
    tokens: Expression
    pages: Expression
    buffers: tuple[Buffer, ...]
    row_bytes: Expression  # one token in one layer, of K or the latent
    name: str = "MHATokenToKVPoolHost"

    @property
    def total_bytes(self) -> Expression:
        """Bytes of all pages."""
        return symbol("b", self.token_bytes) * symbol("tokens", self.tokens)


def host_tokens(
    extent: Extent, token_bytes: Expression, size: HostSize, rules: Rules
) -> tuple[Expression, Expression]:
    """(tokens, pages): always a page more than asked for.

    Raises:
        EngineError: not more than the device pool holds, where the version asks for that.
    """
    page = extent.page
    if size.size_gb > 0:
        tokens = whole(symbol("host_size", size.size_gb) * GB / symbol("b", token_bytes))
    else:
        tokens = whole(symbol("tokens", extent.tokens) * symbol("ratio", size.ratio))
    pages = tokens // page + 1
    held = symbol("pages", pages) * page
    if held.value <= extent.tokens and not rules.host_may_be_smaller:
        raise EngineError("sglang.host_small", value=int(held.value), device=extent.tokens)
    return held, pages


def attention_host(
    row: Row, storage: StorageFormat, extent: Extent, size: HostSize, rules: Rules
) -> HostPool:
    """K and V, V priced and stored as wide as K; since 0.5.23 in two tensors where its width is another.

    Raises:
        EngineError: FP4, a layout that this pool does not have, or a pool that is too small.
    """
    assert row.heads is not None
    if rules.host_value_width and row.vectors["key"].value != row.vectors["value"].value:
        return _asymmetric(row, storage, extent, size, rules)
    _check(storage, size.layout, ATTENTION_LAYOUTS)
    element = element_of(storage)
    heads, width, depth = row.heads, row.vectors["key"], extent.depth
    row_bytes = heads * width * symbol("s", ELEMENT_BYTES[element])
    token_bytes = 2 * row_bytes * depth
    tokens, pages = host_tokens(extent, token_bytes, size, rules)
    held, count, page, both = symbol("tokens", tokens), symbol("pages", pages), extent.page, lift(2)
    shapes: dict[str, tuple[Expression, ...]] = {
        "layer_first": (both, depth, held, heads, width),
        "page_first": (both, held, depth, heads, width),
        "page_first_direct": (both, count, depth, page, heads, width),
        "page_head": (both, count, heads, page, depth, width),
    }
    buffers = (Buffer(name="kv_buffer", shape=shapes[size.layout], element=element, layers=lift(1)),)
    return HostPool(token_bytes=token_bytes, tokens=tokens, pages=pages, buffers=buffers, row_bytes=row_bytes)


def _asymmetric(row: Row, storage: StorageFormat, extent: Extent, size: HostSize, rules: Rules) -> HostPool:
    """K and V of different widths, a tensor each: AsymmetricMHATokenToKVPoolHost."""
    assert row.heads is not None
    _check(storage, size.layout, ASYMMETRIC_LAYOUTS)
    element = element_of(storage)
    heads, depth, bytes_each = row.heads, extent.depth, symbol("s", ELEMENT_BYTES[element])
    token_bytes = row.elements * depth * bytes_each
    tokens, pages = host_tokens(extent, token_bytes, size, rules)
    leading: tuple[Expression, ...] = (symbol("tokens", tokens), depth)
    if size.layout == "page_first_direct":
        leading = (symbol("pages", pages), depth, extent.page)
    return HostPool(
        token_bytes=token_bytes,
        tokens=tokens,
        pages=pages,
        buffers=tuple(
            Buffer(name=f"{name[0]}_buffer", shape=(*leading, heads, width), element=element, layers=lift(1))
            for name, width in row.vectors.items()
        ),
        row_bytes=heads * row.vectors["key"] * bytes_each,
        name="AsymmetricMHATokenToKVPoolHost",
    )


def latent_host(
    row: Row, storage: StorageFormat, extent: Extent, size: HostSize, rules: Rules, index: Row | None = None
) -> HostPool:
    """Latents, in rows as wide as the device's; `index` keys are added where the layout splits a row.

    Raises:
        EngineError: FP4, a layout that this pool does not have, or a pool that is too small.
    """
    _check(storage, size.layout, LATENT_LAYOUTS)
    element = element_of(storage)
    width, depth = latent_width(row, storage), extent.depth
    row_bytes = width * symbol("s", ELEMENT_BYTES[element])
    token_bytes = row_bytes * depth
    tokens, pages = host_tokens(extent, token_bytes, size, rules)
    held, count, page, one = symbol("tokens", tokens), symbol("pages", pages), extent.page, lift(1)
    if size.layout == "page_first_kv_split":
        vectors = {**row.vectors, **(index.vectors if index else {})}
        parts: dict[str, tuple[Expression, ...]] = {
            f"{name}_buffer": (count, depth, page, one, vector_width)
            for name, vector_width in vectors.items()
        }
    else:
        parts = {
            "kv_buffer": {
                "layer_first": (depth, held, one, width),
                "page_first": (held, depth, one, width),
                "page_first_direct": (count, depth, page, one, width),
            }[size.layout]
        }
    buffers = tuple(
        Buffer(name=name, shape=shape, element=element, layers=one) for name, shape in parts.items()
    )
    return HostPool(
        token_bytes=token_bytes,
        tokens=tokens,
        pages=pages,
        buffers=buffers,
        row_bytes=row_bytes,
        name="MLATokenToKVPoolHost",
    )


def index_host(index: Row, extent: Extent, host: HostPool, layout: str, layers: int | None = None) -> Buffer:
    """Index keys of the tokens of `host`, in pages of P keys; of the `layers` that own them, or all."""
    depth = extent.depth if layers is None else symbol("L_idx", layers)
    page = extent.page
    pages = pages_of(symbol("tokens", host.tokens), page)
    row = page * FP8_INDEX.row_bytes(index)
    shape = (depth, pages, row) if layout == "layer_first" else (pages, depth, lift(1), row)
    return Buffer(name="index_k_with_scale_buffer", shape=shape, element="uint8", layers=lift(1))


def paged_host(device: Buffer, pages: int, layout: str) -> Buffer:
    """The host pool of one of DeepSeek-V4's sub-pools: `pages` rows of the device's."""
    count, row = symbol("pages", pages), device.shape[1:]
    if layout == "layer_first":
        return replace(device, shape=(count, *row), stacked=False)
    return replace(device, shape=(count, device.layers, *row), layers=lift(1), stacked=False)


def state_host(shape: StateShape, layers: int, slots: int, layout: str) -> tuple[Buffer, ...]:
    """Snapshots of recurrent state, one slot each."""
    depth, count = symbol("L", layers), symbol("slots", slots)
    leading = (depth, count) if layout == "layer_first" else (count, depth, lift(1))
    tensors = [("conv_state", dims, shape.convolution_format) for dims in shape.convolutions]
    tensors += [("temporal_state", shape.recurrent, shape.recurrent_format)] if shape.recurrent else []
    return tuple(
        Buffer(name=name, shape=(*leading, *dims), element=element_of(storage), layers=lift(1))
        for name, dims, storage in tensors
    )


def resolved_layout(layout: str, io_backend: str, storage_backend: str = "") -> tuple[str, str]:
    """(layout, I/O) as the engine switches them: not every store and I/O path takes every order.

    Source: SGLang 0.5.13 `server_args.py`, hierarchical cache.

    Raises:
        FieldError: a layout or I/O path that does not exist.
    """
    _known("hicache_mem_layout", layout, LAYOUTS)
    _known("hicache_io_backend", io_backend, ("kernel", "direct"))
    if storage_backend == "mooncake" and layout == "layer_first":
        layout = "page_first"
    if io_backend == "direct" and layout == "page_first":
        return "page_first_direct", io_backend
    if layout == "page_first_direct":
        return layout, "direct"
    return layout, io_backend


def _known(field: str, value: str, options: Sequence[str]) -> None:
    if value not in options:
        raise FieldError("error.choice", field=field, value=value, options=", ".join(options))


def _check(storage: StorageFormat, layout: str, layouts: Sequence[str]) -> None:
    if isinstance(storage, HalfByteRow) or storage in (NVFP4, MXFP8):
        raise EngineError("sglang.host_fp4")
    if layout not in layouts:
        raise EngineError("sglang.layout", layout=layout, layouts=", ".join(layouts))
