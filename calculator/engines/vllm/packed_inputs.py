"""Specs of golden cases since vLLM 0.33.0: pages whose packing the attention backend decides."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ...caches import (
    MLA,
    Cache,
    ChunkedLocal,
    CompressedLatent,
    CrossAttention,
    EncoderOnlyAttention,
    FullAttention,
    HiddenState,
    ReferenceWindow,
    RingBuffer,
    SinkAttention,
    SlidingWindow,
    SlidingWindowMLA,
)
from ...errors import EngineError
from ...explain import Expression, lift, symbol
from ...formats import (
    FORMATS,
    FP8_PER_TOKEN_HEAD,
    FP8_V4,
    INT4_PER_TOKEN_HEAD,
    INT8_PER_TOKEN_HEAD,
    NVFP4,
    HeadScaled,
    Row,
    Storage,
    StorageFormat,
)
from .spec import MLA_TYPES, LayerSpec, SpecType

Fields = Mapping[str, Any]
PER_TOKEN_HEAD: Mapping[str, HeadScaled] = {
    "FP8_PER_TOKEN_HEAD": FP8_PER_TOKEN_HEAD,
    "INT8_PER_TOKEN_HEAD": INT8_PER_TOKEN_HEAD,
    "INT4_PER_TOKEN_HEAD": INT4_PER_TOKEN_HEAD,
}
SM100 = 100
LATENT_TYPES = MLA_TYPES | {SpecType.SLIDING_WINDOW_MLA}


@dataclass(frozen=True, kw_only=True)
class GivenContent(StorageFormat):
    """Slots whose bytes the case gives, not their parts."""

    content: int

    def row_bytes(self, row: Row) -> Expression:
        """`H · content`."""
        return row.per_head([symbol("content", self.content)])


@dataclass(frozen=True, kw_only=True)
class GivenRing(RingBuffer):
    """A ring of slots of any heads and type."""

    heads: int
    element_bytes: int

    def stored_in(self, storage: Storage) -> StorageFormat:  # noqa: ARG002 - as given
        """Elements of the case's type."""
        return StorageFormat(name="ring", element_bytes=self.element_bytes)

    @property
    def slot(self) -> Row:
        """`H · d` elements."""
        return Row(heads=lift(self.heads), vectors={"state": symbol("d", self.ring_width)})


def packed_spec(given: Fields, element: StorageFormat) -> LayerSpec:
    """The spec of a case; `element` is its type of elements, as it is without packing.

    Raises:
        EngineError: widths of K and V that the backend cannot pack.
    """
    kind = SpecType(given["type"])
    storage = Storage(kv=_format(given, element))
    backend, mode = given.get("attn_backend"), given.get("kv_quant_mode") or "NONE"
    per_state = Fraction(given.get("tokens_per_state", 1))
    # A latent's cache says itself how many tokens share an entry.
    grouped = int(per_state) if kind is SpecType.MLA and per_state.denominator == 1 else 1
    spec = LayerSpec(
        cache=_cache(kind, {**given, "num_kv_heads": _slots(given)}, element, grouped),
        storage=storage,
        block_size=given["block_size"],
        alignment=given.get("alignment"),
        page_size_padded=given.get("page_size_padded"),
        cache_dtype=given.get("cache_dtype_str"),
        unforgetting=kind is SpecType.FULL
        and bool(given.get("sliding_window", given.get("attention_chunk_size"))),
        packed=True,
        replicated=not given.get("dcp_sharded", True),
        tp_shards=given.get("max_tp_shards"),
        states_per_token=grouped / per_state,
        planes=2 if backend == "B12X" else given.get("num_head_slots"),
        indexer=given.get("cache_role") == "indexer",
        leads_indexer=given.get("is_index_group_leader", False),
        retained_tokens=given.get("extra_retained_tokens", 0),
        replayed=given.get("bounded_replay", False),
    )
    stride = given.get("block_stride_alignment")
    if backend == "FLASHMLA_SPARSE":
        rows = mode == "NONE" or given.get("gpu_family", SM100) == SM100
        return (
            replace(spec, stride_bytes=int(spec.content.value))
            if rows
            else replace(spec, stride_kernel_block=64)
        )
    if isinstance(stride, str):
        return replace(spec, stride_kernel_block=int(stride.removeprefix("multiple_of:")))
    return replace(spec, stride_bytes=stride)


