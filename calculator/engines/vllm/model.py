"""From a model's layers to the specs that vLLM's model code makes of them."""

from dataclasses import dataclass, replace

from ...caches import (
    MLA,
    Cache,
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    EncoderOnlyAttention,
    FullAttention,
    GatedDeltaNet,
    IndexKey,
    Mamba1,
    Mamba2,
    SinkAttention,
    SlidingWindowMLA,
    State,
)
from ...errors import EngineError
from ...formats import BF16, FP8, FP8_DS_MLA, FP8_V4, HalfByteRow, Storage, TurboQuant
from ...model import Layer, ModelPlan
from .hybrid import Alignment, align
from .rules import Rules
from .settings import MambaMode, Settings
from .spec import TYPES, LayerSpec

DEFAULT_BLOCK_SIZE = 16
MLA_BLOCK_SIZE = 64  # FlashMLA's kernels
V4_BLOCK_SIZE = 256
V4_WINDOW_BLOCK_SIZE = 64  # DeepseekV4SWACache
V4_ALIGNMENT = 576  # FlashMLA
# CompressorStateCache: its window is twice a ratio of 4, or once a ratio of 128.
COMPRESSOR_BLOCK_SIZES = {8: 4, 128: 8}
V4_KINDS = (SlidingWindowMLA, CompressedLatent, CompressedIndexKey, CompressorState)
V4_FORMATS = (FP8, FP8_DS_MLA, FP8_V4)
UNQUANTISED_ENDS = 2  # TurboQuantConfig.get_boundary_skip_layers
# Models of these can keep a state at every block (SupportsMambaPrefixCaching).
SNAPSHOT_STATES = (Mamba1, Mamba2)
# The convolutions of these keep columns for drafted tokens (MambaStateShapeCalculator, num_spec).
DRAFTED_STATES = (GatedDeltaNet, Mamba2)
UNKNOWN_STATES = frozenset({"rg_lru", "rwkv5"})


@dataclass(frozen=True, kw_only=True)
class ModelSpecs:
    """The specs of all cache layers in model order, each with the number of its model layer.

    `settings` are those that the engine works with: what it chooses itself is filled in.
    """

    specs: tuple[LayerSpec, ...]
    layers: tuple[int, ...]
    settings: Settings


def model_specs(plan: ModelPlan, storage: Storage, settings: Settings, rules: Rules) -> ModelSpecs:
    """What vLLM's model code makes of a plan.

    Raises:
        EngineError: a kind or a format that vLLM does not have.
    """
    _check(plan, storage, rules)
    block_size = settings.block_size or _default_block_size(plan)
    settings = replace(settings, block_size=block_size, mamba_cache_mode=_mode(plan, settings, rules))
    alignment = _alignment(plan, storage, settings)
    if alignment is not None:
        settings = replace(settings, block_size=int(alignment.block_size.value))
    made = {
        (group.caches, ends): _layer_specs(
            group.caches, _with_ends(storage, ends), settings, alignment, rules
        )
        for group in plan.groups()
        for ends in (False, True)
    }
    ends = _unquantised_layers(plan, storage)
    specs: list[LayerSpec] = []
    layers: list[int] = []
    for number, layer in enumerate(plan.layers):
        found = made[layer, number in ends]
        specs += found
        layers += [number] * len(found)
    return ModelSpecs(specs=tuple(specs), layers=tuple(layers), settings=settings)


def _check(plan: ModelPlan, storage: Storage, rules: Rules) -> None:
    sparse = {cache for group in plan.groups() if _sparse(group.caches) for cache in group.caches}
    for cache in plan.caches():
        if cache.kind in UNKNOWN_STATES or (type(cache) not in TYPES and not isinstance(cache, State)):
            raise EngineError("vllm.kind", version=rules.name, kind=cache.kind)
        if isinstance(cache, V4_KINDS):
            if storage.kv not in V4_FORMATS:
                raise EngineError("vllm.v4_format", format=storage.kv.name)
            continue
        stored = cache.stored_in(storage)
        elsewhere = isinstance(stored, HalfByteRow) or stored == FP8_V4
        quantised = isinstance(stored, TurboQuant) and type(cache) is not FullAttention
        if elsewhere or quantised or not cache.accepts(storage):
            raise EngineError("vllm.format", kind=cache.kind, format=stored.name)
        if isinstance(cache, MLA) and storage.kv == FP8_DS_MLA and cache not in sparse:
            raise EngineError("vllm.sparse_only", format=storage.kv.name)


def _sparse(layer: Layer) -> bool:
    """Whether the layer's attention is sparse: it has an indexer."""
    return any(isinstance(cache, IndexKey) for cache in layer)


def _states(plan: ModelPlan) -> list[State]:
    return [cache for cache in plan.caches() if isinstance(cache, State)]


def _default_block_size(plan: ModelPlan) -> int:
    if any(isinstance(cache, SlidingWindowMLA) for cache in plan.caches()):
        return V4_BLOCK_SIZE
    return MLA_BLOCK_SIZE if any(isinstance(cache, MLA) for cache in plan.caches()) else DEFAULT_BLOCK_SIZE


def _mode(plan: ModelPlan, settings: Settings, rules: Rules) -> MambaMode:
    """The mode that the engine works in; prefix caching is off with states, unless chosen.

    Source: vLLM 0.22.0 `model_executor/models/config.py`, MambaModelConfig.
    """
    mode, caching = settings.mamba_cache_mode, settings.enable_prefix_caching
    if caching is None:
        caching = mode not in (None, MambaMode.NONE)
    if not caching:
        return MambaMode.NONE
    snapshots = MambaMode.ALL in rules.mamba_modes and all(
        isinstance(state, SNAPSHOT_STATES) for state in _states(plan)
    )
    if mode is MambaMode.ALIGN or not snapshots:
        return MambaMode.ALIGN
    return MambaMode.ALL


