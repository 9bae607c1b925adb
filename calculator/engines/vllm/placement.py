"""Where the layers of a stage lie in its one allocation of memory.

Source: vLLM 0.33.0 `v1/core/kv_cache_planning.py`, `get_kv_cache_config_from_groups`;
`v1/kv_cache_interface.py`, `compute_layout_strides`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .block_bytes import largest_group
from .group import Group
from .settings import CacheLayout
from .spec import LayerSpec, SpecType

AXES = "LBHNC"


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Layers of one group and one spec: bytes to the first one, and from layer to layer and block to block.

    `view_shape` is [blocks, head slots, states, elements] of one layer, `view_strides` are in bytes.
    """

    num_layers: int
    offset: int
    layer_stride: int
    block_stride: int
    view_shape: tuple[int, int, int, int]
    view_strides: tuple[int, int, int, int]


def placements(groups: Sequence[Group], num_blocks: int, layout: CacheLayout) -> Iterator[Placement]:
    """All of them, in the order of the groups, each of which begins at byte 0."""
    block_bytes = int(largest_group(groups, layout).value)
    for group in groups:
        offset = 0
        for spec, layers in group.members if group.present or group.container else ():
            placed = _place(spec, len(layers), offset, num_blocks, layout, block_bytes)
            offset += len(layers) * (spec.page_size_bytes if layout.block_outer else placed.layer_stride)
            yield placed


def _place(
    spec: LayerSpec, num_layers: int, offset: int, num_blocks: int, layout: CacheLayout, block_bytes: int
) -> Placement:
    content, states = int(spec.content.value), int(spec.states.value)
    slots = int(spec.head_slots.value)
    sizes = {"L": num_layers, "B": num_blocks, "H": slots, "N": states, "C": content}
    distance = block_bytes if layout.block_outer else int(spec.stride.value)
    fixed = {"B": distance} if layout.block_outer or distance != spec.page_size_bytes else {}
    page_ends = max(layout.value.index("L"), layout.value.index("B"))
    strides: dict[str, int] = {}
    current = 1
    for place in range(len(AXES) - 1, -1, -1):
        axis = layout.value[place]
        if place == page_ends and spec.page_size_bytes > spec.real_page.value:
            # A padded page is a longer step of the axes outside of it.
            current = max(current, spec.page_size_bytes)
        strides[axis] = fixed.get(axis, current)
        current = strides[axis] * sizes[axis]
    # A state is bytes; all other views have the type of their elements.
    element = 1 if spec.type is SpecType.MAMBA else spec.format.element_bytes
    return Placement(
        num_layers=num_layers,
        offset=offset,
        layer_stride=strides["L"],
        block_stride=strides["B"],
        view_shape=(num_blocks, slots, states, content // element),
        view_strides=(strides["B"], strides["H"], strides["N"], element),
    )
