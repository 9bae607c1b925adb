"""Answers the golden file: turns a case's input into the engine's objects and reads off the fields."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

from ... import reuse
from ...caches import (
    KDA,
    MLA,
    Cache,
    ChunkedLocal,
    CompressedLatent,
    CrossAttention,
    EncoderOnlyAttention,
    FullAttention,
    GatedDeltaNet,
    HiddenState,
    LinearAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
    SinkAttention,
    SlidingWindow,
    SlidingWindowMLA,
    State,
    StateTensor,
)
from ...errors import EngineError
from ...explain import Expression, lift, symbol, total
from ...formats import (
    BF16,
    FORMATS,
    FP8,
    FP8_DS_MLA,
    FP8_PER_TOKEN_HEAD,
    FP8_V4,
    FP16,
    FP32,
    INT8_PER_TOKEN_HEAD,
    NVFP4,
    Row,
    Storage,
    StorageFormat,
    TurboQuant,
)
from ...transfer import vllm as transfer
from . import blocks, held, hybrid, parallel
from .group import Group
from .grouping import group_layers
from .growth import admission_cap, request_bytes, request_pages
from .pool import Pool, Stage, open_pool
from .rules import checked
from .settings import MambaMode, Settings
from .spec import FULL_TYPES, WINDOW_TYPES, LayerSpec, SpecType

Fields = Mapping[str, Any]

ROPE = 64  # the rope part of a packed latent
DTYPES: Mapping[str, StorageFormat] = {"float32": FP32, "bfloat16": BF16, "float16": FP16}
QUANTISED: Mapping[str, StorageFormat] = {
    "FP8_PER_TENSOR": FP8,
    "FP8_PER_TOKEN_HEAD": FP8_PER_TOKEN_HEAD,
    "INT8_PER_TOKEN_HEAD": INT8_PER_TOKEN_HEAD,
    "NVFP4": NVFP4,
}
CACHE_DTYPES: Mapping[str, StorageFormat] = {"nvfp4": NVFP4, "float32": FP32, "half": FP16, "float": FP32}


def stored(dtype: str) -> StorageFormat:
    """Elements of a tensor type; all but the plain floats have eight bits."""
    return DTYPES.get(dtype) or StorageFormat(name=dtype, element_bytes=1)


@dataclass(frozen=True, kw_only=True)
class GivenSlot(TurboQuant):
    """A TurboQuant slot whose bytes the case gives."""

    slot: int

    def row_bytes(self, row: Row) -> Expression:
        """`H · slot`; without a slot, the elements."""
        if self.slot == 0:
            return StorageFormat.row_bytes(self, row)
        return row.per_head([symbol("slot", self.slot)])


@dataclass(frozen=True, kw_only=True)
class GivenState(State):
    """State tensors whose shapes and types the case gives."""

    source: ClassVar[str] = "vLLM 0.22.0 MambaSpec"

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    def tensors(self, tp: int) -> tuple[StateTensor, ...]:  # noqa: ARG002 - the shapes are those of a rank
        """The shapes as they are."""
        return tuple(StateTensor(shape=tuple(map(lift, shape)), recurrent=True) for shape in self.shapes)

    def unit_bytes(self, storage: Storage, tp: int) -> Expression:  # noqa: ARG002 - each tensor has its own
    type
        """Elements times their size."""
        return total(
            lift(prod(shape)) * stored(dtype).element_bytes
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        )

    @property
    def split_heads(self) -> tuple[int, ...]:
        """None: nothing is left to split."""
        return ()


def given_state(shapes: Sequence[Sequence[int]], dtypes: Sequence[str]) -> GivenState:
    """A state of these tensors."""
    return GivenState(shapes=tuple(map(tuple, shapes)), dtypes=tuple(dtypes))


def layer_spec(given: Fields) -> LayerSpec:
    """The spec of a case."""
    kind = SpecType(given["type"])
    if kind is SpecType.MAMBA:
        return LayerSpec(
            cache=given_state(given["shapes"], given["dtypes"]),
            storage=Storage(),
            block_size=given["block_size"],
            page_size_padded=given.get("page_size_padded"),
            mamba_cache_mode=MambaMode(given.get("mamba_cache_mode", "none")),
            num_speculative_blocks=given.get("num_speculative_blocks", 0),
        )
    return LayerSpec(
        cache=_cache(kind, given),
        storage=Storage(kv=_format(kind, given)),
        block_size=given["block_size"],
        alignment=given.get("alignment"),
        page_size_padded=given.get("page_size_padded"),
        cache_dtype=given.get("cache_dtype_str"),
        unforgetting=kind is SpecType.FULL
        and bool(given.get("sliding_window", given.get("attention_chunk_size"))),
    )


def _packed(given: Fields) -> StorageFormat | None:
    """The packed layout of a latent, if it has one."""
    if given.get("cache_dtype_str") == "fp8_ds_mla" and given.get("model_version") is None:
        return FP8_DS_MLA
    packs = given.get("cache_dtype_str") == "fp8_ds_mla" or given["type"] == SpecType.SLIDING_WINDOW_MLA
    return FP8_V4 if packs and given.get("model_version") == "deepseek_v4" else None


def _format(kind: SpecType, given: Fields) -> StorageFormat:
    element = stored(given["dtype"])
    if kind is SpecType.TURBOQUANT:
        slot = given.get("tq_slot_size") or 0
        return GivenSlot(
            name=element.name, element_bytes=element.element_bytes, key_bits=0, value_bits=0, slot=slot
        )
    if kind in (SpecType.MLA, SpecType.SLIDING_WINDOW_MLA) and (packed := _packed(given)) is not None:
        return packed
    quantised = QUANTISED.get(given.get("kv_quant_mode") or "NONE")
    return element if quantised is None else replace(quantised, element_bytes=element.element_bytes)


def _cache(kind: SpecType, given: Fields) -> Cache:
    heads, width = given["num_kv_heads"], given["head_size"]
    vector = heads * width
    match kind:
        case SpecType.HIDDEN_STATE:
            return HiddenState(num_hidden_states=heads, hidden_size=width)
        case SpecType.MLA | SpecType.SLIDING_WINDOW_MLA:
            packed = _packed(given)
            if packed is not None:
                # The engine knows the bytes of a packed entry, not its parts.
                vector = 512 if packed == FP8_V4 else 512 + ROPE
            rope = 0 if packed is None else ROPE
            ratio = given.get("compress_ratio", 1)
            if kind is SpecType.SLIDING_WINDOW_MLA:
                window = given["sliding_window"]
                return SlidingWindowMLA(head_size=vector, qk_rope_head_dim=rope, sliding_window=window)
            if ratio > 1 or packed == FP8_V4:
                return CompressedLatent(head_size=vector, qk_rope_head_dim=rope, compress_ratio=ratio)
            return MLA(kv_lora_rank=vector - rope, qk_rope_head_dim=rope)
        case _:
            return _attention(kind, given)


def _attention(kind: SpecType, given: Fields) -> Cache:
    sizes = {
        "num_kv_heads": given["num_kv_heads"],
        "head_size": given["head_size"],
        "head_size_v": given.get("head_size_v") or given["head_size"],
    }
    match kind:
        case SpecType.SLIDING_WINDOW:
            return SlidingWindow(**sizes, sliding_window=given["sliding_window"])
        case SpecType.CHUNKED_LOCAL:
            return ChunkedLocal(**sizes, attention_chunk_size=given["attention_chunk_size"])
        case SpecType.CROSS:
            return CrossAttention(**sizes)
        case SpecType.ENCODER_ONLY:
            return EncoderOnlyAttention(**sizes)
        case SpecType.SINK:
            return SinkAttention(**sizes, sink_len=given.get("sink_len") or 0)
        case _:
            # Without the hybrid manager a full-attention spec remembers the window or chunk that it was.
            if given.get("sliding_window"):
                return SlidingWindow(**sizes, sliding_window=given["sliding_window"])
            if given.get("attention_chunk_size"):
                return ChunkedLocal(**sizes, attention_chunk_size=given["attention_chunk_size"])
            return FullAttention(**sizes)


def settings(config: Fields) -> Settings:
    """The configuration of a case."""
    taken = (
        "max_model_len",
        "max_num_batched_tokens",
        "max_num_encoder_input_tokens",
        "decode_context_parallel_size",
        "prefill_context_parallel_size",
        "num_gpu_blocks_override",
        "disable_hybrid_kv_cache_manager",
        "auto_fit_max_model_len",
        "enable_prefix_caching",
        "block_size",
    )
    return Settings(
        mamba_cache_mode=MambaMode(config.get("mamba_cache_mode", "none")),
        **{name: config[name] for name in taken if config.get(name) is not None},
    )


def _int(expression: Expression) -> int:
    return int(expression.value)


def spec_page(given: Fields, version: str) -> Fields:
    """Page sizes of one spec."""
    checked(version)
    spec = layer_spec(given["spec"])
    return {
        "page_size_bytes": spec.page_size_bytes,
        "storage_block_size": spec.storage_block_size,
        "real_page_size_bytes": _int(spec.real_page),
    }


def spec_max_memory(given: Fields, version: str) -> Fields:
    """What one request can need in one layer."""
    checked(version)
    spec, chosen = layer_spec(given["spec"]), settings(given.get("config", {}))
    cap = admission_cap(spec, chosen)
    return {
        "page_size_bytes": spec.page_size_bytes,
        "max_memory_usage_bytes": _int(request_bytes(spec, chosen)),
        "max_pages": _int(request_pages(spec, chosen)),
        "max_admission_blocks_per_request": None if cap is None else _int(cap),
    }


def num_kv_heads(given: Fields, version: str) -> Fields:
    """KV heads on one rank."""
    checked(version)
    heads = parallel.num_kv_heads(
        given["total_num_kv_heads"], given["tensor_parallel_size"], use_mla=given.get("use_mla", False)
    )
    return {"num_kv_heads": _int(heads)}


def pp_indices(given: Fields, version: str) -> Fields:
    """Layers of each pipeline stage."""
    checked(version)
    stages = parallel.layers_per_stage(given["num_hidden_layers"], given["pipeline_parallel_size"])
    return {"layers_per_stage": list(stages)}


def turboquant_slot(given: Fields, version: str) -> Fields:
    """Packed bytes of one head's K and V."""
    checked(version)
    preset, width = FORMATS[given["kv_cache_dtype"]], lift(given["head_size"])
    assert isinstance(preset, TurboQuant)
    key, value = preset.key_bytes(width), preset.value_bytes(width)
    return {
        "key_packed_size": _int(key),
        "value_packed_size": _int(value),
        "slot_size": _int(key + value),
        "tq_slot_size": _int(preset.slot_bytes(width, width)),
    }


