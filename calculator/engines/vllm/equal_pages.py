"""Layers of several types with one page size for all, in groups of as many layers as the rarest type has.

Source: vLLM 0.22.0 and 0.33.0 `unify_kv_cache_spec_page_size`, `_get_kv_cache_groups_uniform_page_size`.
"""

from collections.abc import Mapping, Sequence
from math import gcd

from ...errors import EngineError
from .group import Group, members
from .promotion import keeping_all_else, promoted
from .spec import MLA_TYPES, LayerSpec, SpecType
from .uniform import mergeable

Typed = list[tuple[LayerSpec, list[int]]]  # each type with the numbers of its layers


def group_layers(specs: Sequence[LayerSpec]) -> tuple[Group, ...]:
    """0.22.0: pages that do not divide the largest one are refused.

    Raises:
        EngineError: such pages, or hidden states alone.
    """
    kept, hidden = _apart(specs)
    page_size = max(specs[layer].page_size_bytes for layer in kept)
    unified = {layer: _grown(specs[layer], page_size) for layer in kept}
    groups = _split(_by_spec(unified), unified)
    for layer in hidden:
        fitted = specs[layer].resized(max(page_size // _token(specs[layer]), 1)).padded(page_size)
        groups.append(Group(members=((fitted, (layer,)),)))
    return tuple(groups)


def group_padded_layers(specs: Sequence[LayerSpec]) -> tuple[Group, ...]:
    """0.33.0: such pages are padded, and types that can be merged are one.

    Latents are never padded; beside plain windows all layers then keep all tokens, in one container.

    Raises:
        EngineError: pages of latents that do not divide the largest one, or hidden states alone.
    """
    kept, hidden = _apart(specs)
    page_size = max(specs[layer].page_size_bytes for layer in kept)
    if any(_unfit(specs[layer], page_size) for layer in kept):
        return _container(specs)
    unified = {layer: _padded(specs[layer], page_size) for layer in kept}
    groups = _split(_merged(_by_spec(unified)), unified)
    return tuple(groups) if not hidden else _with_hidden(groups, specs, hidden, page_size)


def _apart(specs: Sequence[LayerSpec]) -> tuple[list[int], list[int]]:
    """The numbers of the layers with keys and values, and of those with hidden states."""
    hidden = [layer for layer, spec in enumerate(specs) if spec.type is SpecType.HIDDEN_STATE]
    kept = [layer for layer in range(len(specs)) if layer not in set(hidden)]
    if not kept:
        raise EngineError("vllm.hidden_states")
    return kept, hidden


def _by_spec(unified: dict[int, LayerSpec]) -> Typed:
    found: dict[LayerSpec, list[int]] = {}
    for layer, spec in unified.items():
        found.setdefault(spec, []).append(layer)
    return list(found.items())


def _merged(types: Typed) -> Typed:
    """Types that differ in nothing but a note of a window are one."""
    buckets: list[tuple[list[LayerSpec], list[int]]] = []
    for spec, layers in types:
        for specs, held in buckets:
            if _can_merge([*specs, spec]):
                specs.append(spec)
                held += layers
                break
        else:
            buckets.append(([spec], list(layers)))
    return [(specs[0], layers) for specs, layers in buckets]


def _can_merge(specs: Sequence[LayerSpec]) -> bool:
    try:
        return mergeable(specs)
    except EngineError:  # windows of two sizes
        return False


def _split(types: Typed, unified: Mapping[int, LayerSpec]) -> list[Group]:
    """Types in groups of about as many layers as the rarest one has; a group has the class of its first."""
    smallest, largest = (rule(len(layers) for _, layers in types) for rule in (min, max))
    group_size = largest if 2 * largest < 3 * smallest else smallest
    groups = []
    for _, layers in types:
        stride = -(-len(layers) // group_size)
        for first in range(stride):
            spec = unified[layers[first]]
            groups.append(Group(members=((spec, tuple(layers[first::stride])),)))
    return groups


def _grown(spec: LayerSpec, page_size: int) -> LayerSpec:
    """The spec with blocks that fill a page of `page_size`."""
    own = spec.page_size_bytes
    if own == page_size:
        return spec
    grown = spec.resized(spec.block_size * (page_size // own))
    # The page of a state, or one that is padded, does not grow with the block.
    fixed = spec.type is SpecType.MAMBA or spec.page_size_padded is not None
    if page_size % own or fixed or grown.page_size_bytes != page_size:
        raise EngineError("vllm.pages", page=own, largest=page_size)
    return grown


def _unfit(spec: LayerSpec, page_size: int) -> bool:
    return spec.type in MLA_TYPES and page_size % spec.page_size_bytes > 0


def _padded(spec: LayerSpec, page_size: int) -> LayerSpec:
    """The spec with a page of `page_size`: longer blocks where it is a multiple, else padding."""
    own = spec.page_size_bytes
    if own == page_size:
        return spec
    if spec.type is SpecType.MAMBA or page_size % own:
        return spec.padded(page_size)
    return _grown(spec, page_size)


def _container(specs: Sequence[LayerSpec]) -> tuple[Group, ...]:
    """All layers as full attention. Source: 0.33.0 `_try_get_full_allocation_fallback_groups`."""
    types = {spec.type for spec in specs}
    others = {SpecType.HIDDEN_STATE, SpecType.SLIDING_WINDOW_MLA, SpecType.CHUNKED_LOCAL}
    largest = max(spec.page_size_bytes for spec in specs)
    page = next(spec.page_size_bytes for spec in specs if _unfit(spec, largest))
    refused = EngineError("vllm.pages", page=page, largest=largest)
    if SpecType.SLIDING_WINDOW not in types or types & others:
        raise refused
    try:
        specs = promoted(specs, keeping_all_else)
    except EngineError:
        raise refused from None
    return (Group(members=members(specs, range(len(specs))), container=True),)


def _with_hidden(
    groups: list[Group], specs: Sequence[LayerSpec], hidden: Sequence[int], page_size: int
) -> tuple[Group, ...]:
    """Hidden states with blocks that divide those of the groups, and with pages of the same size.

    Where one token of theirs does not fit into a page, the blocks of all groups grow. Source: 0.33.0
    `_ensure_min_page_size`.
    """
    scale = max(-(-_token(specs[layer]) // page_size) for layer in hidden)
    if scale > 1:
        groups = [_scaled(group, scale) for group in groups]
        page_size *= scale
    shared = gcd(*(group.spec.block_size for group in groups))
    for layer in hidden:
        most = max(page_size // _token(specs[layer]), 1)
        block_size = next(size for size in range(min(shared, most), 0, -1) if shared % size == 0)
        fitted = specs[layer].resized(block_size).padded(page_size)
        groups.append(Group(members=((fitted, (layer,)),)))
    return tuple(groups)


def _scaled(group: Group, scale: int) -> Group:
    ((spec, layers),) = group.members
    grown = spec.resized(spec.block_size * scale)
    if spec.page_size_padded is not None or spec.page_size_bytes > spec.real_page.value:
        grown = grown.padded(spec.page_size_bytes * scale)
    return Group(members=((grown, layers),))


def _token(spec: LayerSpec) -> int:
    return int(spec.format.row_bytes(spec.row).value)
