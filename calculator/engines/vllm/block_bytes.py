"""Bytes of one block over all layers of a pipeline stage.

Source: vLLM 0.22.0 `_pool_bytes_per_block`, 0.33.0 `_get_kv_cache_bytes_per_block`.
"""

from collections.abc import Iterable, Sequence
from math import lcm

from ...explain import Expression, lift, round_up, symbol, total
from .group import Group
from .settings import CacheLayout

Groups = Sequence[Group]


def largest_group(groups: Groups, layout: CacheLayout) -> Expression:
    """What the largest group takes: 0.33.0, where all groups begin at the same byte of one allocation.

    Where layers lie one after another each has its own distance of blocks, else all share one.
    """
    here = [group for group in groups if group.present]
    if not here:
        return lift(0)
    if not layout.block_outer:
        return max((_sum(group, strides=True) for group in here), key=lambda size: size.value)
    widest = max((_sum(group, strides=False) for group in here), key=lambda size: size.value)
    aligned = lcm(*(spec.stride_alignment for group in here for spec, _ in group.members))
    return (
        widest if widest.value % aligned == 0 else round_up(symbol("group", widest), symbol("align", aligned))
    )


def in_tuples(groups: Groups, layout: CacheLayout) -> Expression:
    """0.22.0: DeepSeek-V4's groups share tensors by page size, all others as above."""
    return _tuples(groups, groups) if _deepseek_v4(groups) else largest_group(groups, layout)


def in_tuples_here(groups: Groups, layout: CacheLayout) -> Expression:
    """What 0.22.0 divides its memory by: of DeepSeek-V4 the tuples of groups with layers on the stage."""
    if not _deepseek_v4(groups):
        return largest_group(groups, layout)
    return _tuples(groups, [group for group in groups if group.present])


def tensors(groups: Groups) -> tuple[tuple[int, int], ...]:
    """The cache tensors of a stage in 0.22.0: (bytes per block, how many of them)."""
    if not groups:
        return ()
    if len(groups) == 1 and groups[0].container:
        return tuple(groups[0].page_counts.items())
    if _deepseek_v4(groups):
        tuples = max(max(group.page_counts.values()) for group in groups if group.present)
        return tuple((page_size, tuples) for page_size in sorted(groups[0].page_counts))
    return ((int(groups[0].page.value), max(group.num_layers for group in groups)),)


def _deepseek_v4(groups: Groups) -> bool:
    """Several groups, all of them containers."""
    return len(groups) > 1 and all(group.container for group in groups)


def _tuples(groups: Groups, counted: Iterable[Group]) -> Expression:
    """Every distinct page of the first group, as often as one of the `counted` groups has layers of one."""
    tuples = max(max(group.page_counts.values()) for group in counted)
    pages = total(symbol("page", page_size) for page_size in sorted(groups[0].page_counts))
    return pages * symbol("n_tuples", tuples)


def _sum(group: Group, *, strides: bool) -> Expression:
    if not group.container:
        return (group.spec.stride if strides else group.page) * symbol("L_group", group.num_layers)
    if not strides or all(spec.stride_alignment == 1 for spec, _ in group.members):
        return group.page
    return total(symbol("L", len(layers)) * symbol("stride", spec.stride) for spec, layers in group.members)