def _with_drafts(state: State, settings: Settings) -> State:
    if isinstance(state, DRAFTED_STATES):
        return replace(state, conv_kernel=state.conv_kernel + settings.num_speculative_blocks)
    return state


def _alignment(plan: ModelPlan, storage: Storage, settings: Settings) -> Alignment | None:
    """The block sizes of attention beside state; None without one of the two."""
    tp = settings.tensor_parallel_size
    states = [_with_drafts(state, settings).unit_bytes(storage, tp) for state in _states(plan)]
    attention = next((cache for cache in plan.caches() if isinstance(cache, FullAttention | MLA)), None)
    if not states or attention is None or settings.mamba_cache_mode is None:
        return None
    one = LayerSpec(cache=attention, storage=storage, tp=tp, block_size=1)
    return align(
        token_page=one.page_size_bytes,
        state_page=max(int(state.value) for state in states),
        block_size=settings.block_size or DEFAULT_BLOCK_SIZE,
        kernel_block_size=settings.kernel_block_size,
        mode=settings.mamba_cache_mode,
        mamba_chunk_size=settings.mamba_chunk_size,
    )


def _unquantised_layers(plan: ModelPlan, storage: Storage) -> frozenset[int]:
    """The first two and the last two layers of a dense model, which TurboQuant leaves as they are."""
    if not isinstance(storage.kv, TurboQuant) or _states(plan):
        return frozenset()
    count = len(plan.layers)
    ends = min(UNQUANTISED_ENDS, count // 2)
    return frozenset(range(ends)) | frozenset(range(count - ends, count))


def _with_ends(storage: Storage, ends: bool) -> Storage:
    return replace(storage, kv=BF16) if ends and isinstance(storage.kv, TurboQuant) else storage


def _layer_specs(
    layer: Layer, storage: Storage, settings: Settings, alignment: Alignment | None, rules: Rules
) -> list[LayerSpec]:
    sparse = _sparse(layer)
    return [
        _spec(cache, storage, settings, alignment, sparse, rules)
        for cache in layer
        if not isinstance(cache, EncoderOnlyAttention)
    ]


def _spec(
    cache: Cache,
    storage: Storage,
    settings: Settings,
    alignment: Alignment | None,
    sparse: bool,
    rules: Rules,
) -> LayerSpec:
    tp, block_size = settings.tensor_parallel_size, settings.block_size or DEFAULT_BLOCK_SIZE
    if isinstance(cache, State):
        return _state_spec(cache, storage, settings, alignment)
    if isinstance(cache, V4_KINDS):
        return _v4_spec(cache, storage, tp, block_size)
    if isinstance(cache, SinkAttention) and (not cache.sink_len or cache.sink_len % block_size):
        raise EngineError("vllm.sink", sink_len=cache.sink_len, block_size=block_size)
    if isinstance(cache, MLA):
        packed = sparse and storage.kv == FP8
        kept = replace(storage, kv=FP8_DS_MLA) if packed else storage
        dtype = "auto" if kept.kv.element_bytes > 1 else kept.kv.name
        return LayerSpec(cache=cache, storage=kept, tp=tp, block_size=block_size, cache_dtype=dtype)
    slot = isinstance(storage.kv, TurboQuant)  # it holds K and V of one size
    if isinstance(cache, FullAttention) and (slot or TYPES[type(cache)] in rules.without_value_size):
        cache = replace(cache, head_size_v=cache.head_size)
    return LayerSpec(cache=cache, storage=storage, tp=tp, block_size=block_size)


def _state_spec(state: State, storage: Storage, settings: Settings, alignment: Alignment | None) -> LayerSpec:
    mode = settings.mamba_cache_mode or MambaMode.NONE
    chosen = settings.block_size or DEFAULT_BLOCK_SIZE
    padded = None if alignment is None else alignment.mamba_page_padded
    if alignment is not None and alignment.mamba_block_size is not None:
        chosen = int(alignment.mamba_block_size.value)
    return LayerSpec(
        cache=_with_drafts(state, settings),
        storage=storage,
        tp=settings.tensor_parallel_size,
        block_size=settings.max_model_len if mode is MambaMode.NONE else chosen,
        page_size_padded=None if padded is None else int(padded.value),
        mamba_cache_mode=mode,
        num_speculative_blocks=settings.num_speculative_blocks,
    )


def _v4_spec(cache: Cache, storage: Storage, tp: int, block_size: int) -> LayerSpec:
    """Source: vLLM 0.22.0 `models/deepseek_v4`."""
    packed = replace(storage, kv=FP8_V4)
    dtype: str | None = FP8_DS_MLA.name
    match cache:
        case SlidingWindowMLA():
            block_size = V4_WINDOW_BLOCK_SIZE
        case CompressorState():
            if cache.sliding_window not in COMPRESSOR_BLOCK_SIZES:
                raise EngineError("vllm.compressor", window=cache.sliding_window)
            block_size, dtype = COMPRESSOR_BLOCK_SIZES[cache.sliding_window], None
        case CompressedIndexKey():
            dtype = None
        case _:
            pass
    if block_size % cache.tokens_per_unit:
        raise EngineError("vllm.block", block_size=block_size, ratio=cache.tokens_per_unit)
    return LayerSpec(
        cache=cache,
        storage=packed,
        tp=tp,
        block_size=block_size,
        alignment=V4_ALIGNMENT,
        cache_dtype=dtype,
    )
