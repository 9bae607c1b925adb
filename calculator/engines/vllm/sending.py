"""What one block is to the NIXL connector, and the host pool of the native offload.

Source: vLLM 0.22.0 `distributed/kv_transfer/kv_connector/v1/nixl`, `v1/kv_offload`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import gcd

from ...errors import EngineError, FieldError
from ...explain import Expression, ceiling, least, lift, round_up, symbol
from .group import Group
from .settings import Settings
from .spec import MLA_TYPES, WINDOW_TYPES, LayerSpec, SpecType


class Layout(StrEnum):
    """How a backend lays K and V out: in two regions, joined in every block, or as one vector."""

    FLASH_ATTN = "flash_attn"
    FLASHINFER = "flashinfer"
    TRITON_ATTN = "triton_attn"
    MLA = "mla"

    @property
    def halves(self) -> int:
        """Copies of one block and layer: K and V, or one vector."""
        return 1 if self is Layout.MLA else 2

    @property
    def regions(self) -> int:
        """Registered regions per layer."""
        return 2 if self is Layout.FLASH_ATTN else 1


@dataclass(frozen=True, kw_only=True)
class NixlBlock:
    """One block over NIXL, and a request of some tokens."""

    memory_regions_per_layer: int
    block_len: Expression  # bytes of one block in a region
    descriptor: Expression  # bytes of one transfer descriptor
    descriptors_per_layer_per_block: int
    bytes_per_block_all_layers: Expression
    num_blocks: Expression
    total_bytes: Expression


def nixl(spec: LayerSpec, layout: Layout, *, num_layers: int, num_tokens: int) -> NixlBlock:
    """Units of `num_layers` layers of one spec; whole pages, padding included.

    Raises:
        FieldError: no layer, or a negative number of tokens.
        EngineError: a latent in a layout of K and V, or the other way round.
    """
    at_least(1, num_layers=num_layers)
    at_least(0, num_tokens=num_tokens)
    if (layout is Layout.MLA) != (spec.type in MLA_TYPES or spec.type is SpecType.SLIDING_WINDOW_MLA):
        raise EngineError("vllm.layout", layout=layout.value, kind=spec.cache.kind)
    page = symbol("page", spec.page)
    per_block = symbol("L", num_layers) * page
    blocks = blocks_sent(spec, num_tokens)
    return NixlBlock(
        memory_regions_per_layer=layout.regions,
        block_len=page // layout.regions if layout.regions > 1 else page,
        descriptor=page // layout.halves if layout.halves > 1 else page,
        descriptors_per_layer_per_block=layout.halves,
        bytes_per_block_all_layers=per_block,
        num_blocks=blocks,
        total_bytes=symbol("n", blocks) * per_block,
    )


def blocks_sent(spec: LayerSpec, num_tokens: int) -> Expression:
    """Blocks of a request that NIXL sends: of a window only the last ones. Source: nixl `scheduler.py`."""
    block = symbol("B", spec.block_size)
    blocks = ceiling(symbol("T", num_tokens), block)
    if spec.type not in WINDOW_TYPES:
        return blocks
    return least(blocks, ceiling(symbol("w", spec.window or 1), block) + 1)


@dataclass(frozen=True, kw_only=True)
class CpuOffload:
    """The host pool of the native offload."""

    block_size_factor: int  # device blocks per host block
    num_cpu_blocks: Expression
    cpu_page: Expression  # bytes of a host block on one rank
    chunk_bytes: Expression  # bytes of a host block over all copies, rounded up to whole pages of the host
    one_copy: bool  # whether all ranks share one


def cpu_offload(
    *,
    bytes_per_block: int,
    block_sizes: Sequence[int],
    world_size: int,
    cpu_bytes_to_use: int,
    offloaded_block_size: int | None = None,
    blocks_per_chunk: int | None = None,
    one_copy: bool = False,
    host_page_bytes: int = 1,
) -> CpuOffload:
    """⌊cpu_bytes / (bytes per block · ranks · factor)⌋ host blocks.

    `cpu_bytes_to_use` is for all ranks together. Copies of a latent on several ranks are all stored, unless
    there is `one_copy` for all (since 0.33.0). Source: vLLM 0.22.0 and 0.33.0 `CPUOffloadingSpec`.

    Raises:
        FieldError: a size below its least.
        EngineError: a host block that is not whole device blocks, or groups with different blocks.
    """
    at_least(0, bytes_per_block=bytes_per_block, cpu_bytes_to_use=cpu_bytes_to_use)
    at_least(1, world_size=world_size)
    factor = 1
    if blocks_per_chunk is not None:
        at_least(1, blocks_per_chunk=blocks_per_chunk)
        factor = blocks_per_chunk
    elif offloaded_block_size is not None:
        sizes = set(block_sizes)
        if len(sizes) != 1 or offloaded_block_size < 1 or offloaded_block_size % min(sizes):
            raise EngineError(
                "vllm.offload", block_size=offloaded_block_size, sizes=", ".join(map(str, sorted(sizes)))
            )
        factor = offloaded_block_size // sizes.pop()
    page = symbol("block", bytes_per_block)
    if factor > 1:
        page = page * symbol("factor", factor)
    chunk = page if one_copy or world_size == 1 else page * symbol("ranks", world_size)
    if chunk.value % host_page_bytes:
        chunk = round_up(chunk, symbol("host_page", host_page_bytes))
    blocks = symbol("cpu_bytes", cpu_bytes_to_use) // chunk if chunk.value else lift(0)
    return CpuOffload(
        block_size_factor=factor, num_cpu_blocks=blocks, cpu_page=page, chunk_bytes=chunk, one_copy=one_copy
    )


def copies(groups: Sequence[Group], tp: int, dcp: int) -> int:
    """Consecutive TP ranks that hold the same bytes of every layer.

    Source: vLLM 0.33.0 `kv_cache_groups_tp_replicas`.
    """
    found = [
        1 if spec.tp_shards is None or (dcp > 1 and spec.dcp_sharded) else max(1, tp // spec.tp_shards)
        for group in groups
        for spec, _ in group.members
    ]
    return gcd(tp, *found) if found else 1


def one_host_copy(groups: Sequence[Group], settings: Settings, tp: int, world_size: int) -> bool:
    """Whether all ranks share one host copy: latents under tensor parallelism alone, on one machine.

    Source: vLLM 0.33.0 `distributed/kv_transfer/kv_connector/v1/offloading/config.py`.
    """
    latents = any(spec.type in MLA_TYPES for group in groups for spec, _ in group.members)
    alone = settings.context_parallel_size == 1 and world_size == tp
    return latents and tp > 1 and alone and copies(groups, tp, 1) == tp


def at_least(lowest: int, **fields: int) -> None:
    """Raise FieldError for a field that is not a whole number of at least `lowest`."""
    for field, value in fields.items():
        if type(value) is not int or not lowest <= value <= 2**53:
            raise FieldError("error.range", field=field, value=value, lowest=lowest, highest=2**53)
