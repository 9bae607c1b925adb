"""Inputs of golden cases: class names, dtypes and sizes of the engine become caches, formats and pools."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...caches import MLA, FullAttention, IndexKey
from ...errors import EngineError, FieldError
from ...explain import lift
from ...formats import (
    BF16,
    FP4_E2M1,
    FP4_MX_BLOCK16,
    FP8,
    FP8_DS_MLA,
    FP16,
    FP32,
    MXFP8,
    NVFP4,
    Row,
    Storage,
    StorageFormat,
)
from . import deepseek_v4
from .buffers import Extent, Pool
from .cell import Nvfp4Scales, latent_format
from .paged_inputs import paged_pool
from .pools import (
    Indexers,
    attention_pool,
    joined,
    latent_pool,
    latent_width,
    nvfp4_pool,
    placeholder_pool,
    sparse_attention_pool,
    sparse_pool,
    state_pool,
    vectorised_pool,
    window_pool,
)
from .requests import request_map
from .rules import rules_of
from .state import StateOptions, StateShape, kda_shape, mamba2_shape

Case = Mapping[str, Any]

DTYPES: Mapping[str, StorageFormat] = {
    "bfloat16": BF16,
    "float16": FP16,
    "float32": FP32,
    "fp8_e4m3": FP8,
    "fp8_e5m2": FP8,
    "fp4_e2m1": FP4_E2M1,
    "nvfp4": NVFP4,
    "fp4_mx_block16": FP4_MX_BLOCK16,
    "mxfp8": MXFP8,
}


def dtype(name: str, version: str | None = None) -> StorageFormat:
    """The format that the engine calls `name`.

    Raises:
        FieldError: it is not known, or not in `version`.
    """
    known = [key for key, form in DTYPES.items() if version is None or form in rules_of(version).formats]
    if name not in known:
        raise FieldError("error.choice", field="dtype", value=name, options=", ".join(known))
    return DTYPES[name]


def attention(case: Case, heads: str, width: str, tp: int = 1, prefix: str = "") -> Row:
    """K and V of one token; fields that start with `prefix` win over those without."""

    def given(name: str) -> Any:
        return case.get(prefix + name, case.get(name))

    value_width = case.get(prefix + "v_" + width) or (
        given(width) if prefix + width in case else case.get("v_" + width) or given(width)
    )
    return FullAttention(num_kv_heads=given(heads), head_size=given(width), head_size_v=value_width).row(tp)


def latent(case: Case) -> Row:
    """The latent of one token."""
    return MLA(kv_lora_rank=case["kv_lora_rank"], qk_rope_head_dim=case["qk_rope_head_dim"]).row(1)


def latent_dtype(name: str, version: str | None = None) -> StorageFormat:
    """The format of a latent; one of four bits has one form, by whichever recipe it is named."""
    storage = dtype(name, version)
    return FP4_MX_BLOCK16 if storage == NVFP4 else storage


def index_key(case: Case) -> Row:
    """The index key of one token."""
    return IndexKey(index_head_dim=case.get("index_head_dim") or 128).row(1)


def stage_layers(case: Case) -> Sequence[int]:
    """Numbers of the layers with tokens' caches: those of the stage, or the attention layers among them."""
    first, attention = case.get("start_layer", 0), case.get("full_attention_layer_ids")
    if attention is None:
        return range(first, first + case["num_layers"])
    end = case.get("end_layer", first + case["num_layers"])
    return [layer for layer in attention if first <= layer < end]


def v4_model(case: Case) -> deepseek_v4.V4Model:
    """The stage's layers: a trailing entry of the list, for a drafter, belongs to no layer of the model."""
    ratios = case["compress_ratios"]
    first = case.get("start_layer") or 0
    end = case.get("end_layer") or first + case.get("num_layers", len(ratios) - first)
    rope = case.get("qk_rope_head_dim", 64)
    return deepseek_v4.V4Model.of_ratios(
        ratios[first:end],
        head_size=case.get("qk_nope_head_dim", 448) + rope,
        qk_rope_head_dim=rope,
        index_head_dim=case.get("index_head_dim", 128),
        sliding_window=case.get("sliding_window", 128),
    )


def v4_options(case: Case, version: str) -> deepseek_v4.V4Options:
    """What the server sets for DeepSeek-V4."""
    return deepseek_v4.V4Options(
        swa_full_tokens_ratio=case.get("swa_full_tokens_ratio", rules_of(version).v4_full_tokens_ratio),
        speculative=bool(case.get("speculative")),
        online_c128=bool(case.get("online_c128")),
        host_to_device_ratio=case.get("hisparse_host_to_device_ratio") or 1,
    )


def _v4_pool(case: Case, version: str) -> Pool:
    if rules_of(version).v4_paged:
        return paged_pool(case, version)
    held = deepseek_v4.V4Sizes(
        full=lift(case.get("full_size", 0)),
        window=lift(case["swa_size"]),
        c4=lift(case["c4_size"]),
        c128=lift(case["c128_size"]),
        c4_state=lift(case["c4_state_pool_size"]),
        c128_state=lift(case["c128_state_pool_size"]),
    )
    model, options = v4_model(case), v4_options(case, version)
    return deepseek_v4.v4_pool(
        model, options, held, case["page_size"], fp4_indexer=bool(case.get("fp4_indexer"))
    )