def _state(calculator: str, args: Fields) -> tuple[State, ...]:
    """The kind of a state; speculative tokens are further columns of its convolution."""
    kernel = args.get("conv_kernel", args.get("conv_kernel_size", 4)) + args.get("num_spec", 0)
    match calculator:
        case "gated_delta_net":
            return (
                GatedDeltaNet(
                    conv_kernel=kernel,
                    linear_num_key_heads=args["num_k_heads"],
                    linear_num_value_heads=args["num_v_heads"],
                    linear_key_head_dim=args["head_k_dim"],
                    linear_value_head_dim=args["head_v_dim"],
                ),
            )
        case "mamba2":
            return (
                Mamba2(
                    conv_kernel=kernel,
                    mamba_num_heads=args["num_heads"],
                    mamba_head_dim=args["head_dim"],
                    state_size=args["state_size"],
                    n_groups=args["n_groups"],
                ),
            )
        case "mamba1":
            return (
                Mamba1(
                    conv_kernel=kernel,
                    intermediate_size=args["intermediate_size"],
                    state_size=args["state_size"],
                ),
            )
        case "short_conv":
            return (ShortConvolution(conv_kernel=kernel, hidden_size=args["intermediate_size"]),)
        case "linear_attention":
            return (LinearAttention(num_heads=args["num_heads"], head_dim=args["head_dim"]),)
        case _:
            # KDA's convolutions do not grow with speculative tokens; its keys may have heads of their own.
            kernel = args.get("conv_kernel_size", 4)
            heads, width = args["num_heads"], args["head_dim"]
            return tuple(
                KDA(conv_kernel=kernel, linear_num_heads=count, linear_head_dim=size)
                for count, size in (
                    (heads, width),
                    (args.get("num_k_heads") or heads, args.get("head_k_dim") or width),
                )
            )


