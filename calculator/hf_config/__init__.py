"""config.json -> ModelPlan. General rules first, a family states only what differs.

What is not fully understood is refused.
"""

from .document import Source
from .essential import essential
from .plan import read_config

__all__ = ["Source", "essential", "read_config"]
