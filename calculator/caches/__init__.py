"""The cache kinds: one frozen dataclass each. A new kind is a class here; the laws run over it."""

from .attention import CrossAttention, EncoderOnlyAttention, FullAttention, SinkAttention
from .base import KINDS, Cache, Growth, TokenCache, bounds
from .compressed import CompressedIndexKey, CompressedLatent, CompressorState, SharedVector, SlidingWindowMLA
from .latent import MLA, Copied, HiddenState, IndexKey, SparseIndexKey
from .state import (
    KDA,
    RGLRU,
    RWKV5,
    GatedDeltaNet,
    LinearAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
    State,
    StateTensor,
)
from .window import ChunkedLocal, SlidingWindow

__all__ = [
    "KDA",
    "KINDS",
    "MLA",
    "RGLRU",
    "RWKV5",
    "Cache",
    "ChunkedLocal",
    "CompressedIndexKey",
    "CompressedLatent",
    "CompressorState",
    "Copied",
    "CrossAttention",
    "EncoderOnlyAttention",
    "FullAttention",
    "GatedDeltaNet",
    "Growth",
    "HiddenState",
    "IndexKey",
    "LinearAttention",
    "Mamba1",
    "Mamba2",
    "SharedVector",
    "ShortConvolution",
    "SinkAttention",
    "SlidingWindow",
    "SlidingWindowMLA",
    "SparseIndexKey",
    "State",
    "StateTensor",
    "TokenCache",
    "bounds",
]
