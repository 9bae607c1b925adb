"""SGLang: bytes per token, pools, buffers, capacity and refusals, as the engine computes them."""

from .cases import RUNNERS
from .plan import Allocation, Stage, allocate
from .rules import RULES
from .settings import Settings

VERSIONS = tuple(RULES)

__all__ = ["RUNNERS", "VERSIONS", "Allocation", "Settings", "Stage", "allocate"]
