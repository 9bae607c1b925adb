"""DeepSeek-V4: latents of the last tokens, latents and index keys of compressed tokens, compressors' states.

K and V are one vector of [head_size], the last `qk_rope_head_dim` of it the rope key. Every rank has a copy.
"""

from dataclasses import dataclass
from typing import ClassVar

from ..errors import FieldError
from ..explain import Counted, constant, symbol
from ..formats import FP32, Row, StorageFormat
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
class CompressorState(Copied):
    """What a compressor still needs of the last `sliding_window` tokens: float32 vectors of [state_width]."""

    kind: ClassVar[str] = "compressor_state"
    source: ClassVar[str] = (
        "vLLM 0.22.0 SlidingWindowMLASpec (float32); SGLang 0.5.13 DeepSeekV4CompressState"
    )
    growth: ClassVar[Growth] = Growth.CONSTANT
    own_format: ClassVar[StorageFormat] = FP32

    state_width: int = size(1, 2**16)
    sliding_window: int = size(1, 4096)

    def row(self, tp: int) -> Row:  # noqa: ARG002 - the row is the same on every rank
        """All slots: `w · d` elements."""
        return Row(heads=symbol("w", self.sliding_window), vectors={"state": symbol("d", self.state_width)})

    def units(self, context: Counted) -> Counted:
        """One state, held whole from the first token on."""
        return constant(1, context)
