"""vLLM's connectors: the unit of each, and the bytes of a whole request.

Since 0.33.0 K and V of a block lie in one page, and NCCL between two servers is gone. Source: vLLM 0.22.0 and
0.33.0 `distributed/kv_transfer/kv_connector/v1`, `v1/kv_offload`, `v1/simple_kv_offload`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..engines.vllm.group import Group
from ..engines.vllm.sending import Layout, at_least, blocks_sent, nixl
from ..engines.vllm.spec import LayerSpec, SpecType
from ..explain import Expression, ceiling, lift, symbol, total

LMCACHE_CHUNK = 256  # tokens


class Connector(StrEnum):
    """What moves the cache."""

    NIXL = "nixl"
    NIXL_CROSS_LAYER = "nixl_cross_layer"
    MOONCAKE = "mooncake"
    MOONCAKE_STORE = "mooncake_store"
    HF3FS = "hf3fs"
    MORIIO = "moriio"
    LMCACHE = "lmcache"
    LMCACHE_LAYERWISE = "lmcache_layerwise"
    P2P_NCCL = "p2p_nccl"
    NATIVE_OFFLOAD = "native_offload"
    SIMPLE_OFFLOAD = "simple_offload"


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One copy of a connector; `merged`: copies of adjacent blocks become one."""

    connector: Connector
    bytes: Expression
    merged: bool = False


def units(
    spec: LayerSpec, layout: Layout, *, num_layers: int, num_tokens: int, blocks_per_host_block: int = 1
) -> tuple[Unit, ...]:
    """The unit of every connector for `num_layers` layers of one spec and a request of `num_tokens`.

    Raises:
        FieldError, EngineError: as `nixl`.
    """
    at_least(1, blocks_per_host_block=blocks_per_host_block)
    block = nixl(spec, layout, num_layers=num_layers, num_tokens=num_tokens)
    page, layers = symbol("page", spec.page), symbol("L", num_layers)
    every = block.bytes_per_block_all_layers
    token = page / symbol("B", spec.block_size)
    chunk = symbol("chunk", LMCACHE_CHUNK)
    blocks = ceiling(symbol("T", num_tokens), symbol("B", spec.block_size))
    whole_blocks = layout in (
        Layout.FLASH_ATTN,
        Layout.MLA,
    )  # a region then holds whole blocks one after another
    halved = layout in (Layout.FLASHINFER, Layout.TRITON_ATTN) and not spec.packed
    cross_layer = every // 2 if halved else every
    found = (
        Unit(connector=Connector.NIXL, bytes=page if spec.packed else block.descriptor),
        Unit(connector=Connector.NIXL_CROSS_LAYER, bytes=cross_layer),
        Unit(connector=Connector.MOONCAKE, bytes=block.descriptor, merged=whole_blocks),
        Unit(connector=Connector.MOONCAKE_STORE, bytes=every),
        Unit(connector=Connector.HF3FS, bytes=every),
        Unit(connector=Connector.MORIIO, bytes=block.descriptor, merged=True),
        Unit(connector=Connector.LMCACHE, bytes=chunk * token * layers),
        Unit(connector=Connector.LMCACHE_LAYERWISE, bytes=chunk * token),
        Unit(connector=Connector.P2P_NCCL, bytes=blocks * page),
        Unit(
            connector=Connector.NATIVE_OFFLOAD,
            bytes=every if blocks_per_host_block == 1 else symbol("factor", blocks_per_host_block) * every,
        ),
        Unit(connector=Connector.SIMPLE_OFFLOAD, bytes=every),
    )
    return tuple(unit for unit in found if unit.connector is not Connector.P2P_NCCL or not spec.packed)


def request_bytes(groups: Sequence[Group], num_tokens: int) -> Expression:
    """Bytes of a whole request of `num_tokens`: every layer's pages, of windows the last ones.

    States are sent once; with V4 every group's pages.
    """
    at_least(0, num_tokens=num_tokens)
    sent = []
    for group in groups:
        for spec, layers in group.members:
            blocks = lift(1) if spec.type is SpecType.MAMBA else blocks_sent(spec, num_tokens)
            sent.append(symbol("n", blocks) * symbol("L", len(layers)) * symbol("page", spec.page))
    return total(sent)
