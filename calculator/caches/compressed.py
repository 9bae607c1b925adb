"""DeepSeek-V4: latents of the last tokens, latents and index keys of compressed tokens, compressors' states.

K and V are one vector of [head_size], the last `qk_rope_head_dim` of it the rope key. Every rank has a copy.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ..errors import FieldError
from ..explain import Counted, Expression, constant, lift, symbol
from ..formats import BF16, FP32, Row, StorageFormat
from .base import Growth, size
from .latent import Copied, IndexKey
from .window import Windowed


@dataclass(frozen=True, kw_only=True)
class SharedVector(Copied):
    """One vector of [head_size] that is both key and value."""

    head_size: int = size(1, 4096)
    qk_rope_head_dim: int = size(0, 4096)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.qk_rope_head_dim > self.head_size:
            raise FieldError(
                "error.range",
                field="qk_rope_head_dim",
                value=self.qk_rope_head_dim,
                lowest=0,
                highest=self.head_size,
            )

    def row(self, tp: int) -> Row:  # noqa: ARG002 - the row is the same on every rank
        """`d − D_r` latent and `D_r` rope elements."""
        rope = symbol("D_r", self.qk_rope_head_dim)
        return Row(vectors={"latent": symbol("d", self.head_size) - rope, "rope": rope})


@dataclass(frozen=True, kw_only=True)
class SlidingWindowMLA(Windowed, SharedVector):
    """The vectors of the last `sliding_window` tokens."""

    kind: ClassVar[str] = "sliding_window_mla"
    source: ClassVar[str] = "vLLM 0.22.0 SlidingWindowMLASpec; SGLang 0.5.13 DeepSeekV4SingleKVPool"


@dataclass(frozen=True, kw_only=True)
class CompressedLatent(SharedVector):
    """One vector for every `compress_ratio` tokens."""

    kind: ClassVar[str] = "compressed_latent"
    source: ClassVar[str] = (
        "vLLM 0.22.0 MLAAttentionSpec (compress_ratio); SGLang 0.5.13 DeepSeekV4SingleKVPool"
    )

    compress_ratio: int = size(1, 4096)

    @property
    def tokens_per_unit(self) -> int:
        """The ratio."""
        return self.compress_ratio


@dataclass(frozen=True, kw_only=True)
class CompressedIndexKey(IndexKey):
    """One index key for every `compress_ratio` tokens."""

    kind: ClassVar[str] = "compressed_index_key"
    source: ClassVar[str] = "vLLM 0.22.0 DeepseekV4IndexerCache; SGLang 0.5.13 DeepSeekV4IndexerPool"

    compress_ratio: int = size(1, 4096)

    @property
    def tokens_per_unit(self) -> int:
        """The ratio."""
        return self.compress_ratio


@dataclass(frozen=True, kw_only=True)
class Slots(Copied):
    """A fixed number of slots per request, whatever the context."""

    growth: ClassVar[Growth] = Growth.CONSTANT

    @property
    @abstractmethod
    def slot(self) -> Row:
        """What one slot holds."""

    @property
    @abstractmethod
    def slots(self) -> Expression:
        """How many there are."""

    def row(self, tp: int) -> Row:  # noqa: ARG002 - the row is the same on every rank
        """All slots."""
        slot = self.slot
        heads = self.slots if slot.heads is None else self.slots * slot.heads
        return Row(heads=heads, vectors=slot.vectors)

    def units(self, context: Counted) -> Counted:
        """One set of slots, held whole from the first token on."""
        return constant(1, context)


@dataclass(frozen=True, kw_only=True)
class CompressorState(Slots):
    """What a compressor still needs of the last `sliding_window` tokens: float32 vectors of [state_width]."""

    kind: ClassVar[str] = "compressor_state"
    source: ClassVar[str] = (
        "vLLM 0.22.0 SlidingWindowMLASpec (float32); SGLang 0.5.13 DeepSeekV4CompressState"
    )
    own_format: ClassVar[StorageFormat] = FP32

    state_width: int = size(1, 2**16)
    sliding_window: int = size(1, 4096)

    @property
    def slot(self) -> Row:
        """`d` elements."""
        return Row(vectors={"state": symbol("d", self.state_width)})

    @property
    def slots(self) -> Expression:
        """One per token of the window."""
        return symbol("w", self.sliding_window)


@dataclass(frozen=True, kw_only=True)
class RingBuffer(Slots):
    """What DeepSeek-V4.1 still has to compress: float32 vectors of [ring_width], a ring of `ring_tokens`."""

    kind: ClassVar[str] = "ring_buffer"
    source: ClassVar[str] = "vLLM 0.33.0 CircularBufferSpec; SGLang 0.5.23 CompressStatePool"
    own_format: ClassVar[StorageFormat] = FP32

    ring_width: int = size(1, 2**16)
    ring_tokens: int = size(1, 2**16)

    @property
    def slot(self) -> Row:
        """`d` elements."""
        return Row(vectors={"state": symbol("d", self.ring_width)})

    @property
    def slots(self) -> Expression:
        """The length of the ring."""
        return symbol("ring", self.ring_tokens)


@dataclass(frozen=True, kw_only=True)
class IndexTail(RingBuffer):
    """Index keys that are not pooled yet, and their gates: two BF16 vectors of [ring_width] per slot."""

    kind: ClassVar[str] = "index_tail"
    source: ClassVar[str] = "vLLM 0.33.0 CircularBufferSpec"
    own_format: ClassVar[StorageFormat] = BF16

    @property
    def slot(self) -> Row:
        """`2 · d` elements."""
        return Row(heads=lift(2), vectors={"state": symbol("d", self.ring_width)})