def mamba_state(given: Fields, version: str) -> Fields:
    """Shapes and bytes of one layer's state."""
    checked(version)
    args = given["args"]
    tp = args.get("tp_world_size", args.get("tp_size", 1))
    kinds = _state(given["calculator"], args)
    tensors = list(kinds[0].tensors(tp))
    if given["calculator"] == "kda":
        tensors[1:3] = kinds[1].tensors(tp)[1:3]
    shapes = [[_int(size) for size in tensor.shape] for tensor in tensors]
    bytes_ = given_state(shapes, given["dtypes"]).unit_bytes(Storage(), 1)
    return {"shapes": shapes, "page_size_bytes": _int(bytes_)}


def _token_page(given: Fields) -> int:
    """Bytes of one token in one attention layer."""
    name = given["cache_dtype"]
    if name == "auto":
        kv = stored(given["model_dtype"])
    else:
        kv = CACHE_DTYPES.get(name) or FORMATS.get(name) or DTYPES.get(name) or stored(name)
    heads, width = given["num_kv_heads"], given["head_size"]
    cache: Cache
    if given["use_mla"]:
        cache, kv = MLA(kv_lora_rank=heads * width, qk_rope_head_dim=0), stored_elements(kv)
    else:
        cache = FullAttention(num_kv_heads=heads, head_size=width, head_size_v=width)
    return LayerSpec(cache=cache, storage=Storage(kv=kv), block_size=1).page_size_bytes


