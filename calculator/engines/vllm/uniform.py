"""When layers count as equal, and when as of one type.

Source: vLLM 0.22.0 and 0.33.0 `v1/kv_cache_interface.py`: `merge` of each spec class, `is_uniform_type`.
"""

from collections.abc import Sequence

from ...caches import ReferenceWindow
from ...errors import EngineError
from ...explain import lift
from .spec import FULL_TYPES, MLA_TYPES, WINDOW_TYPES, LayerSpec, SpecType


def mergeable(specs: Sequence[LayerSpec]) -> bool:
    """Whether all layers are equal in the eyes of the first one's class.

    Raises:
        EngineError: full attention with more than one window.
    """
    first = specs[0]
    if first.type in MLA_TYPES:
        return all(spec.type in MLA_TYPES and _mla_key(spec) == _mla_key(first) for spec in specs)
    if first.type is SpecType.SLIDING_WINDOW_MLA:
        return all(spec.type is first.type and _window_key(spec) == _window_key(first) for spec in specs)
    if isinstance(first.cache, ReferenceWindow) and not all(
        _same_reference(first.cache, spec) for spec in specs
    ):
        return False
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
    if any(spec.block_size != first.block_size or spec.dcp_sharded != first.dcp_sharded for spec in specs):
        return False
    match first.type:
        case SpecType.ENCODER_ONLY:
            raise EngineError("vllm.encoder_only")
        case SpecType.SLIDING_WINDOW:
            return all(spec.type in WINDOW_TYPES and spec.window == first.window for spec in specs)
        case SpecType.SLIDING_WINDOW_MLA:
            alike = (first.window, first.replayed)
            return all(spec.type is first.type and (spec.window, spec.replayed) == alike for spec in specs)
        case SpecType.CHUNKED_LOCAL:
            return all(spec.type is first.type and spec.chunk == first.chunk for spec in specs)
        case SpecType.MAMBA:
            return all(spec.type is first.type and _state_key(spec) == _state_key(first) for spec in specs)
        case SpecType.CROSS | SpecType.RING:
            return all(spec.type is first.type for spec in specs)
        case _:
            return all(spec.type in FULL_TYPES for spec in specs)


def _same_reference(first: ReferenceWindow, spec: LayerSpec) -> bool:
    """Only a group that begins with such a window looks at it; full attention takes one in as its like."""
    cache = spec.cache
    return isinstance(cache, ReferenceWindow) and cache.reference_window == first.reference_window


def _mla_key(spec: LayerSpec) -> tuple[object, ...]:
    key = (spec.cache_dtype, spec.cache.tokens_per_unit, spec.model_version)
    return (*key, spec.indexer, spec.leads_indexer, *_fields(spec)) if spec.packed else key


def _window_key(spec: LayerSpec) -> tuple[object, ...]:
    """The size of the vector is not among the fields that are compared, in no version."""
    key = (spec.cache_dtype, spec.cache.tokens_per_unit, spec.model_version, spec.window)
    more = (spec.retained_tokens, spec.replayed, spec.replicated, spec.tp_shards)
    return (*key, *more, spec.stride_bytes, spec.stride_kernel_block)


def _attention_key(spec: LayerSpec) -> tuple[object, ...]:
    """Fields of the engine's AttentionSpec: until 0.33.0 the size of V is not among them."""
    key = _fields(spec)
    return (*key, spec.row.vectors["value"].value) if spec.packed else key


def _fields(spec: LayerSpec) -> tuple[object, ...]:
    heads = lift(0) if spec.row.heads is None else spec.row.heads
    width = next(iter(spec.row.vectors.values())) if not spec.packed else spec.content
    return (
        spec.block_size,
        heads.value,
        width.value,
        spec.format,
        _padded(spec),
        spec.replicated,
        spec.tp_shards,
        spec.states_per_token,
        spec.planes,
        spec.stride_bytes,
        spec.stride_kernel_block,
    )


def _padded(spec: LayerSpec) -> int | None:
    """A page that was given, or since 0.33.0 also one that its alignment gave."""
    if not spec.packed or spec.page_size_bytes == spec.real_page.value:
        return spec.page_size_padded
    return spec.page_size_bytes


def _state_key(spec: LayerSpec) -> tuple[object, ...]:
    """Until 0.33.0 states of different pages are of one type."""
    page = spec.page_size_bytes if spec.packed else None
    return (spec.num_speculative_blocks, spec.checkpoint_blocks, spec.checkpoint_alignment, page)
