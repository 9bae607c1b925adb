"""Turns the golden file's inputs, class names and dtypes of the engine, into the objects of this package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

from ...caches import (
    KDA,
    MLA,
    Cache,
    CompressedLatent,
    FullAttention,
    GatedDeltaNet,
    HiddenState,
    LinearAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
    SlidingWindowMLA,
    State,
    StateTensor,
)
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
from .packed_inputs import attention, packed_spec
from .rules import Rules
from .settings import CacheLayout, MambaMode, Settings
from .spec import LayerSpec, SpecType

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

    def unit_bytes(self, storage: Storage, tp: int) -> Expression:  # noqa: ARG002 - see above
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


def layer_spec(given: Fields, rules: Rules) -> LayerSpec:
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
            packed=rules.packed,
            checkpoint_blocks=given.get("num_prefill_checkpoint_blocks", 0),
            checkpoint_alignment=given.get("prefill_checkpoint_alignment"),
        )
    if rules.packed:
        return packed_spec(given, stored(given["dtype"]))
    return LayerSpec(
        cache=_cache(kind, given, rules),
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


def _cache(kind: SpecType, given: Fields, rules: Rules) -> Cache:
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
            width = given["head_size"]
            narrow = kind in rules.without_value_size
            return attention(kind, given, width if narrow else given.get("head_size_v") or width)


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
        "tensor_parallel_size",
        "num_prefill_lookahead_tokens",
    )
    layout = config.get("kv_cache_layout")
    return Settings(
        mamba_cache_mode=MambaMode(config.get("mamba_cache_mode", "none")),
        max_concurrent_batches=config.get("max_concurrent_batches", 1),
        kv_cache_layout=layout and CacheLayout(layout),
        **{name: config[name] for name in taken if config.get(name) is not None},
    )


def state_kinds(calculator: str, args: Fields, rules: Rules) -> tuple[State, ...]:
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
            # Until 0.33.0 KDA's convolutions do not grow with speculative tokens; its keys may have heads of
            # their own.
            kernel = kernel if KDA in rules.drafted_states else args.get("conv_kernel_size", 4)
            heads, width = args["num_heads"], args["head_dim"]
            return tuple(
                KDA(conv_kernel=kernel, linear_num_heads=count, linear_head_dim=size)
                for count, size in (
                    (heads, width),
                    (args.get("num_k_heads") or heads, args.get("head_k_dim") or width),
                )
            )


def token_page(given: Fields, rules: Rules) -> int:
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
    return LayerSpec(cache=cache, storage=Storage(kv=kv), block_size=1, packed=rules.packed).page_size_bytes


def stored_elements(kv: StorageFormat) -> StorageFormat:
    """Only the elements of a format, without scales: the engine sizes hybrid blocks of MLA by them."""
    return StorageFormat(name=kv.name, element_bytes=kv.element_bytes)