def stored_elements(kv: StorageFormat) -> StorageFormat:
    """Only the elements of a format, without scales: the engine sizes hybrid blocks of MLA by them."""
    return StorageFormat(name=kv.name, element_bytes=kv.element_bytes)


def hybrid_align(given: Fields, version: str) -> Fields:
    """Block sizes of attention beside state."""
    checked(version)
    state = _int(given_state(given["mamba_shapes"], given["mamba_dtypes"]).unit_bytes(Storage(), 1))
    aligned = hybrid.align(
        token_page=_token_page(given),
        state_page=state,
        block_size=given["block_size"],
        kernel_block_size=given["kernel_block_alignment"],
        mode=MambaMode(given.get("mamba_cache_mode", "none")),
        mamba_chunk_size=given.get("mamba_block_size") or given.get("mamba_chunk_size") or 1,
    )
    padded, own = aligned.mamba_page_padded, aligned.mamba_block_size
    return {
        "block_size": _int(aligned.block_size),
        "mamba_block_size": None if own is None else _int(own),
        "mamba_page_size_padded": None if padded is None else _int(padded),
        "mamba_page_size_bytes": state,
    }


def _stages(given: Fields) -> tuple[list[LayerSpec], list[frozenset[int]]]:
    """All layers in model order, and the numbers of those of each worker."""
    specs = {name: layer_spec(spec) for name, spec in given["specs"].items()}
    workers = given.get("workers") or [given["layers"]]
    layers: list[LayerSpec] = []
    stages: list[frozenset[int]] = []
    for names in workers:
        stages.append(frozenset(range(len(layers), len(layers) + len(names))))
        layers += [specs[name] for name in names]
    return layers, stages


