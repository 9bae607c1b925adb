"""The one form in which both engines' allocations are shown."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..explain import Derivation, Expression, symbol
from ..footprint import Amounts
from ..scenario import Scenario

Sentence = tuple[str, Mapping[str, object]]  # a key of the catalogues and what fills it


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of the capacity; `unit` is "bytes", "blocks", "tokens", "requests" or "times"."""

    name: str
    unit: str
    value: Expression


@dataclass(frozen=True, kw_only=True)
class Allocated:
    """What one rank of the fullest pipeline stage allocates.

    `per_rank` are the four figures with an engine's scales, padding and block rounding; `capacity` says what
    fits into `available_memory_bytes`; `fits` is False where the engine would not start for lack of memory.
    """

    engine: str
    version: str
    per_rank: Amounts
    capacity: tuple[Figure, ...]
    transfer: tuple[Figure, ...]  # what goes from prefill to decode for one request at the context
    fits: bool
    notes: tuple[Sentence, ...]
    derivations: tuple[Derivation, ...]


def max_model_len(scenario: Scenario) -> int:
    """The longest request that the server is started for: as chosen, else the context."""
    return scenario.serving.max_model_len or scenario.context_tokens


def of_all(scenario: Scenario, request: Expression) -> Expression:
    """Bytes of all sequences, from those of one."""
    one = symbol("request", request)
    return one if scenario.num_sequences == 1 else symbol("N", scenario.num_sequences) * one
