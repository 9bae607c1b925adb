"""Windows and chunks that are given blocks for all tokens, like full attention.

Source: vLLM 0.22.0 `unify_hybrid_kv_cache_specs`, 0.33.0 `_promote_local_kv_cache_specs`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...errors import EngineError
from ...formats import StorageFormat
from .spec import FULL_TYPES, UNFORGETTING, LayerSpec, SpecType
from .uniform import mergeable, one_type

UNQUANTISED = StorageFormat(name="uint8", element_bytes=1)
# A layer that keeps all tokens, from (layer, the block sizes of full attention in model order).
Promote = Callable[[LayerSpec, Sequence[int]], LayerSpec]


def promoted(specs: Sequence[LayerSpec], promote: Promote) -> Sequence[LayerSpec]:
    """All layers of one type, if there is full attention for the others to follow.

    Raises:
        EngineError: the layers are still not of one type.
    """
    if mergeable(specs) or one_type(specs):
        return specs
    full = [spec.block_size for spec in specs if spec.type in FULL_TYPES]
    if full:
        made: dict[LayerSpec, LayerSpec] = {}
        specs = [
            made.setdefault(spec, promote(spec, full)) if spec.type in UNFORGETTING else spec
            for spec in specs
        ]
    if not (mergeable(specs) or one_type(specs)):
        raise EngineError("vllm.hybrid_manager")
    return specs


def losing_quantisation(spec: LayerSpec, full: Sequence[int]) -> LayerSpec:
    """0.22.0: only windows of latents take the blocks of full attention, and chunks lose their scales."""
    match spec.type:
        case SpecType.CHUNKED_LOCAL:
            # The engine forgets the quantisation here: what is left is the type of the elements.
            kv = spec.storage.kv if spec.storage.kv.element_bytes > 1 else UNQUANTISED
            return replace(spec, unforgetting=True, storage=replace(spec.storage, kv=kv))
        case SpecType.SLIDING_WINDOW_MLA:
            return replace(spec, unforgetting=True, block_size=full[0])
        case _:
            return replace(spec, unforgetting=True)


def keeping_all_else(spec: LayerSpec, full: Sequence[int]) -> LayerSpec:
    """0.33.0: all take the blocks of full attention, if of one size, and padding grows with them."""
    block_size = full[0] if len(set(full)) == 1 else spec.block_size
    padded = spec.page_size_padded
    if padded is not None:
        padded = max(padded, int(spec.real_page.value) * block_size // spec.block_size)
    return replace(spec, unforgetting=True, block_size=block_size, page_size_padded=padded, retained_tokens=0)