def _pool(given: Fields, groups: Sequence[Group], stages: Sequence[frozenset[int]]) -> Pool:
    memory = given["available_memory"]
    per_worker = memory if isinstance(memory, list) else [memory] * len(stages)
    return open_pool(
        [
            Stage(groups=tuple(group.on_stage(layers) for group in groups), available_bytes=available)
            for layers, available in zip(stages, per_worker, strict=True)
        ],
        settings(given.get("config", {})),
    )


def kv_cache_config(given: Fields, version: str) -> Fields:
    """Groups, pool and what one request takes."""
    checked(version)
    layers, stages = _stages(given)
    config = given.get("config", {})
    try:
        groups = group_layers(layers, hybrid_manager=not config.get("disable_hybrid_kv_cache_manager", False))
    except EngineError as error:
        return {"error": _errors.get(error.key, error.key)}
    pool = _pool(given, groups, stages)
    answer: dict[str, Any] = {
        "groups": [
            {
                "spec_type": group.spec.type.value,
                "uniform_type": group.container,
                "num_layers": group.num_layers,
                "block_size": group.spec.block_size,
                "page_size_bytes": _int(group.page),
            }
            for group in groups
        ],
        "fits": pool.fits,
        "max_model_len": pool.settings.max_model_len,
        "max_memory_usage_bytes": [_int(request) for request in pool.request_bytes],
        "pool_bytes_per_block": [_int(stage.bytes_per_block) for stage in pool.stages],
    }
    if not pool.fits:
        return answer | {"estimated_max_model_len": pool.longest_context}
    count = _int(pool.num_blocks)
    tensors = [blocks.tensors(stage.groups) for stage in pool.stages]
    return answer | {
        "num_blocks": count,
        "usable_blocks": _int(pool.usable_blocks),
        "tensor_count": [sum(many for _, many in one) for one in tensors],
        "tensor_bytes": [sum(size * many * count for size, many in one) for one in tensors],
        "num_blocks_per_request": _int(pool.blocks_per_request),
        "kv_cache_size_tokens": pool.reported_tokens,
    }


_errors = {"vllm.pages": "page_size_not_unifiable"}


def blocks_held(given: Fields, version: str) -> Fields:
    """Blocks of one request while it is computed."""
    checked(version)
    spec, chosen = layer_spec(given["spec"]), settings(given.get("config", {}))
    prompt, output = given["prompt_tokens"], given["output_tokens"]
    rest = {"shards": chosen.context_parallel_size, "encoder_tokens": chosen.encoder_tokens}
    cap = admission_cap(spec, chosen)
    last = prompt + output - 1 if output else (prompt - 1) // chosen.max_num_batched_tokens
    computed = last if output else last * chosen.max_num_batched_tokens
    return {
        "max_admission_blocks_per_request": None if cap is None else _int(cap),
        "peak_blocks_prefill": held.prefill_peak(spec, prompt, chosen.max_num_batched_tokens, **rest),
        "peak_blocks_decode": held.decode_peak(spec, prompt, output, **rest),
        "final_blocks": held.blocks_held(spec, computed, 1 if output else prompt - computed, **rest),
    }


def _need(spec: LayerSpec) -> reuse.Need:
    if spec.type in FULL_TYPES:
        return reuse.Need.LEADING_RUN
    if spec.type in WINDOW_TYPES:
        return reuse.Need.WINDOW
    return reuse.need(spec.cache)


def prefix_hit(given: Fields, version: str) -> Fields:
    """The longest reusable prefix."""
    checked(version)
    specs = [layer_spec(spec) for spec in given["group_specs"]]
    chosen = settings(given.get("config", {}))
    hit = reuse.common_hit(
        [
            reuse.CachedGroup(
                spec=spec,
                need=_need(spec),
                block_size=spec.block_size,
                cached=frozenset(cached),
                reach=spec.window or spec.chunk or 1,
            )
            for spec, cached in zip(specs, given["cached_block_indices"], strict=True)
        ],
        given["max_cache_hit_length"],
        eagle=given.get("use_eagle", False),
        context_parallel_size=chosen.context_parallel_size,
    )
    return {
        "hit_tokens": hit.tokens,
        "real_blocks": list(hit.real_blocks),
        "lcm_block_size": hit.alignment,
    }


