"""SGLang: bytes per token, pools, buffers, capacity and refusals, as the engine computes them."""

from .plan import Allocation, Stage, allocate
from .rules import RULES
from .sending import Extra
from .settings import CHOICES, Settings, default_page_size

VERSIONS = tuple(RULES)
DSA_BACKENDS = CHOICES["dsa_backend"]

__all__ = [
    "DSA_BACKENDS",
    "VERSIONS",
    "Allocation",
    "Extra",
    "Settings",
    "Stage",
    "allocate",
    "default_page_size",
]
