"""One layer's cache as vLLM allocates it: which of its spec classes, and how many bytes a page has.

Source: vLLM 0.22.0 and 0.33.0 `v1/kv_cache_interface.py`.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from math import gcd

from ...caches import (
    MLA,
    Cache,
    ChunkedLocal,
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    CrossAttention,
    EncoderOnlyAttention,
    FullAttention,
    HiddenState,
    IndexKey,
    IndexTail,
    ReferenceWindow,
    RingBuffer,
    SinkAttention,
    SlidingWindow,
    SlidingWindowMLA,
    Slots,
    SparseIndexKey,
    State,
    TokenCache,
)
from ...errors import EngineError
from ...explain import Expression, lift, round_up, symbol
from ...formats import (
    FP4_V41,
    FP8_DS_MLA,
    FP8_V4,
    FP8_V41,
    HalfByte,
    HeadScaled,
    Row,
    Storage,
    StorageFormat,
    TurboQuant,
)
from .settings import MambaMode


class SpecType(StrEnum):
    """The engine's classes."""

    FULL = "FullAttentionSpec"
    TURBOQUANT = "TQFullAttentionSpec"
    SINK = "SinkFullAttentionSpec"
    REFERENCE_WINDOW = "RSWASpec"
    MLA = "MLAAttentionSpec"
    HIDDEN_STATE = "HiddenStateCacheSpec"
    SLIDING_WINDOW = "SlidingWindowSpec"
    SLIDING_WINDOW_MLA = "SlidingWindowMLASpec"
    CHUNKED_LOCAL = "ChunkedLocalAttentionSpec"
    CROSS = "CrossAttentionSpec"
    ENCODER_ONLY = "EncoderOnlyAttentionSpec"
    RING = "CircularBufferSpec"
    MAMBA = "MambaSpec"


TYPES: dict[type[Cache], SpecType] = {
    FullAttention: SpecType.FULL,
    SinkAttention: SpecType.SINK,
    ReferenceWindow: SpecType.REFERENCE_WINDOW,
    CrossAttention: SpecType.CROSS,
    EncoderOnlyAttention: SpecType.ENCODER_ONLY,
    SlidingWindow: SpecType.SLIDING_WINDOW,
    ChunkedLocal: SpecType.CHUNKED_LOCAL,
    MLA: SpecType.MLA,
    IndexKey: SpecType.MLA,
    SparseIndexKey: SpecType.MLA,
    CompressedLatent: SpecType.MLA,
    CompressedIndexKey: SpecType.MLA,
    HiddenState: SpecType.HIDDEN_STATE,
    SlidingWindowMLA: SpecType.SLIDING_WINDOW_MLA,
    CompressorState: SpecType.SLIDING_WINDOW_MLA,
    RingBuffer: SpecType.RING,
    IndexTail: SpecType.RING,
}

# The engine's subclasses: what counts as full attention, as MLA, as a window.
MLA_TYPES = frozenset({SpecType.MLA, SpecType.HIDDEN_STATE})
FULL_TYPES = MLA_TYPES | {SpecType.FULL, SpecType.TURBOQUANT, SpecType.SINK, SpecType.REFERENCE_WINDOW}
WINDOW_TYPES = frozenset({SpecType.SLIDING_WINDOW, SpecType.SLIDING_WINDOW_MLA})
# What keeps a value per token but forgets none: what a window becomes without the hybrid manager.
UNFORGETTING = {
    SpecType.SLIDING_WINDOW: SpecType.FULL,
    SpecType.CHUNKED_LOCAL: SpecType.FULL,
    SpecType.SLIDING_WINDOW_MLA: SpecType.MLA,
}

V4_RECORDS = frozenset({FP8_V4.name, FP8_V41.name, FP4_V41.name})


