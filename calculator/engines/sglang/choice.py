"""Which configurator and which pools a plan gets, and which formats and options they refuse.

Source: SGLang 0.5.13 and 0.5.23 `pool_configurator.py` create_memory_pool_configurator, `server_args.py`;
0.5.13 `model_runner_kv_cache_mixin.py` _init_pools; 0.5.23 `kv_cache_configurator.py`.
"""

from ...caches import EncoderOnlyAttention, IndexKey, SlidingWindow, SlidingWindowMLA
from ...errors import EngineError
from ...formats import (
    BF16,
    FP4_E2M1,
    FP4_MX_BLOCK16,
    FP8,
    FP8_DS_MLA,
    FP8_V4,
    MXFP8,
    NVFP4,
    Storage,
)
from ...model import ModelPlan
from .cell import latent_format
from .deepseek_v4 import V4Options
from .held import Family, Held
from .pools import VECTOR_BYTES
from .rules import Rules
from .settings import Settings
from .sizing import AttentionSizing, LatentSizing, Sizing, SparseAttentionSizing, WindowSizing
from .v4_sizing import V4PagedSizing, V4Sizing

SPARSE_FORMATS = (BF16, FP8, FP8_DS_MLA)
INDEX_WIDTH = 128  # elements of an index key beside a latent
V4_PAGE = 256  # tokens of a page of windows
V4_ENTRY = (448, 64)  # FP8 elements and rope elements of a 584-byte row
_MXFP8 = (Family.ATTENTION, Family.HYBRID, Family.WINDOW)


NEW_FORMATS = (NVFP4, FP4_MX_BLOCK16, MXFP8)  # since 0.5.23
HALVES = (NVFP4, FP4_MX_BLOCK16, FP4_E2M1)


def check_supported(plan: ModelPlan, storage: Storage, settings: Settings, rules: Rules) -> None:
    """Formats, platforms and tensor-parallel sizes that the engine has no pool for."""
    if storage.kv not in rules.formats:
        if storage.kv == FP4_E2M1:
            raise EngineError("sglang.format_gone", version=rules.name, format=storage.kv.name)
        if storage.kv in NEW_FORMATS:
            raise EngineError("sglang.format_since", version=rules.name, format=storage.kv.name)
        raise EngineError("sglang.format", format=storage.kv.name)
    if settings.platform == "plug-in" or settings.attention_backend == "ascend":
        raise EngineError("sglang.platform", platform=settings.attention_backend or settings.platform)
    tp = settings.attention_tp
    for cache in plan.caches():
        if cache.kind in rules.kinds_to_come:
            raise EngineError("sglang.kind", kind=cache.kind)
        if not cache.accepts(storage):
            raise EngineError("sglang.format", format=cache.stored_in(storage).name)
        if not cache.accepts_tp(tp):
            raise EngineError("sglang.tp", kind=cache.kind, tp=tp)


def has_window_pool(plan: ModelPlan, settings: Settings, rules: Rules) -> bool:
    """Whether window layers of this model have a pool of their own; without it they keep all tokens.

    A plan that names no model class, as from sliders, is taken to be of one that has it. Source:
    `model_config.py` is_hybrid_swa_model; `server_args.py` disable_hybrid_swa_memory.
    """
    if settings.hierarchical_cache and plan.architecture in rules.unsplit_with_host_cache:
        return False
    known = (None, *rules.hybrid_swa_architectures)
    return plan.hybrid_swa or plan.architecture in known


def server_limit(kind: Family, settings: Settings, rules: Rules) -> int | None:
    """The user's limit of requests, or what the server sets without one, over all workers."""
    if settings.max_running_requests is not None:
        return settings.max_running_requests
    if kind is Family.V4:
        return rules.v4_requests
    return rules.drafter_requests if settings.speculative_num_draft_tokens else None


def attention_window(plan: ModelPlan) -> int:
    """The engine's window: of sliding-window attention the model's less the newest token itself."""
    return max(
        (
            int(cache.bound.value) - isinstance(cache, SlidingWindow)
            for cache in plan.caches()
            if cache.bound is not None
        ),
        default=0,
    )


