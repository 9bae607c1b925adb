"""config.json -> ModelPlan. General rules first, a family states only what differs.

What is not fully understood is refused.
"""

from .document import LARGEST_BYTES, Source
from .essential import essential
from .plan import read_config

__all__ = ["LARGEST_BYTES", "Source", "essential", "read_config"]
