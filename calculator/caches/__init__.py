"""The cache kinds, one frozen dataclass each. A new kind is one class; the laws in the tests run over it."""

from .attention import FullAttention
from .base import KINDS, Cache, Growth, TokenCache, bounds
from .latent import MLA, IndexKey
from .state import GatedDeltaNet, Mamba2, State
from .window import ChunkedLocal, SlidingWindow

__all__ = [
    "KINDS",
    "MLA",
    "Cache",
    "ChunkedLocal",
    "FullAttention",
    "GatedDeltaNet",
    "Growth",
    "IndexKey",
    "Mamba2",
    "SlidingWindow",
    "State",
    "TokenCache",
    "bounds",
]
