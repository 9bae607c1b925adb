"""Attention that forgets: the last tokens only, or the tokens of the current chunk."""

from dataclasses import dataclass
from typing import ClassVar

from ..explain import Counted, Expression, least, symbol
from .attention import FullAttention
from .base import Growth, size


@dataclass(frozen=True, kw_only=True)
class SlidingWindow(FullAttention):
    """Keys and values of the last `sliding_window` tokens."""

    kind: ClassVar[str] = "sliding_window"
    source: ClassVar[str] = "vLLM 0.22.0 SlidingWindowSpec; SGLang 0.5.13 SWAKVPool"
    growth: ClassVar[Growth] = Growth.BOUNDED

    sliding_window: int = size(1, 2**27)

    def units(self, context: Counted) -> Counted:
        """`min(T, w)`."""
        return least(context, self.bound)

    @property
    def bound(self) -> Expression:
        """The window."""
        return symbol("w", self.sliding_window)


@dataclass(frozen=True, kw_only=True)
class ChunkedLocal(FullAttention):
    """Keys and values of the current chunk, counted at its fullest."""

    kind: ClassVar[str] = "chunked_local"
    source: ClassVar[str] = "vLLM 0.22.0 ChunkedLocalAttentionSpec; SGLang 0.5.13 SWAKVPool (Llama 4)"
    growth: ClassVar[Growth] = Growth.BOUNDED

    attention_chunk_size: int = size(1, 2**27)

    def units(self, context: Counted) -> Counted:
        """`min(T, c)`."""
        return least(context, self.bound)

    @property
    def bound(self) -> Expression:
        """The chunk."""
        return symbol("c", self.attention_chunk_size)
