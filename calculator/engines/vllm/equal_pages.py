"""Layers of several types with one page size for all, in groups of as many layers as the rarest type has.

Source: vLLM 0.22.0 `_get_kv_cache_groups_uniform_page_size`.
"""

from collections.abc import Sequence

from ...errors import EngineError
from .group import Group, members
from .spec import LayerSpec, SpecType


def group_layers(specs: Sequence[LayerSpec]) -> tuple[Group, ...]:
    """The groups of all layers, in model order.

    Raises:
        EngineError: pages that do not divide the largest one, or hidden states alone.
    """
    kept = [layer for layer, spec in enumerate(specs) if spec.type is not SpecType.HIDDEN_STATE]
    by_spec = members(specs, kept)
    if not by_spec:
        raise EngineError("vllm.hidden_states")
    page_size = max(spec.page_size_bytes for spec, _ in by_spec)
    unified: dict[LayerSpec, list[int]] = {}
    for spec, layers in by_spec:
        unified.setdefault(_unified(spec, page_size), []).extend(layers)
    smallest, largest = (rule(len(layers) for layers in unified.values()) for rule in (min, max))
    group_size = largest if 2 * largest < 3 * smallest else smallest
    groups = []
    for spec, numbers in unified.items():
        ordered = sorted(numbers)
        stride = -(-len(ordered) // group_size)
        groups += [Group(members=((spec, tuple(ordered[i::stride])),)) for i in range(stride)]
    hidden = [layer for layer, spec in enumerate(specs) if spec.type is SpecType.HIDDEN_STATE]
    for layer in hidden:
        token = int(specs[layer].format.row_bytes(specs[layer].row).value)
        fitted = specs[layer].resized(max(page_size // token, 1)).padded(page_size)
        groups.append(Group(members=((fitted, (layer,)),)))
    return tuple(groups)


def _unified(spec: LayerSpec, page_size: int) -> LayerSpec:
    """The spec with blocks that fill a page of `page_size`. Source: `unify_kv_cache_spec_page_size`."""
    own = spec.page_size_bytes
    if own == page_size:
        return spec
    grown = spec.resized(spec.block_size * (page_size // own))
    # The page of a state, or one that is padded, does not grow with the block.
    fixed = spec.type is SpecType.MAMBA or spec.page_size_padded is not None
    if page_size % own or fixed or grown.page_size_bytes != page_size:
        raise EngineError("vllm.pages", page=own, largest=page_size)
    return grown