def state_shape(case: Case) -> StateShape:
    """A state by its tensors, or by the rule and sizes that give them."""
    storage = Storage(
        convolution=dtype(case.get("conv_dtype", "bfloat16")),
        recurrent=dtype(case.get("temporal_dtype", "float32")),
    )
    if "conv_shapes" in case:
        return StateShape(
            convolutions=tuple(tuple(map(lift, dims)) for dims in case["conv_shapes"]),
            recurrent=tuple(map(lift, case["temporal_shape"])),
            convolution_format=storage.convolution,
            recurrent_format=storage.recurrent,
        )
    args = {
        ("conv_kernel" if name == "conv_kernel_size" else name): value for name, value in case["args"].items()
    }
    tp = args.pop("tp_world_size", 1)
    if case["kind"] == "kda":
        args.pop("num_spec", None)
        return kda_shape(storage, tp, **args)
    return mamba2_shape(storage, tp, **args)


def state_case(case: Case) -> Case | None:
    """The part of an input that describes a recurrent state, wherever it stands."""
    if "conv_shapes" in case or "args" in case:
        return case
    return next((part for part in case.values() if isinstance(part, Mapping) and state_case(part)), None)


def states(case: Case, version: str) -> Pool:
    """The state pool of a case.

    Raises:
        FieldError: the case describes no recurrent state.
    """
    found = state_case(case)
    if found is None:
        raise FieldError("error.cases", field="input", value=sorted(case), reason="no recurrent state")
    state = {**case, **found}
    layers = state.get("num_linear_layers") or state["layer_num"]
    slots = state.get("mamba_size") or state.get("max_mamba_cache_size") or found.get("size", 0)
    return state_pool(
        state_shape(found),
        layers,
        slots,
        state.get("speculative_num_draft_tokens") or 0,
        state.get("spec_state_size") or 0,
        chained=rules_of(version).spare_state_slot,
    )


def extent(case: Case, layers: int | None = None, tokens: str = "size") -> Extent:
    """How large a pool is."""
    depth = case["layer_num"] if layers is None else layers
    return Extent(tokens=case[tokens], page_size=case["page_size"], layers=depth)


def plain_backends(case: Case, version: str) -> frozenset[str]:
    """Backends that read latents without scales."""
    return rules_of(version).plain_latent_backends["hip" if case.get("is_hip") else "cuda"]


def sparse_backend(case: Case) -> str:
    """The backend that decides how latents are stored: TRT-LLM's where the server's role uses it.

    TileLang decides on CUDA only where both phases use it.
    """
    both = case.get("dsa_backend")
    prefill = case.get("dsa_prefill_backend") or both or "flashmla_sparse"
    decode = case.get("dsa_decode_backend") or both or "flashmla_kv"
    role = case.get("disaggregation_mode")
    used = {"prefill": {prefill}, "decode": {decode}}.get(str(role), {prefill, decode})
    if "trtllm" in used:
        return "trtllm"
    raw = {prefill, decode} & {"tilelang", "triton", "aiter"}
    if case.get("is_hip") and raw:
        return min(raw)
    if prefill == decode:
        return prefill
    return next((backend for backend in (decode, prefill) if backend not in ("tilelang", "trtllm")), "scaled")


def owners(case: Case, layers: Sequence[int]) -> int | None:
    """How many of these layers own index keys; None: all."""
    shared = case.get("skip_topk_layers")
    return None if not shared else len(set(layers).difference(shared))


def pool_layers(case: Case) -> Sequence[int]:
    """Numbers of the layers in a device pool."""
    first = case.get("start_layer", 0)
    return range(first, first + case["layer_num"])


def latent_storage(case: Case, version: str, *, sparse: bool) -> StorageFormat:
    """The form of a latent's row, by its width where the case gives one."""
    row, storage = latent(case), latent_dtype(case["dtype"])
    width = case.get("kv_cache_dim")
    if width is None:
        scaled = case["dtype"] == "fp8_e4m3"
        return latent_format(
            storage,
            sparse=sparse and scaled,
            backend=sparse_backend(case),
            plain=plain_backends(case, version),
        )
    forms = {int(latent_width(row, form).value): form for form in (FP8_DS_MLA, storage)}
    if width not in forms:
        raise FieldError(
            "error.choice", field="kv_cache_dim", value=width, options=", ".join(map(str, forms))
        )
    return forms[width]


def _windows(case: Case, version: str) -> Pool:
    storage = dtype(case["dtype"], version)
    full = extent(case, case["num_full_layers"])
    window = extent(case, case["num_swa_layers"], "size_swa")
    # Without a width of its own a window's V is as wide as that of the other layers, whatever its K is.
    value = case.get("swa_v_head_dim") or case.get("v_head_dim") or case["head_dim"]
    windowed = attention({**case, "swa_v_head_dim": value}, "head_num", "head_dim", prefix="swa_")
    return window_pool(
        attention_pool(attention(case, "head_num", "head_dim"), storage, full) if full.layers else None,
        attention_pool(windowed, storage, window),
    )


