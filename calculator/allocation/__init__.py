"""What an engine allocates for a scenario.

The engines are asked side by side, never merged: they give different capacities for the same input.
"""

from ..model import ModelPlan
from ..scenario import Scenario
from ..serving import VLLM
from . import sglang, vllm
from .form import DIFFERENCE, Allocated, Figure, Part, Sentence

__all__ = ["DIFFERENCE", "Allocated", "Figure", "Part", "Sentence", "allocate"]


def allocate(scenario: Scenario, plan: ModelPlan) -> Allocated | None:
    """What the scenario's engine allocates; None for logical bytes.

    Raises:
        EngineError: the engine refuses this, for the reason in the sentence.
        FieldError: settings that do not go together.
    """
    version = scenario.serving.version
    if version is None:
        return None
    made = vllm.allocated if scenario.serving.engine == VLLM else sglang.allocated
    return made(scenario, plan, version)
