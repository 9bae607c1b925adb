"""Latents shared by all query heads, and the index keys beside them. Every TP rank keeps a full copy."""

from dataclasses import dataclass
from typing import ClassVar

from ..explain import symbol
from ..formats import BF16, FP8_INDEX, Row, StorageFormat
from .base import TokenCache, size


@dataclass(frozen=True, kw_only=True)
class Copied(TokenCache):
    """A row without heads: tensor parallelism has nothing to split."""

    @property
    def split_heads(self) -> tuple[int, ...]:
        """None."""
        return ()

    def accepts_tp(self, tp: int) -> bool:  # noqa: ARG002 - a copy fits any number of ranks
        """Always."""
        return True


@dataclass(frozen=True, kw_only=True)
class MLA(Copied):
    """A latent of [kv_lora_rank] and its rope key of [qk_rope_head_dim] per token; V is within the latent."""

    kind: ClassVar[str] = "mla"
    source: ClassVar[str] = (
        "vLLM 0.22.0 MLAAttentionSpec.real_page_size_bytes; SGLang 0.5.13 MLATokenToKVPool"
    )

    kv_lora_rank: int = size(1, 16384)
    qk_rope_head_dim: int = size(0, 4096)

    def row(self, tp: int) -> Row:  # noqa: ARG002 - the row is the same on every rank
        """`R + D_r` elements."""
        return Row(
            vectors={"latent": symbol("R", self.kv_lora_rank), "rope": symbol("D_r", self.qk_rope_head_dim)}
        )


@dataclass(frozen=True, kw_only=True)
class HiddenState(Copied):
    """`num_hidden_states` vectors of [hidden_size] per token, for a reader outside the model."""

    kind: ClassVar[str] = "hidden_state"
    source: ClassVar[str] = "vLLM 0.22.0 HiddenStateCacheSpec"

    num_hidden_states: int = size(1, 1024)
    hidden_size: int = size(1, 2**20)

    def row(self, tp: int) -> Row:  # noqa: ARG002 - the row is the same on every rank
        """`n · d` elements."""
        return Row(
            heads=symbol("n", self.num_hidden_states), vectors={"hidden": symbol("d", self.hidden_size)}
        )


@dataclass(frozen=True, kw_only=True)
class IndexKey(Copied):
    """One key of [index_head_dim] per token for the sparse-attention indexer (DSA), FP8 with scales."""

    kind: ClassVar[str] = "index_key"
    source: ClassVar[str] = "vLLM 0.22.0 DeepseekV32IndexerCache; SGLang 0.5.13 DSATokenToKVPool"
    own_format: ClassVar[StorageFormat] = FP8_INDEX

    index_head_dim: int = size(1, 4096)

    def row(self, tp: int) -> Row:  # noqa: ARG002 - the row is the same on every rank
        """`d_i` elements."""
        return Row(vectors={"index": symbol("d_i", self.index_head_dim)})


@dataclass(frozen=True, kw_only=True)
class SparseIndexKey(IndexKey):
    """One BF16 index key of [index_head_dim] per token, beside ordinary K and V (MiniMax-M3)."""

    kind: ClassVar[str] = "sparse_index_key"
    source: ClassVar[str] = "transformers 5.24.0 MiniMaxM3Config sparse_attention_config"
    own_format: ClassVar[StorageFormat] = BF16
