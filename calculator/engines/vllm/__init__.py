"""vLLM: pages, groups, blocks and what a request takes of them."""

from .plan import Allocation, allocate
from .pool import Pool
from .rules import RULES
from .settings import MambaMode, Settings

VERSIONS = tuple(RULES)

__all__ = ["VERSIONS", "Allocation", "MambaMode", "Pool", "Settings", "allocate"]
