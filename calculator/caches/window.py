"""Attention that forgets: the last tokens only, or the tokens of the current chunk."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..explain import Counted, Expression, least, symbol
from .attention import FullAttention
from .base import Growth, TokenCache, size


@dataclass(frozen=True, kw_only=True)
class Forgetting(TokenCache):
    """A cache that never holds more than `bound` tokens."""

    growth: ClassVar[Growth] = Growth.BOUNDED

    @property
    @abstractmethod
    def bound(self) -> Expression:
        """The most tokens it holds."""

    def units(self, context: Counted) -> Counted:
        """One row per token, up to the bound."""
        return least(context, self.bound)


@dataclass(frozen=True, kw_only=True)
class Windowed(Forgetting):
    """The last `sliding_window` tokens."""

    sliding_window: int = size(1, 2**27)

    @cached_property
    def bound(self) -> Expression:
        """The window."""
        return symbol("w", self.sliding_window)


@dataclass(frozen=True, kw_only=True)
class SlidingWindow(Windowed, FullAttention):
    """Keys and values of the last `sliding_window` tokens."""

    kind: ClassVar[str] = "sliding_window"
    source: ClassVar[str] = "vLLM 0.22.0 SlidingWindowSpec; SGLang 0.5.13 SWAKVPool"


@dataclass(frozen=True, kw_only=True)
class ChunkedLocal(Forgetting, FullAttention):
    """Keys and values of the current chunk, counted at its fullest."""

    kind: ClassVar[str] = "chunked_local"
    source: ClassVar[str] = "vLLM 0.22.0 ChunkedLocalAttentionSpec; SGLang 0.5.13 SWAKVPool (Llama 4)"

    attention_chunk_size: int = size(1, 2**27)

    @cached_property
    def bound(self) -> Expression:
        """The chunk."""
        return symbol("c", self.attention_chunk_size)

    def held(self, tokens: int) -> int:
        """The tokens of the current chunk: a saw-tooth."""
        return (tokens - 1) % self.attention_chunk_size + 1
