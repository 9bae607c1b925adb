"""From the layers of a model to groups with one block table each.

Source: vLLM 0.22.0 `v1/core/kv_cache_utils.py`, `get_kv_cache_groups`. All functions take the specs of all
layers in model order.
"""

from collections.abc import Sequence
from dataclasses import replace

from ...errors import EngineError
from ...explain import lift
from ...formats import StorageFormat
from .group import Group, members
from .rules import Rules
from .spec import FULL_TYPES, MLA_TYPES, WINDOW_TYPES, LayerSpec, SpecType

UNQUANTISED = StorageFormat(name="uint8", element_bytes=1)


def group_layers(
    specs: Sequence[LayerSpec], rules: Rules, *, hybrid_manager: bool = True
) -> tuple[Group, ...]:
    """The groups in the order in which the engine makes them; none for a model without a cache.

    Raises:
        EngineError: the layers cannot share a pool of blocks.
    """
    if not specs:
        return ()
    if not hybrid_manager:
        specs = without_hybrid_manager(specs)
    everything = range(len(specs))
    if mergeable(specs):
        return (Group(members=((specs[0], tuple(everything)),)),)
    if one_type(specs):
        return (Group(members=members(specs, everything), container=True),)
    return rules.group_mixed(specs)


def mergeable(specs: Sequence[LayerSpec]) -> bool:
    """Whether all layers are equal in the eyes of the first one's class.

    Raises:
        EngineError: full attention with more than one window.
    """
    first = specs[0]
    if first.type in MLA_TYPES:
        return all(spec.type in MLA_TYPES and _mla_key(spec) == _mla_key(first) for spec in specs)
    if first.type is SpecType.SLIDING_WINDOW_MLA:
        return all(
            spec.type is first.type and (_mla_key(spec), spec.window) == (_mla_key(first), first.window)
            for spec in specs
        )
    if first.type in FULL_TYPES:
        if not all(spec.type in FULL_TYPES - MLA_TYPES for spec in specs):
            return False
        windows, chunks = {spec.window for spec in specs} - {None}, {spec.chunk for spec in specs} - {None}
        for sizes in (windows, chunks):
            if len(sizes) > 1:
                raise EngineError("vllm.windows", sizes=", ".join(map(str, sorted(filter(None, sizes)))))
        equal = all(_attention_key(spec) == _attention_key(first) for spec in specs)
        return equal and not (windows and chunks)
    return all(spec == first for spec in specs)


def one_type(specs: Sequence[LayerSpec]) -> bool:
    """Whether all layers need the same number of slots, whatever their pages. Source: `is_uniform_type`.

    Raises:
        EngineError: encoder-only layers of different shapes, which no group takes.
    """
    first = specs[0]
    if any(spec.block_size != first.block_size for spec in specs):
        return False
    match first.type:
        case SpecType.ENCODER_ONLY:
            raise EngineError("vllm.encoder_only")
        case SpecType.SLIDING_WINDOW:
            return all(spec.type in WINDOW_TYPES and spec.window == first.window for spec in specs)
        case SpecType.SLIDING_WINDOW_MLA:
            return all(spec.type is first.type and spec.window == first.window for spec in specs)
        case SpecType.CHUNKED_LOCAL:
            return all(spec.type is first.type and spec.chunk == first.chunk for spec in specs)
        case SpecType.MAMBA:
            return all(
                spec.type is first.type and spec.num_speculative_blocks == first.num_speculative_blocks
                for spec in specs
            )
        case SpecType.CROSS:
            return all(spec.type is first.type for spec in specs)
        case _:
            return all(spec.type in FULL_TYPES for spec in specs)


def without_hybrid_manager(specs: Sequence[LayerSpec]) -> Sequence[LayerSpec]:
    """Windows and chunks beside full attention made full attention. Source: `unify_hybrid_kv_cache_specs`.

    Raises:
        EngineError: the layers are still not of one type.
    """
    if mergeable(specs) or one_type(specs):
        return specs
    full = [spec for spec in specs if spec.type in FULL_TYPES]
    if full:
        made: dict[LayerSpec, LayerSpec] = {}
        specs = [made.setdefault(spec, _unforgetting(spec, full[0].block_size)) for spec in specs]
    if not (mergeable(specs) or one_type(specs)):
        raise EngineError("vllm.hybrid_manager")
    return specs


def _unforgetting(spec: LayerSpec, block_size: int) -> LayerSpec:
    match spec.type:
        case SpecType.SLIDING_WINDOW:
            return replace(spec, unforgetting=True)
        case SpecType.CHUNKED_LOCAL:
            # The engine forgets the quantisation here: what is left is the type of the elements.
            kv = spec.storage.kv if spec.storage.kv.element_bytes > 1 else UNQUANTISED
            return replace(spec, unforgetting=True, storage=replace(spec.storage, kv=kv))
        case SpecType.SLIDING_WINDOW_MLA:
            return replace(spec, unforgetting=True, block_size=block_size)
        case _:
            return spec


def _mla_key(spec: LayerSpec) -> tuple[object, ...]:
    return (spec.cache_dtype, spec.cache.tokens_per_unit, spec.model_version)


def _attention_key(spec: LayerSpec) -> tuple[object, ...]:
    """Fields of the engine's AttentionSpec: the size of V is not among them."""
    heads = lift(0) if spec.row.heads is None else spec.row.heads
    key = spec.row.vectors["key"]
    return (spec.block_size, heads.value, key.value, spec.format, spec.page_size_padded)
