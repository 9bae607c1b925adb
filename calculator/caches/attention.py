"""Keys and values of every token: MHA, GQA, MQA."""

from dataclasses import dataclass
from typing import ClassVar

from ..explain import symbol
from ..formats import Row
from ..parallel import heads_per_rank
from .base import TokenCache, size


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
            heads=heads_per_rank("H", self.num_kv_heads, tp),
            vectors={"key": symbol("d", self.head_size), "value": symbol("d_v", self.head_size_v)},
        )

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The KV heads."""
        return (self.num_kv_heads,)

    def accepts_tp(self, tp: int) -> bool:
        """Heads are shared out evenly, or each is copied to equally many ranks."""
        return self.num_kv_heads % tp == 0 or tp % self.num_kv_heads == 0
