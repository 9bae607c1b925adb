"""DeepSeek-V4: compressed latents and index keys in one group, windows and compressor states in others.

Source: vLLM 0.22.0 `group_and_unify_kv_cache_specs`, `_get_kv_cache_groups_uniform_groups`.
"""

from collections.abc import Sequence

from ...errors import EngineError
from .group import Group, Members, members
from .spec import MLA_TYPES, LayerSpec, SpecType


def group_layers(specs: Sequence[LayerSpec]) -> tuple[Group, ...]:
    """The MLA group, then the window groups, split so that their tuples of layers fit those of the MLA group.

    Raises:
        EngineError: layers of another type, or windows whose pages do not fit.
    """
    latents = [layer for layer, spec in enumerate(specs) if spec.type in MLA_TYPES]
    windows: dict[tuple[int, int | None], list[int]] = {}
    for layer, spec in enumerate(specs):
        if spec.type is SpecType.SLIDING_WINDOW_MLA:
            windows.setdefault((spec.block_size, spec.window), []).append(layer)
        elif spec.type not in MLA_TYPES:
            raise EngineError("vllm.v4_types", kind=spec.cache.kind)
    if len({specs[layer].block_size for layer in latents}) != 1:
        raise EngineError("vllm.v4_latents")
    first = Group(members=members(specs, latents), container=True)
    others = [Group(members=members(specs, layers), container=True) for layers in windows.values()]
    tuples = [max(group.page_counts.values()) for group in (first, *others)]
    chunk = least_padding(tuples, tuples[0])
    return (first, *(part for group in others for part in _split(group, sorted(first.page_counts), chunk)))


def least_padding(counts: Sequence[int], lowest: int) -> int:
    """The chunk, from `lowest` to the largest count, that leaves the fewest empty places; the larger of two.

    Source: `_approximate_gcd`. The candidates are counts of layers.
    """
    chunks = range(lowest, max(counts) + 1)
    return min(chunks, key=lambda chunk: (sum(-count % chunk for count in counts), -chunk))


def _split(group: Group, page_sizes: Sequence[int], chunk: int) -> list[Group]:
    by_page: dict[int, list[tuple[LayerSpec, int]]] = {}
    for spec, layers in group.members:
        own = spec.page_size_bytes
        page_size = min((size for size in page_sizes if size >= own), default=None)
        if page_size is None:
            raise EngineError("vllm.v4_pages", page=own, largest=max(page_sizes))
        fitted = spec if own == page_size else spec.padded(page_size)
        by_page.setdefault(page_size, []).extend((fitted, layer) for layer in layers)
    columns = [sorted(column, key=lambda entry: entry[1]) for column in by_page.values()]
    if len({len(column) for column in columns}) != 1:
        raise EngineError("vllm.v4_tuples")
    rows = list(zip(*columns, strict=True))
    parts = -(-len(rows) // chunk)
    return [
        Group(members=_members([entry for row in rows[i::parts] for entry in row]), container=True)
        for i in range(parts)
    ]


def _members(entries: Sequence[tuple[LayerSpec, int]]) -> Members:
    found: dict[LayerSpec, list[int]] = {}
    for spec, layer in entries:
        found.setdefault(spec, []).append(layer)
    return tuple((spec, tuple(layers)) for spec, layers in found.items())
