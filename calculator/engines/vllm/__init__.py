"""vLLM: pages, groups, blocks and what a request takes of them."""

from .plan import Allocation, allocate, allocate_under
from .pool import Pool
from .rules import RULES, Rules
from .settings import MambaMode, Settings

VERSIONS = tuple(RULES)

__all__ = [
    "RULES",
    "VERSIONS",
    "Allocation",
    "MambaMode",
    "Pool",
    "Rules",
    "Settings",
    "allocate",
    "allocate_under",
]
