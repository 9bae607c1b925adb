"""From the layers of a model to groups with one block table each.

Source: vLLM 0.22.0 `v1/core/kv_cache_utils.py`, 0.33.0 `v1/core/kv_cache_planning.py`, `get_kv_cache_groups`.
All functions take the specs of all layers in model order.
"""

from collections.abc import Sequence

from .group import Group, members
from .promotion import Promote, promoted
from .rules import Rules
from .settings import CacheLayout
from .spec import LayerSpec
from .uniform import mergeable, one_type


def group_layers(
    specs: Sequence[LayerSpec],
    rules: Rules,
    *,
    hybrid_manager: bool = True,
    layout: CacheLayout = CacheLayout.LBNHC,
) -> tuple[Group, ...]:
    """The groups in the order in which the engine makes them; none for a model without a cache.

    Raises:
        EngineError: the layers cannot share a pool of blocks.
    """
    if not specs:
        return ()
    if not hybrid_manager:
        specs = _without_hybrid_manager(specs, rules.promote)
    everything = range(len(specs))
    if mergeable(specs):
        return (Group(members=((specs[0], tuple(everything)),)),)
    if one_type(specs):
        return (Group(members=members(specs, everything), container=True),)
    return rules.group_mixed(specs, layout)


def _without_hybrid_manager(specs: Sequence[LayerSpec], promote: Promote) -> Sequence[LayerSpec]:
    """Every layer keeps all tokens; what context parallelism shares out and what it does not, apart."""
    kept = list(specs)
    for replicated in (False, True):
        layers = [layer for layer, spec in enumerate(specs) if spec.replicated is replicated]
        if layers:
            made = promoted([specs[layer] for layer in layers], promote)
            for layer, spec in zip(layers, made, strict=True):
                kept[layer] = spec
    return kept
