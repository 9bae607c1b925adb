"""What a model's KV cache costs, exact to the byte.

>>> from calculator import Scenario, estimate
>>> estimate(Scenario(model="deepseek-v3")).per_rank.bytes_per_token.value
70272
"""

from .comparison import Compared, comparison
from .errors import CalculatorError, ConfigError, FieldError, LimitError
from .estimate import Estimate, estimate
from .hf_config import read_config
from .model import LayerGroup, ModelPlan
from .scenario import Scenario, open_address
from .shape import Shape

__all__ = [
    "CalculatorError",
    "Compared",
    "ConfigError",
    "Estimate",
    "FieldError",
    "LayerGroup",
    "LimitError",
    "ModelPlan",
    "Scenario",
    "Shape",
    "comparison",
    "estimate",
    "open_address",
    "read_config",
]
