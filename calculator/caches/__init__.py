"""The cache kinds: one frozen dataclass each. A new kind is a class here; the laws run over it."""

from .attention import CrossAttention, EncoderOnlyAttention, FullAttention, ReferenceWindow, SinkAttention
from .base import KINDS, Cache, Growth, TokenCache, bounds
from .compressed import (
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    IndexTail,
    RingBuffer,
    SharedVector,
    SlidingWindowMLA,
    Slots,
)
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
    "IndexTail",
    "LinearAttention",
    "Mamba1",
    "Mamba2",
    "ReferenceWindow",
    "RingBuffer",
    "SharedVector",
    "ShortConvolution",
    "SinkAttention",
    "SlidingWindow",
    "SlidingWindowMLA",
    "Slots",
    "SparseIndexKey",
    "State",
    "StateTensor",
    "TokenCache",
    "bounds",
]