def _slots(given: Fields) -> int:
    """Head slots of a page: a number that the case gives stands for that of the heads."""
    return int(given.get("num_head_slots") or given["num_kv_heads"])


def _format(given: Fields, element: StorageFormat) -> StorageFormat:
    backend, mode = given.get("attn_backend"), given.get("kv_quant_mode") or "NONE"
    if given.get("state_content_bytes") is not None:
        name = FP8_V4.name if given.get("model_version") == "deepseek_v4" else f"{mode} {element.name}"
        content = given["state_content_bytes"]
        return GivenContent(name=name, element_bytes=element.element_bytes, content=content)
    if backend in ("TRITON_ATTN", "TRITON_MLA") and mode in PER_TOKEN_HEAD:
        return replace(PER_TOKEN_HEAD[mode], element_bytes=element.element_bytes)
    if backend in ("FLASHINFER", "MINIMAX_M3_NVFP4") and mode == "NVFP4":
        return NVFP4
    if backend == "TURBOQUANT" and mode.lower() in FORMATS:
        return FORMATS[mode.lower()]
    return replace(element, name=f"{mode} {element.name}")


def _cache(kind: SpecType, given: Fields, element: StorageFormat, tokens_per_state: int) -> Cache:
    heads, width = given["num_kv_heads"], given["head_size"]
    if kind is SpecType.RING:
        return GivenRing(
            ring_width=width + given.get("head_size_v", width),
            ring_tokens=given["block_size"],
            heads=heads,
            element_bytes=element.element_bytes,
        )
    if kind is SpecType.HIDDEN_STATE:
        return HiddenState(num_hidden_states=heads, hidden_size=width)
    if kind is SpecType.SLIDING_WINDOW_MLA:
        window = given["sliding_window"]
        return SlidingWindowMLA(head_size=heads * width, qk_rope_head_dim=0, sliding_window=window)
    if kind is SpecType.MLA:
        if tokens_per_state > 1:
            ratio = tokens_per_state
            return CompressedLatent(head_size=heads * width, qk_rope_head_dim=0, compress_ratio=ratio)
        return MLA(kv_lora_rank=heads * width, qk_rope_head_dim=0)
    return attention(kind, given, _value_size(given))


def attention(kind: SpecType, given: Fields, head_size_v: int) -> Cache:
    """The cache of keys and values behind a spec of `kind`, in any version."""
    sizes = {key: given[key] for key in ("num_kv_heads", "head_size")} | {"head_size_v": head_size_v}
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
        case SpecType.REFERENCE_WINDOW:
            return ReferenceWindow(**sizes, reference_window=given["rswa_window"])
        case _:
            # Without the hybrid manager a full-attention spec remembers the window or chunk that it was.
            if given.get("sliding_window"):
                return SlidingWindow(**sizes, sliding_window=given["sliding_window"])
            if given.get("attention_chunk_size"):
                return ChunkedLocal(**sizes, attention_chunk_size=given["attention_chunk_size"])
            return FullAttention(**sizes)


def _value_size(given: Fields) -> int:
    """V's width as the backend packs it; most formats pack it like K, or not at all."""
    key, value = given["head_size"], given.get("head_size_v") or given["head_size"]
    backend, mode = given.get("attn_backend"), given.get("kv_quant_mode")
    if given.get("state_content_bytes") is not None:
        return int(value)
    if backend in ("TURBOQUANT", "MINIMAX_M3_NVFP4"):
        return int(key)
    flat = backend == "FLASHINFER" and mode == "NVFP4"
    differ = key != value if not flat else (key // 2 + key // 16) != (value // 2 + value // 16)
    if differ and (flat or backend == "B12X"):
        raise EngineError("vllm.packed_widths", width=key, value=value, backend=backend)
    return int(value)
