"""From a model's layers to the specs that vLLM's model code makes of them."""

from dataclasses import dataclass, replace

from ...caches import (
    MLA,
    CompressorState,
    FullAttention,
    IndexKey,
    Mamba1,
    Mamba2,
    RingBuffer,
    SlidingWindowMLA,
    State,
)
from ...errors import EngineError
from ...formats import (
    BF16,
    FP8,
    FP8_DS_MLA,
    FP8_V4,
    MXFP8,
    NVFP4_DS_MLA,
    HalfByteRow,
    HeadScaled,
    Storage,
    TurboQuant,
)
from ...model import Layer, ModelPlan
from .hybrid import Alignment, align
from .layer_specs import DEFAULT_BLOCK_SIZE, V4_KINDS, SpecMaker, is_v41, with_drafts
from .rules import Rules
from .settings import CacheLayout, MambaMode, Settings
from .spec import TYPES, LayerSpec

MLA_BLOCK_SIZE = 64  # FlashMLA's kernels
V4_BLOCK_SIZE = 256
V41_BLOCK_SIZE = 128
V4_FORMATS = (FP8, FP8_DS_MLA, FP8_V4)
V41_FORMATS = (*V4_FORMATS, NVFP4_DS_MLA)
UNQUANTISED_ENDS = 2  # TurboQuantConfig.get_boundary_skip_layers
# Models of these can keep a state at every block (SupportsMambaPrefixCaching).
SNAPSHOT_STATES = (Mamba1, Mamba2)
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
    v41 = any(map(is_v41, plan.caches()))
    _check(plan, storage, rules, v41=v41)
    block_size = settings.block_size or _default_block_size(plan, v41=v41)
    layout = settings.kv_cache_layout or _default_layout(plan)
    mode = _mode(plan, settings, rules)
    settings = replace(settings, block_size=block_size, mamba_cache_mode=mode, kv_cache_layout=layout)
    alignment = _alignment(plan, storage, settings, rules)
    if alignment is not None:
        settings = replace(settings, block_size=int(alignment.block_size.value))
    made = {
        (group.caches, ends): tuple(
            SpecMaker(
                storage=_with_ends(storage, ends),
                settings=settings,
                rules=rules,
                alignment=alignment,
                v41=v41,
            ).specs(group.caches)
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


def _check(plan: ModelPlan, storage: Storage, rules: Rules, *, v41: bool) -> None:
    if storage.kv.name in rules.formats_to_come:
        raise EngineError("vllm.format_since", version=rules.name, format=storage.kv.name)
    sparse = {cache for group in plan.groups() if _sparse(group.caches) for cache in group.caches}
    compressed = any(isinstance(cache, CompressorState | RingBuffer) for cache in plan.caches())
    for cache in plan.caches():
        if cache.kind in UNKNOWN_STATES or (type(cache) not in TYPES and not isinstance(cache, State)):
            raise EngineError("vllm.kind", version=rules.name, kind=cache.kind)
        if cache.kind in rules.kinds_to_come or (not rules.packed and is_v41(cache)):
            raise EngineError("vllm.kind", version=rules.name, kind=cache.kind)
        if isinstance(cache, V4_KINDS):
            if not compressed:
                raise EngineError("vllm.sliding_latent", version=rules.name)
            if storage.kv not in (V41_FORMATS if v41 else V4_FORMATS):
                raise EngineError("vllm.v4_format", format=storage.kv.name)
            continue
        stored = cache.stored_in(storage)
        elsewhere = isinstance(stored, HalfByteRow) or stored in (FP8_V4, MXFP8)
        quantised = isinstance(stored, TurboQuant) and type(cache) is not FullAttention
        scaled = isinstance(cache, MLA) and isinstance(stored, HeadScaled) and not rules.packed
        if elsewhere or quantised or scaled or not cache.accepts(storage):
            raise EngineError("vllm.format", kind=cache.kind, format=stored.name)
        if isinstance(cache, MLA) and storage.kv in (FP8_DS_MLA, NVFP4_DS_MLA) and cache not in sparse:
            raise EngineError("vllm.sparse_only", format=storage.kv.name)


def _sparse(layer: Layer) -> bool:
    """Whether the layer's attention is sparse: it has an indexer."""
    return any(isinstance(cache, IndexKey) for cache in layer)


def _states(plan: ModelPlan) -> list[State]:
    return [cache for cache in plan.caches() if isinstance(cache, State)]


def _default_layout(plan: ModelPlan) -> CacheLayout:
    """What DeepSeek-V4's indexer asks for, or what most backends prefer."""
    v4 = any(isinstance(cache, V4_KINDS) for cache in plan.caches())
    return CacheLayout.BLHNC if v4 else CacheLayout.LBNHC


def _default_block_size(plan: ModelPlan, *, v41: bool) -> int:
    if any(isinstance(cache, SlidingWindowMLA) for cache in plan.caches()):
        return V41_BLOCK_SIZE if v41 else V4_BLOCK_SIZE
    return MLA_BLOCK_SIZE if any(isinstance(cache, MLA) for cache in plan.caches()) else DEFAULT_BLOCK_SIZE


def _mode(plan: ModelPlan, settings: Settings, rules: Rules) -> MambaMode:
    """The mode that the engine works in.

    Source: vLLM 0.22.0 and 0.33.0 `model_executor/models/config.py`, MambaModelConfig.

    Raises:
        EngineError: a mode that this version does not have.
    """
    mode, caching = settings.mamba_cache_mode, settings.enable_prefix_caching
    if mode is not None and mode not in rules.mamba_modes:
        raise EngineError("vllm.mode", version=rules.name, mode=mode.value)
    states = _states(plan)
    if caching is None:
        beside = any(not isinstance(cache, State) for cache in plan.caches())
        caching = mode not in (None, MambaMode.NONE) or (mode is None and rules.states_reused and beside)
    if not caching:
        return MambaMode.NONE
    snapshots = MambaMode.ALL in rules.mamba_modes and all(
        isinstance(state, SNAPSHOT_STATES) for state in states
    )
    if mode is MambaMode.ALIGN or not snapshots:
        return MambaMode.ALIGN
    return MambaMode.ALL


def _alignment(plan: ModelPlan, storage: Storage, settings: Settings, rules: Rules) -> Alignment | None:
    """The block sizes of attention beside state; None without one of the two."""
    tp = settings.tensor_parallel_size
    states = [with_drafts(state, settings, rules).unit_bytes(storage, tp) for state in _states(plan)]
    attention = next((cache for cache in plan.caches() if isinstance(cache, FullAttention | MLA)), None)
    if not states or attention is None or settings.mamba_cache_mode is None:
        return None
    one = LayerSpec(cache=attention, storage=storage, tp=tp, block_size=1, packed=rules.packed)
    kernel = settings.kernel_block_size
    if isinstance(attention, MLA):
        kernel = max(kernel, rules.least_latent_block)
    return align(
        token_page=one.page_size_bytes,
        state_page=max(int(state.value) for state in states),
        block_size=settings.block_size or DEFAULT_BLOCK_SIZE,
        kernel_block_size=kernel,
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
