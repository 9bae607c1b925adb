"""HiSparse: all latents in host memory, of each request the needed ones in hot caches on the device.

Source: vLLM 0.33.0 `v1/hisparse/layout.py`, `v1/core/kv_cache_utils.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from ...errors import EngineError, FieldError
from ...explain import Expression, ceiling, least, lift, round_up, symbol, total
from .group import Group, members
from .growth import tokens_in_flight
from .rules import Rules
from .settings import CacheLayout, Settings
from .spec import LayerSpec, SpecType

GIB = 2**30
SHARED_PAGE = 4096  # bytes that a block of a host pool shared by ranks is rounded up to


class Role(StrEnum):
    """What a group is for."""

    SOURCE = "hisparse_source"
    INDEXER = "hisparse_indexer"
    RESIDENT = "resident"
    HOT = "hot"


@dataclass(frozen=True, kw_only=True)
class HiSparse:
    """What is chosen: the host pool, the indexer's top-k, rows on the device per request, draft tokens."""

    host_pool_gib: float
    index_topk: int
    device_buffer_size: int | None = None
    num_speculative_tokens: int = 0

    @property
    def buffer(self) -> Expression:
        """`(2 + drafts) · top_k` rows, unless given.

        Raises:
            FieldError: fewer rows than one step selects.
        """
        rows = 1 + self.num_speculative_tokens
        if self.device_buffer_size is None:
            return symbol("rows", rows + 1) * symbol("top_k", self.index_topk)
        if self.device_buffer_size < rows * self.index_topk:
            raise FieldError(
                "error.range",
                field="device_buffer_size",
                value=self.device_buffer_size,
                lowest=rows * self.index_topk,
                highest=2**15,
            )
        return symbol("buffer", self.device_buffer_size)


@dataclass(frozen=True, kw_only=True)
class HiSparsePool:
    """Both pools: groups on the host and on the device, their blocks, and what one request takes of each."""

    source: Group
    indexer: Group
    hot: tuple[tuple[LayerSpec, int], ...]  # (latent, layers) of each hot group; each has a resident one
    chosen: HiSparse
    settings: Settings
    rules: Rules
    available_bytes: int

    @cached_property
    def bytes_per_block(self) -> Expression:
        """The largest device group, rounded up to whole latent pages."""
        largest = max([self.indexer.page, *map(_hot_bytes, self.hot)], key=lambda size: size.value)
        return round_up(largest, symbol("page", self.hot[0][0].page))

    @cached_property
    def num_blocks(self) -> Expression:
        """Blocks of the device pool, unless their number is given."""
        if self.settings.num_gpu_blocks_override is not None:
            return lift(self.settings.num_gpu_blocks_override)
        return symbol("available", self.available_bytes) // symbol("block", self.bytes_per_block)

    @cached_property
    def host_num_blocks(self) -> Expression:
        """Blocks of the host pool; one copy for all ranks of a pure TP set-up."""
        page = self.source.page
        alone = self.settings.pipeline_parallel_size == 1 and self.settings.context_parallel_size == 1
        if self.settings.tensor_parallel_size > 1 and alone:
            page = round_up(page, symbol("host_page", SHARED_PAGE))
        return symbol("host_pool", int(self.chosen.host_pool_gib * GIB)) // page

    @cached_property
    def host_blocks_per_request(self) -> Expression:
        """`⌈T / B⌉`."""
        return ceiling(symbol("T", self.settings.max_model_len), symbol("B", self.source.spec.block_size))

    @cached_property
    def blocks_per_request(self) -> Expression:
        """`⌈T / B⌉ + g · ⌈min(F, T) / B⌉ + g · ⌈buffer / B⌉` on the device."""
        tokens, block = symbol("T", self.settings.max_model_len), symbol("B", self.source.spec.block_size)
        groups = symbol("g", len(self.hot))
        flight = least(tokens_in_flight(self.settings, self.rules), tokens)
        return (
            ceiling(tokens, block)
            + groups * ceiling(flight, block)
            + groups * ceiling(self.chosen.buffer, block)
        )

    @property
    def lacking(self) -> Role | None:
        """The pool in which one request does not fit: `SOURCE` for the host's, `HOT` for the device's."""
        # Beside the request's blocks a null block and a copy of the last one.
        if self.host_num_blocks.value < self.host_blocks_per_request.value + 2:
            return Role.SOURCE
        return Role.HOT if self.blocks_per_request.value > self.num_blocks.value - 1 else None

    @property
    def reported_tokens(self) -> int:
        """The engine's "KV cache size": the smaller of both pools' concurrencies times the context."""
        device = int(self.num_blocks.value) / int(self.blocks_per_request.value)
        host = int(self.host_num_blocks.value) / int(self.host_blocks_per_request.value)
        return int(min(device, host) * self.settings.max_model_len)


def plan(
    specs: Sequence[LayerSpec], chosen: HiSparse, settings: Settings, rules: Rules, available_bytes: int
) -> HiSparsePool:
    """Both pools for the layers of a sparse-attention model, in model order.

    Layers form units that begin at a layer with its own indexer; units share a hot group while its pages are
    not more than the indexers'.

    Raises:
        EngineError: layers other than latents with an indexer, or a layout that is not block-outer.
    """
    latents = [layer for layer, spec in enumerate(specs) if spec.type is SpecType.MLA and not spec.indexer]
    indexers = [layer for layer, spec in enumerate(specs) if spec.type is SpecType.MLA and spec.indexer]
    versioned = any(spec.model_version for spec in specs)
    if not latents or not indexers or versioned or len(latents) + len(indexers) < len(specs):
        raise EngineError("vllm.hisparse")
    if not settings.layout.block_outer:
        raise EngineError("vllm.hisparse_layout", layout=CacheLayout.BLHNC.value)
    indexer = Group(members=members(specs, indexers), container=True)
    most = int(indexer.page.value)
    units: list[list[LayerSpec]] = []
    for layer in latents:
        if specs[layer].leads_indexer or not units:
            units.append([])
        units[-1].append(specs[layer])
    hot: list[list[LayerSpec]] = []
    held = 0
    for unit in units:
        size = sum(spec.page_size_bytes for spec in unit)
        if not hot or held + size > most:
            hot.append([])
            held = 0
        hot[-1] += unit
        held += size
    return HiSparsePool(
        source=Group(members=members(specs, latents), container=True),
        indexer=indexer,
        hot=tuple((layers[0], len(layers)) for layers in hot),
        chosen=chosen,
        settings=settings,
        rules=rules,
        available_bytes=available_bytes,
    )


def _hot_bytes(group: tuple[LayerSpec, int]) -> Expression:
    spec, layers = group
    return total([symbol("L", layers) * symbol("page", spec.page)])
