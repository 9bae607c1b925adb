"""SGLang: bytes per token, pools, buffers, capacity and refusals, as the engine computes them."""

from .plan import Allocation, Stage, allocate, allocate_under
from .rules import RULES, Rules
from .sending import Extra
from .settings import CHOICES, Settings, default_page_size

VERSIONS = tuple(RULES)
DSA_BACKENDS = CHOICES["dsa_backend"]

__all__ = [
    "DSA_BACKENDS",
    "RULES",
    "VERSIONS",
    "Allocation",
    "Extra",
    "Rules",
    "Settings",
    "Stage",
    "allocate",
    "allocate_under",
    "default_page_size",
]