def sizing_of(
    plan: ModelPlan, held: Held, kind: Family, storage: Storage, settings: Settings, rules: Rules
) -> Sizing:
    """The configurator and the pools of a family.

    Raises:
        EngineError: a format or option that this family's pool does not take.
    """
    encoder = any(isinstance(cache, EncoderOnlyAttention) for cache in plan.caches())
    placeholder = settings.prefill_only or encoder
    fp4 = storage.kv in HALVES
    if placeholder and (kind is not Family.ATTENTION or fp4):
        raise EngineError("sglang.prefill_only", family=kind.value)
    if settings.hisparse_host_to_device_ratio and kind not in (Family.SPARSE, Family.V4):
        raise EngineError("sglang.hisparse", family=kind.value)
    only = {FP8_V4: (Family.V4,), NVFP4: (Family.ATTENTION, Family.HYBRID), MXFP8: _MXFP8}
    if kind not in only.get(storage.kv, (kind,)):
        raise EngineError("sglang.format", format=storage.kv.name)
    if kind is Family.HYBRID and storage.kv == FP4_E2M1:
        raise EngineError("sglang.hybrid_fp4")
    if kind is Family.SPARSE:
        assert held.index is not None
        _check_sparse(held.index.cache, settings)
    if kind is Family.V4:
        if fp4:
            raise EngineError("sglang.format", format=storage.kv.name)
        if rules.v4_paged:
            limit = server_limit(kind, settings, rules)
            requests = limit and max(1, limit // settings.data_parallel_size)
            return V4PagedSizing(settings=settings, storage=FP8_V4, rules=rules, held=held, requests=requests)
        assert held.v4_window is not None
        _check_v4(held.v4_window.cache, settings)
        return V4Sizing(
            settings=settings,
            storage=FP8_V4,
            rules=rules,
            held=held,
            options=V4Options(
                swa_full_tokens_ratio=settings.swa_full_tokens_ratio or rules.v4_full_tokens_ratio,
                speculative=settings.speculative_num_draft_tokens > 0,
                online_c128=settings.online_c128,
                host_to_device_ratio=settings.hisparse_host_to_device_ratio or 1,
            ),
        )
    if kind is Family.WINDOW:
        assert held.window is not None
        ratio = settings.swa_full_tokens_ratio or rules.swa_full_tokens_ratio
        return WindowSizing(
            settings=settings,
            storage=storage.kv,
            rules=rules,
            full=held.full,
            window=held.window,
            ratio=ratio,
            tokens=attention_window(plan),
            own_shapes=plan.architecture is None or plan.architecture in rules.own_window_shapes,
        )
    if held.latent is not None:
        sparse = held.index is not None
        if sparse and storage.kv not in SPARSE_FORMATS:
            raise EngineError("sglang.sparse_format", format=storage.kv.name)
        return LatentSizing(
            settings=settings,
            storage=latent_format(
                storage.kv,
                sparse=sparse,
                backend=settings.dsa_backend,
                plain=rules.plain_latent_backends[settings.platform],
            ),
            rules=rules,
            part=held.latent,
            index=held.index,
        )
    assert held.full is not None
    if held.sparse_index is not None:
        if fp4:
            raise EngineError("sglang.format", format=storage.kv.name)
        return SparseAttentionSizing(
            settings=settings, storage=storage.kv, rules=rules, part=held.full, index=held.sparse_index
        )
    if settings.kv_cache_layout == "vectorized_5d":
        _check_vectorized(settings, plain=not (placeholder or fp4 or storage.kv == MXFP8))
    return AttentionSizing(
        settings=settings,
        storage=storage.kv,
        rules=rules,
        part=held.full,
        placeholder=placeholder,
        hybrid=kind is Family.HYBRID,
    )


def _check_sparse(index: IndexKey, settings: Settings) -> None:
    """What DSATokenToKVPool asserts: pages of 64 tokens, on ROCm of 1 or 16·n, and index keys of 128."""
    if index.index_head_dim != INDEX_WIDTH:
        raise EngineError("sglang.index_width", value=index.index_head_dim, width=INDEX_WIDTH)
    page, rocm = settings.page_size, settings.platform == "hip"
    if not (page == 1 or page % 16 == 0 if rocm else page == 64):
        raise EngineError("sglang.page", value=page, pages="1, 16·n" if rocm else "64")


def _check_v4(window: SlidingWindowMLA, settings: Settings) -> None:
    """What _init_pools and DeepSeekV4SingleKVPool assert: pages of 256 tokens, rows of 584 bytes."""
    if settings.page_size != V4_PAGE:
        raise EngineError("sglang.page", value=settings.page_size, pages=str(V4_PAGE))
    latent, rope = window.head_size - window.qk_rope_head_dim, window.qk_rope_head_dim
    if (latent, rope) != V4_ENTRY:
        raise EngineError("sglang.v4_entry", latent=latent, rope=rope)


def _check_vectorized(settings: Settings, *, plain: bool) -> None:
    if not plain or settings.platform != "hip":
        raise EngineError("sglang.vectorized", value=VECTOR_BYTES)
