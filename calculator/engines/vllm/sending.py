"""What one block is to the NIXL connector, and the host pool of the native offload.

Source: vLLM 0.22.0 `distributed/kv_transfer/kv_connector/v1/nixl`, `v1/kv_offload`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...errors import EngineError, FieldError
from ...explain import Expression, ceiling, least, lift, symbol
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


def cpu_offload(
    *,
    bytes_per_block: int,
    block_sizes: Sequence[int],
    world_size: int,
    cpu_bytes_to_use: int,
    offloaded_block_size: int | None = None,
) -> CpuOffload:
    """⌊cpu_bytes / (bytes per block · ranks · factor)⌋ host blocks.

    `cpu_bytes_to_use` is for all ranks together. Copies of a latent on several ranks are all stored. Source:
    vLLM 0.22.0 `CPUOffloadingSpec`.

    Raises:
        FieldError: a size below its least.
        EngineError: a host block that is not whole device blocks, or groups with different blocks.
    """
    at_least(0, bytes_per_block=bytes_per_block, cpu_bytes_to_use=cpu_bytes_to_use)
    at_least(1, world_size=world_size)
    factor = 1
    if offloaded_block_size is not None:
        sizes = set(block_sizes)
        if len(sizes) != 1 or offloaded_block_size < 1 or offloaded_block_size % min(sizes):
            raise EngineError(
                "vllm.offload", block_size=offloaded_block_size, sizes=", ".join(map(str, sorted(sizes)))
            )
        factor = offloaded_block_size // sizes.pop()
    page = symbol("block", bytes_per_block)
    if factor > 1:
        page = page * symbol("factor", factor)
    everywhere = page if world_size == 1 else page * symbol("ranks", world_size)
    blocks = symbol("cpu_bytes", cpu_bytes_to_use) // everywhere if everywhere.value else lift(0)
    return CpuOffload(block_size_factor=factor, num_cpu_blocks=blocks, cpu_page=page)


def at_least(lowest: int, **fields: int) -> None:
    """Raise FieldError for a field that is not a whole number of at least `lowest`."""
    for field, value in fields.items():
        if type(value) is not int or not lowest <= value <= 2**53:
            raise FieldError("error.range", field=field, value=value, lowest=lowest, highest=2**53)