@dataclass(frozen=True, kw_only=True)
class LayerSpec:
    """The cache of one layer on one of `tp` ranks, in blocks of `block_size` tokens."""

    cache: Cache
    storage: Storage
    tp: int = 1
    block_size: int
    alignment: int | None = None  # rounds a page up to a multiple of bytes
    page_size_padded: int | None = None  # a page given from outside
    # The user's cache dtype that MLA specs carry: two of them are equal only with equal ones.
    cache_dtype: str | None = None
    mamba_cache_mode: MambaMode = MambaMode.NONE
    num_speculative_blocks: int = 0
    unforgetting: bool = False  # a window or chunk that the engine treats as full attention
    # Since 0.33.0. The attention backend packs a page: scales lie in it, TurboQuant has no own class.
    packed: bool = False
    replicated: bool = False  # decode context parallelism does not share out its tokens
    tp_shards: int | None = None  # how many different parts tensor parallelism makes of it, where known
    states_per_token: Fraction | int = 1  # entries of each token, where the cache does not say it
    own: StorageFormat | None = None  # a format that the model code gives this cache
    planes: int | None = None  # slots of a page that are not those of its heads
    # What the distance of two blocks is a multiple of: bytes, or pages of so many tokens.
    stride_bytes: int | None = None
    stride_kernel_block: int | None = None
    indexer: bool = False  # index keys beside sparse attention
    leads_indexer: bool = False  # a latent whose layer has an indexer of its own
    retained_tokens: int = 0  # that a window keeps beyond its own
    replayed: bool = False  # a window that is recomputed instead of reused
    checkpoint_blocks: int = 0  # of a state that can be exported inside a prefill
    checkpoint_alignment: int | None = None

    @cached_property
    def type(self) -> SpecType:
        """The class that the engine makes for this layer."""
        if isinstance(self.cache, State):
            return SpecType.MAMBA
        own = next(TYPES[kind] for kind in type(self.cache).__mro__ if kind in TYPES)
        if self.unforgetting:
            return UNFORGETTING[own]
        if own is SpecType.FULL and isinstance(self.format, TurboQuant) and not self.packed:
            return SpecType.TURBOQUANT
        return own

    @property
    def format(self) -> StorageFormat:
        """How elements become bytes."""
        return self.own or self.cache.stored_in(self.storage)

    @property
    def window(self) -> int | None:
        """The window of a layer that has one, also if the engine keeps every token of it."""
        return getattr(self.cache, "sliding_window", None)

    @property
    def chunk(self) -> int | None:
        """The attention chunk of a layer that has one."""
        return getattr(self.cache, "attention_chunk_size", None)

    @property
    def model_version(self) -> str | None:
        """`deepseek_v4` for its records."""
        return "deepseek_v4" if self.format.name in V4_RECORDS else None

    @property
    def dcp_sharded(self) -> bool:
        """Whether decode context parallelism shares out its tokens; states are never shared out."""
        return not self.replicated and self.type is not SpecType.MAMBA

    @property
    def prefix_cached(self) -> bool:
        """Whether its blocks can be reused by another request."""
        return self.type is not SpecType.RING and not self.replayed

    @cached_property
    def row(self) -> Row:
        """What one stored entry of a layer with tokens holds."""
        assert isinstance(self.cache, TokenCache)
        return self.cache.slot if isinstance(self.cache, Slots) else self.cache.row(self.tp)

    @property
    def storage_block_size(self) -> int:
        """Entries really stored per block; a state is one."""
        if self.type is SpecType.MAMBA and self.packed:
            return 1
        return int(self.block_size * self.states_per_token // self.cache.tokens_per_unit)

    @property
    def entries(self) -> Expression:
        """Entries whose bytes a page counts; the 656-byte form ignored a ratio until 0.33.0."""
        block = symbol("B", self.block_size)
        each, shared = Fraction(self.states_per_token).as_integer_ratio()
        if each > 1:
            block = block * symbol("n_token", each)
        if shared > 1:
            return block // symbol("r", shared)
        if self.cache.tokens_per_unit == 1 or (self.format == FP8_DS_MLA and not self.packed):
            return block
        return block // symbol("r", self.cache.tokens_per_unit)

    @property
    def states(self) -> Expression:
        """Entries of a page: those of its tokens, or the one state."""
        return lift(1) if self.type is SpecType.MAMBA else self.entries

    @property
    def head_slots(self) -> Expression:
        """Slots of an entry: one per head, unless the format or the backend divides it otherwise."""
        if self.planes is not None:
            return lift(self.planes)
        if self.type is SpecType.MAMBA or self.row.heads is None:
            return lift(1)
        return self.row.heads * 2 if isinstance(self.format, HalfByte) else self.row.heads

    @cached_property
    def content(self) -> Expression:
        """Bytes of one slot of one entry. Source: `state_content_size_bytes`."""
        return symbol("real", self.real_page) // (self.states * self.head_slots)

    @cached_property
    def real_page(self) -> Expression:
        """Page bytes before padding, until 0.33.0 also before scales. Source: `real_page_size_bytes`."""
        if isinstance(self.cache, State):
            return self.cache.unit_bytes(self.storage, self.tp)
        if isinstance(self.format, HeadScaled) and not self.packed:
            return self.entries * StorageFormat.row_bytes(self.format, self.row)
        return self.entries * self.format.row_bytes(self.row)

    @cached_property
    def page(self) -> Expression:
        """Page bytes as allocated. Source: `page_size_bytes`.

        Raises:
            EngineError: the page does not fit into `page_size_padded`.
        """
        page = self.real_page
        padded = None if self.page_size_padded is None else symbol("page_padded", self.page_size_padded)
        if self.alignment is not None and page.value % self.alignment:
            padded = round_up(page, symbol("align", self.alignment))
        if isinstance(self.format, HeadScaled) and self.type is not SpecType.MAMBA:
            page = self.entries * self.format.row_bytes(self.row)
        if padded is None:
            return page
        if padded.value < page.value:
            raise EngineError("vllm.padding", page=int(page.value), padded=int(padded.value))
        return padded

    @property
    def page_size_bytes(self) -> int:
        """`page` as a number."""
        return int(self.page.value)

    @property
    def stride_alignment(self) -> int:
        """Bytes that the distance of two blocks is a multiple of. Source: `get_block_stride_alignment`."""
        if self.stride_kernel_block is None:
            return self.stride_bytes or 1
        kernel = gcd(self.stride_kernel_block, self.block_size)
        return 1 if kernel == self.block_size else self.resized(kernel).page_size_bytes

    @property
    def stride(self) -> Expression:
        """Bytes from one block of this layer to its next where layers lie one after another."""
        aligned = self.stride_alignment
        return self.page if aligned == 1 else round_up(symbol("page", self.page), symbol("stride", aligned))

    def resized(self, block_size: int) -> "LayerSpec":
        """The same with other blocks."""
        return replace(self, block_size=block_size)

    def padded(self, page_size: int) -> "LayerSpec":
        """The same with a page of exactly `page_size` bytes."""
        return replace(self, alignment=None, page_size_padded=page_size)
