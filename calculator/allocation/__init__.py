"""What an engine allocates for a scenario.

The engines are asked side by side, never merged: they give different capacities for the same input.
"""

from .. import engines
from ..engines.versions import of_version
from ..model import ModelPlan
from ..scenario import Scenario
from ..serving import VLLM
from . import sglang, vllm
from .form import DIFFERENCE, Allocated, Figure, Part, Sentence

__all__ = [
    "DIFFERENCE",
    "Allocated",
    "Figure",
    "Part",
    "Rules",
    "Sentence",
    "allocate",
    "allocate_under",
    "rules_of",
]

Rules = engines.vllm.Rules | engines.sglang.Rules


def allocate(scenario: Scenario, plan: ModelPlan) -> Allocated | None:
    """What the scenario's engine allocates; None for logical bytes.

    Raises:
        EngineError: the engine refuses this, for the reason in the sentence.
        FieldError: settings that do not go together.
    """
    version = scenario.serving.version
    if version is None:
        return None
    return allocate_under(scenario, plan, rules_of(scenario.serving.engine, version))


def allocate_under(scenario: Scenario, plan: ModelPlan, rules: Rules) -> Allocated:
    """The same under `rules`, those of a version or a step between two. Raises what `allocate` raises."""
    if isinstance(rules, engines.vllm.Rules):
        return vllm.allocated(scenario, plan, rules)
    return sglang.allocated(scenario, plan, rules)


def rules_of(engine: str, version: str) -> Rules:
    """The rules of a version. Raises FieldError for one that is not known."""
    if engine == VLLM:
        return of_version(engines.vllm.RULES, version)
    return of_version(engines.sglang.RULES, version)
