"""One layer's cache as vLLM allocates it: which of its spec classes, and how many bytes a page has.

Source: vLLM 0.22.0 `v1/kv_cache_interface.py`.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

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
    SinkAttention,
    SlidingWindow,
    SlidingWindowMLA,
    State,
    TokenCache,
)
from ...errors import EngineError
from ...explain import Expression, round_up, symbol
from ...formats import FP8_DS_MLA, FP8_V4, HeadScaled, Row, Storage, StorageFormat, TurboQuant
from .settings import MambaMode


class SpecType(StrEnum):
    """The engine's classes."""

    FULL = "FullAttentionSpec"
    TURBOQUANT = "TQFullAttentionSpec"
    SINK = "SinkFullAttentionSpec"
    MLA = "MLAAttentionSpec"
    HIDDEN_STATE = "HiddenStateCacheSpec"
    SLIDING_WINDOW = "SlidingWindowSpec"
    SLIDING_WINDOW_MLA = "SlidingWindowMLASpec"
    CHUNKED_LOCAL = "ChunkedLocalAttentionSpec"
    CROSS = "CrossAttentionSpec"
    ENCODER_ONLY = "EncoderOnlyAttentionSpec"
    MAMBA = "MambaSpec"


TYPES: dict[type[Cache], SpecType] = {
    FullAttention: SpecType.FULL,
    SinkAttention: SpecType.SINK,
    CrossAttention: SpecType.CROSS,
    EncoderOnlyAttention: SpecType.ENCODER_ONLY,
    SlidingWindow: SpecType.SLIDING_WINDOW,
    ChunkedLocal: SpecType.CHUNKED_LOCAL,
    MLA: SpecType.MLA,
    IndexKey: SpecType.MLA,
    CompressedLatent: SpecType.MLA,
    CompressedIndexKey: SpecType.MLA,
    HiddenState: SpecType.HIDDEN_STATE,
    SlidingWindowMLA: SpecType.SLIDING_WINDOW_MLA,
    CompressorState: SpecType.SLIDING_WINDOW_MLA,
}

# The engine's subclasses: what counts as full attention, as MLA, as a window.
MLA_TYPES = frozenset({SpecType.MLA, SpecType.HIDDEN_STATE})
FULL_TYPES = MLA_TYPES | {SpecType.FULL, SpecType.TURBOQUANT, SpecType.SINK}
WINDOW_TYPES = frozenset({SpecType.SLIDING_WINDOW, SpecType.SLIDING_WINDOW_MLA})
# What keeps a value per token but forgets none: what a window becomes without the hybrid manager.
UNFORGETTING = {
    SpecType.SLIDING_WINDOW: SpecType.FULL,
    SpecType.CHUNKED_LOCAL: SpecType.FULL,
    SpecType.SLIDING_WINDOW_MLA: SpecType.MLA,
}


@dataclass(frozen=True, kw_only=True)
class LayerSpec:
    """The cache of one layer on one of `tp` ranks, in blocks of `block_size` tokens.

    `alignment` rounds a page up to a multiple of bytes; `page_size_padded` is a page given from outside.
    `cache_dtype` is the user's cache dtype that MLA specs carry: two of them are equal only with equal ones.
    `unforgetting` marks a window or chunk that the engine treats as full attention.
    """

    cache: Cache
    storage: Storage
    tp: int = 1
    block_size: int
    alignment: int | None = None
    page_size_padded: int | None = None
    cache_dtype: str | None = None
    mamba_cache_mode: MambaMode = MambaMode.NONE
    num_speculative_blocks: int = 0
    unforgetting: bool = False

    @cached_property
    def type(self) -> SpecType:
        """The class that the engine makes for this layer."""
        if isinstance(self.cache, State):
            return SpecType.MAMBA
        own = TYPES[type(self.cache)]
        if self.unforgetting:
            return UNFORGETTING[own]
        if own is SpecType.FULL and isinstance(self.format, TurboQuant):
            return SpecType.TURBOQUANT
        return own

    @property
    def format(self) -> StorageFormat:
        """How elements become bytes."""
        return self.cache.stored_in(self.storage)

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
        """`deepseek_v4` for its 584-byte entries."""
        return "deepseek_v4" if self.format == FP8_V4 else None

    @cached_property
    def row(self) -> Row:
        """What one stored entry of a layer with tokens holds."""
        assert isinstance(self.cache, TokenCache)
        if isinstance(self.cache, CompressorState):
            return Row(vectors={"state": symbol("d", self.cache.state_width)})
        return self.cache.row(self.tp)

    @property
    def storage_block_size(self) -> int:
        """Entries really stored per block."""
        return self.block_size // self.cache.tokens_per_unit

    @property
    def entries(self) -> Expression:
        """Entries whose bytes a page counts; the 656-byte form ignores a ratio."""
        block = symbol("B", self.block_size)
        if self.cache.tokens_per_unit == 1 or self.format == FP8_DS_MLA:
            return block
        return block // symbol("r", self.cache.tokens_per_unit)

    @cached_property
    def real_page(self) -> Expression:
        """Page bytes before scales and padding. Source: `real_page_size_bytes`."""
        if isinstance(self.cache, State):
            return self.cache.unit_bytes(self.storage, self.tp)
        if isinstance(self.format, HeadScaled):
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

    def resized(self, block_size: int) -> "LayerSpec":
        """The same with other blocks."""
        return replace(self, block_size=block_size)

    def padded(self, page_size: int) -> "LayerSpec":
        """The same with a page of exactly `page_size` bytes."""
        return replace(self, alignment=None, page_size_padded=page_size)
