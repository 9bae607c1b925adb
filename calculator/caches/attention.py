"""Keys and values of every token: MHA, GQA, MQA, and their variants."""

from dataclasses import dataclass
from typing import ClassVar

from ..explain import Counted, constant, symbol
from ..formats import Row
from ..parallel import per_rank
from .base import Growth, TokenCache, size


@dataclass(frozen=True, kw_only=True)
class FullAttention(TokenCache):
    """K of [num_kv_heads, head_size] and V of [num_kv_heads, head_size_v] per token."""

    kind: ClassVar[str] = "full_attention"
    source: ClassVar[str] = (
        "vLLM 0.22.0 FullAttentionSpec.real_page_size_bytes; SGLang 0.5.13 MHATokenToKVPool"
    )

    num_kv_heads: int = size(1, 1024)
    head_size: int = size(1, 4096)
    head_size_v: int = size(1, 4096)

    def row(self, tp: int) -> Row:
        """`H · (d + d_v)` elements."""
        return Row(
            heads=per_rank("H", self.num_kv_heads, tp),
            vectors={"key": symbol("d", self.head_size), "value": symbol("d_v", self.head_size_v)},
        )

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The KV heads."""
        return (self.num_kv_heads,)

    def accepts_tp(self, tp: int) -> bool:
        """Heads are shared out evenly, or each is copied to equally many ranks."""
        return self.num_kv_heads % tp == 0 or tp % self.num_kv_heads == 0


@dataclass(frozen=True, kw_only=True)
class SinkAttention(FullAttention):
    """Full attention whose first `sink_len` tokens are kept once for all, beside what each request holds."""

    kind: ClassVar[str] = "sink_attention"
    source: ClassVar[str] = "vLLM 0.22.0 SinkFullAttentionSpec"

    sink_len: int = size(0, 2**20)


@dataclass(frozen=True, kw_only=True)
class ReferenceWindow(FullAttention):
    """Full attention to the prompt, and to the last `reference_window` of the generated tokens alone."""

    kind: ClassVar[str] = "reference_window"
    source: ClassVar[str] = "vLLM 0.33.0 RSWASpec"

    reference_window: int = size(1, 2**27)


@dataclass(frozen=True, kw_only=True)
class CrossAttention(FullAttention):
    """K and V of the `num_encoder_tokens` tokens of an encoder (0: not known), whatever the context."""

    kind: ClassVar[str] = "cross_attention"
    source: ClassVar[str] = "vLLM 0.22.0 CrossAttentionSpec"
    growth: ClassVar[Growth] = Growth.CONSTANT

    num_encoder_tokens: int = size(0, 2**27, default=0)

    def units(self, context: Counted) -> Counted:
        """One row per encoder token."""
        return constant(self.num_encoder_tokens, context)


@dataclass(frozen=True, kw_only=True)
class EncoderOnlyAttention(FullAttention):
    """K and V that no later step reads: nothing is kept."""

    kind: ClassVar[str] = "encoder_only_attention"
    source: ClassVar[str] = "vLLM 0.22.0 EncoderOnlyAttentionSpec"
    growth: ClassVar[Growth] = Growth.CONSTANT

    def units(self, context: Counted) -> Counted:
        """None."""
        return constant(0, context)