def _sparse(case: Case, version: str, *, hisparse: bool) -> Pool:
    pool = case.get("index_kpool") or 1
    tails = case.get("index_kpool_compress", "max_running_requests_pool" in case)
    indexers = Indexers(
        layers=None if hisparse else owners(case, pool_layers(case)),
        pool=pool,
        host_to_device_ratio=case.get("host_to_device_ratio", 2) if hisparse else None,
        tail_requests=case.get("max_running_requests_pool") if pool > 1 and tails else None,
        tail_slots=case.get("tail_extra_slots", 0),
    )
    storage = latent_storage(case, version, sparse=True)
    return sparse_pool(latent(case), index_key(case), storage, extent(case), indexers)


def _hybrid(case: Case, version: str) -> Pool:
    layers = case.get("layer_num") or len(case["full_attention_layer_ids"])
    held = extent(case, layers)
    if "kv_lora_rank" in case:
        tokens = latent_pool(latent(case), latent_dtype(case["dtype"]), held)
    else:
        tokens = attention_pool(attention(case, "head_num", "head_dim"), dtype(case["dtype"]), held)
    return joined("HybridLinearKVPool", tokens, *((states(case, version),) if state_case(case) else ()))


def nvfp4_scales(case: Case) -> Nvfp4Scales:
    """The orders of scales that the backends of a case read."""
    prefill = case.get("attention_prefill_backend", "trtllm_mha")
    return Nvfp4Scales.of(prefill, case.get("attention_decode_backend", "trtllm_mha"))


def _sparse_attention(case: Case, version: str) -> Pool:
    keys = len(case["k_only_layer_ids"])
    layers = len(case["dense_layer_ids"]) + len(case["sparse_layer_ids"])
    return sparse_attention_pool(
        attention(case, "head_num", "head_dim"),
        case["index_head_dim"],
        dtype(case["dtype"], version),
        extent(case, layers),
        keys,
        len(case["sparse_layer_ids"]) - keys,
    )


def device_pool(case: Case, version: str) -> Pool:
    """The pool that a case describes by the engine's class name.

    Raises:
        EngineError: a class that is not known here.
    """
    match case["pool"]:
        case "MHATokenToKVPool" | "MHATokenToKVPoolFP4" | "MHATokenToKVPoolMXFP8":
            storage = dtype(case["dtype"], version) if "dtype" in case else MXFP8
            if case["pool"].endswith("FP4"):
                storage = FP4_E2M1
            if storage == NVFP4:
                return nvfp4_pool(attention(case, "head_num", "head_dim"), extent(case), nvfp4_scales(case))
            build = vectorised_pool if case.get("kv_cache_layout") == "vectorized_5d" else attention_pool
            return build(attention(case, "head_num", "head_dim"), storage, extent(case))
        case "NoOpMHATokenToKVPool":
            row = attention(case, "head_num", "head_dim")
            return placeholder_pool(row, dtype(case["dtype"]), extent(case))
        case "MLATokenToKVPool" | "MLATokenToKVPoolFP4":
            if case["pool"].endswith("FP4"):
                return latent_pool(latent(case), FP4_E2M1, extent(case))
            return latent_pool(latent(case), latent_storage(case, version, sparse=False), extent(case))
        case "DSATokenToKVPool":
            return _sparse(case, version, hisparse=bool(case.get("enable_hisparse")))
        case "HiSparseDSATokenToKVPool":
            return _sparse(case, version, hisparse=True)
        case "SWAKVPool":
            return _windows(case, version)
        case "HybridLinearKVPool":
            return _hybrid(case, version)
        case "MambaPool":
            return states(case, version)
        case "DeepSeekV4TokenToKVPool":
            return _v4_pool(case, version)
        case "MiniMaxSparseKVPool":
            return _sparse_attention(case, version)
        case "ReqToTokenPool":
            rules = rules_of(version)
            extra = case["max_context_len"] - rules.extra_context
            return Pool(name=case["pool"], buffers=(request_map(case["size"], extra, rules),))
    raise EngineError("sglang.pool", pool=case["pool"])


def state_options(case: Case) -> StateOptions:
    """What decides about state slots, per data-parallel worker."""
    workers = case.get("dp_size", 1) if case.get("enable_dp_attention", True) else 1
    shares = {
        name: None if case.get(name) is None else case[name] // workers
        for name in ("max_mamba_cache_size", "max_running_requests")
    }
    return StateOptions(
        memory_ratio=case.get("mamba_full_memory_ratio"),
        max_mamba_cache_size=shares["max_mamba_cache_size"],
        max_running_requests=shares["max_running_requests"],
        radix_cache=not case.get("disable_radix_cache"),
        extra_buffer=bool(case.get("enable_mamba_extra_buffer")),
        overlap_schedule=not case.get("disable_overlap_schedule"),
        draft_tokens=case.get("speculative_num_draft_tokens") or 0,
        lazy_extra_buffer=bool(case.get("enable_mamba_extra_buffer_lazy")),
    )