def _hashing(specs: Sequence[LayerSpec], block_size: int, config: Fields) -> tuple[int, int]:
    return reuse.resolve_block_sizes(
        [spec.block_size for spec in specs],
        block_size=block_size,
        state_block_sizes=[spec.block_size for spec in specs if spec.type is SpecType.MAMBA],
        context_parallel_size=settings(config).context_parallel_size,
        hashes_used=config.get("enable_prefix_caching", True) or bool(config.get("kv_connector")),
        hash_block_size=config.get("hash_block_size"),
    )


def resolve_block_sizes(given: Fields, version: str) -> Fields:
    """Alignment of the scheduler and granularity of hashes."""
    checked(version)
    specs = [layer_spec(spec) for spec in given["group_specs"]]
    config = {**given.get("config", {}), **{k: given[k] for k in ("hash_block_size",) if k in given}}
    scheduler, hashed = _hashing(specs, given["block_size"], config)
    return {"scheduler_block_size": scheduler, "hash_block_size": hashed}


def cpu_offload(given: Fields, version: str) -> Fields:
    """The host pool of the native offload."""
    checked(version)
    layers, stages = _stages(given)
    config = given.get("config", {})
    groups = group_layers(layers)
    pool = _pool(given, groups, stages)
    shards = pool.settings.context_parallel_size
    sizes = [group.spec.block_size * shards for group in groups]
    per_block = _int(pool.stages[0].bytes_per_block)
    pooled = transfer.cpu_offload(
        bytes_per_block=per_block,
        block_sizes=sizes,
        world_size=given["world_size"],
        cpu_bytes_to_use=given["cpu_bytes_to_use"],
        offloaded_block_size=given.get("offloaded_block_size"),
    )
    block_size = given.get("block_size") or groups[0].spec.block_size
    return {
        "num_gpu_blocks": _int(pool.num_blocks),
        "kv_bytes_per_gpu_block_per_worker": per_block,
        "block_size_factor": pooled.block_size_factor,
        "num_cpu_blocks": _int(pooled.num_cpu_blocks),
        "cpu_page_size_per_worker": _int(pooled.cpu_page),
        "gpu_block_size": sizes,
        "hash_block_size": _hashing([group.spec for group in groups], block_size, config)[1],
    }


def nixl_block(given: Fields, version: str) -> Fields:
    """Transfer units of one block over NIXL."""
    checked(version)
    block = transfer.nixl(
        layer_spec(given["spec"]),
        transfer.Layout.MLA if given.get("use_mla") else transfer.Layout(given["attn_backend"]),
        num_layers=given["num_layers"],
        num_tokens=given["num_tokens"],
    )
    return {
        "memory_regions_per_layer": block.memory_regions_per_layer,
        "block_len_bytes": _int(block.block_len),
        "descriptor_bytes": _int(block.descriptor),
        "descriptors_per_layer_per_block": block.descriptors_per_layer_per_block,
        "bytes_per_block_all_layers": _int(block.bytes_per_block_all_layers),
        "num_blocks_transferred": _int(block.num_blocks),
        "total_bytes": _int(block.total_bytes),
    }


RUNNERS: Mapping[str, Callable[[Mapping[str, Any], str], Mapping[str, Any]]] = {
    runner.__name__: runner
    for runner in (
        spec_page,
        spec_max_memory,
        num_kv_heads,
        pp_indices,
        turboquant_slot,
        mamba_state,
        hybrid_align,
        kv_cache_config,
        blocks_held,
        prefix_hit,
        resolve_block_sizes,
        cpu_offload,
        nixl_block,
    )
}
