"""Several models side by side: one request on one rank, in the scenario's formats, TP and engine."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from . import catalogue
from .allocation import allocate
from .errors import CalculatorError, EngineError, FieldError, LimitError
from .explain import Number
from .footprint import QUANTITIES, Parts, check_exact, footprint
from .model import ModelPlan
from .own import PRESENT, described, pins
from .scenario import Scenario
from .units import number_json


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """One request of a model on one rank: the three rates, and the bytes at any context."""

    bytes_per_token: Number
    bounded_bytes: Number
    constant_bytes: Number
    at: Callable[[int], Parts]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One model of the comparison. `parts` are at `compare_tokens`; `refusal` says why there are none.

    `key` is a catalogue id, `this`, or the layers of a pinned model; `name` is empty for the present model.
    """

    key: str
    name: str
    plan: ModelPlan
    weighed: Weighed | None = None
    parts: Parts | None = None
    refusal: CalculatorError | None = None


def comparison(scenario: Scenario) -> list[Compared]:
    """The models of `compared` and `pins` at `compare_tokens`, smallest first; behind them those refused."""
    found = list(_compared(scenario))
    placed = [one for one in found if one.parts]
    return [
        *sorted(placed, key=lambda one: one.parts.total if one.parts else 0),
        *(one for one in found if one.refusal),
    ]


def comparison_json(scenario: Scenario) -> dict[str, object]:
    """The comparison as JSON, schema 1: integers, and fractions as {"numerator", "denominator"}."""
    return {
        "schema": 1,
        "tokens": scenario.compare_tokens,
        "engine": {"name": scenario.serving.engine, "version": scenario.serving.version},
        "models": [
            {"model": one.key, "name": one.name}
            | (
                {name: number_json(getattr(one.weighed, name)) for name in QUANTITIES[:3]}
                | {"total_bytes": one.parts.total}
                if one.parts
                else {"refusal": {"key": one.refusal.key, "values": dict(one.refusal.values)}}
                if one.refusal
                else {}
            )
            for one in comparison(scenario)
        ],
    }


def _compared(scenario: Scenario) -> Iterator[Compared]:
    frame = _frame(scenario)
    for key in filter(None, scenario.compared.split(",")):
        if key == PRESENT:
            yield _entry(frame, key, "", scenario.plan())
        else:
            yield _cached(frame, key, catalogue.entry(key).name)
    for name, layers in pins(scenario.pins):
        yield _cached(frame, layers, name)


def _frame(scenario: Scenario) -> Scenario:
    """What the figures of every model depend on, and nothing else: a move of another slider changes none."""
    return Scenario(
        kv_cache_dtype=scenario.kv_cache_dtype,
        state_dtype=scenario.state_dtype,
        serving=scenario.serving,
        tensor_parallel_size=scenario.tensor_parallel_size,
        context_tokens=scenario.compare_tokens,
    )


@lru_cache(256)
def _cached(frame: Scenario, key: str, name: str) -> Compared:
    return _entry(frame, key, name, catalogue.plan(key) if key in catalogue.ids() else described(key))


def _entry(frame: Scenario, key: str, name: str, plan: ModelPlan) -> Compared:
    bare = Compared(key=key, name=name, plan=plan)
    try:
        weighed = _weighed(frame, plan)
        parts = check_exact(weighed.at(frame.context_tokens))
    except (EngineError, FieldError, LimitError) as refusal:
        return replace(bare, refusal=refusal)
    return replace(bare, weighed=weighed, parts=parts)


def _weighed(frame: Scenario, plan: ModelPlan) -> Weighed:
    frame.check_format(plan)
    allocated = allocate(frame, plan)
    if allocated:
        amounts, at = allocated.per_rank, allocated.request
    else:
        rank = footprint(plan, frame.storage, frame.tensor_parallel_size)
        amounts, at = rank.amounts(frame.context_tokens, 1), rank.parts
    return Weighed(
        bytes_per_token=amounts.bytes_per_token.value,
        bounded_bytes=amounts.bounded_bytes.value,
        constant_bytes=amounts.constant_bytes.value,
        at=at,
    )
