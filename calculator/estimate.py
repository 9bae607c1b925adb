"""All that is said about a scenario. The page, the command line and the library only show this."""

from dataclasses import dataclass
from functools import cached_property

from .allocation import DIFFERENCE, Allocated, Sentence, allocate
from .caches import ChunkedLocal, Growth
from .errors import EngineError, LimitError
from .explain import Derivation
from .factors import Factor, factors
from .footprint import EXACT_LIMIT, QUANTITIES, Amounts, Footprint, Parts, footprint
from .model import ModelPlan
from .scenario import Scenario
from .units import number_json

SCHEMA = 1
TP_SIZES = (1, 2, 4, 8, 16)
ARITHMETIC = "stored elements × bytes, no rounding"


@dataclass(frozen=True, kw_only=True)
class RankRow:
    """One line of the TP table; `accepted` is False where the engines refuse this size."""

    tp: int
    amounts: Amounts
    accepted: bool


@dataclass(frozen=True, kw_only=True)
class LayerTokens:
    """Tokens held, summed over the attention layers, and what they would be if no layer forgot any."""

    held: int
    unforgetting: int


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The answers for one scenario.

    All bytes are logical, stored elements without rounding and padding, but those of `allocated`: what the
    scenario's engine makes of them. Where the engine refuses, `refusal` is its reason.
    """

    scenario: Scenario
    plan: ModelPlan
    allocated: Allocated | None = None
    refusal: EngineError | None = None

    @cached_property
    def rank(self) -> Footprint:
        """One request on one rank."""
        return footprint(self.plan, self.scenario.storage, self.scenario.tensor_parallel_size)

    @cached_property
    def per_rank(self) -> Amounts:
        """The four figures on one rank."""
        return self._amounts(self.rank)

    @cached_property
    def whole_model(self) -> Amounts:
        """One undivided copy of the cache, as TP 1 holds it."""
        return self._amounts(footprint(self.plan, self.scenario.storage, 1))

    @property
    def copied(self) -> bool:
        """Whether every rank keeps everything, so that TP lowers nothing."""
        return not any(cache.split_heads for cache in self.plan.caches())

    def by_tp(self) -> tuple[RankRow, ...]:
        """The usual TP sizes and the chosen one."""
        return tuple(
            RankRow(
                tp=tp,
                amounts=self._amounts(footprint(self.plan, self.scenario.storage, tp)),
                accepted=self._accepts(tp),
            )
            for tp in sorted({*TP_SIZES, self.scenario.tensor_parallel_size})
        )

    def layer_tokens(self) -> LayerTokens:
        """Of the layers that keep tokens of the context: not of an encoder's tokens, nor of states.

        Source: the layer-token count of the interview page, formulas of section 3.2.
        """
        context = self.scenario.context_tokens
        kept = (
            [cache for cache in layer if cache.growth is not Growth.CONSTANT] for layer in self.plan.layers
        )
        held = [max(cache.units(context) for cache in caches) for caches in kept if caches]
        return LayerTokens(held=sum(held), unforgetting=len(held) * context)

    def curve(self, contexts: list[int]) -> list[Parts]:
        """Bytes per rank of all sequences at each of `contexts`."""
        rank, sequences = self.rank, self.scenario.num_sequences
        return [rank.parts(context, sequences) for context in contexts]

    def held_curve(self, contexts: list[int]) -> list[Parts]:
        """The same, but of what is held while the last token is decoded: the engine's blocks, or tokens."""
        held = self.allocated.held if self.allocated else self.rank.held
        return [held(context).times(self.scenario.num_sequences) for context in contexts]

    def held_steps(self) -> frozenset[int]:
        """Tokens after which what is held goes up by a block, or down by a chunk."""
        chunks = (held.attention_chunk_size for held in self.plan.caches() if isinstance(held, ChunkedLocal))
        return frozenset((*chunks, *(self.allocated.steps if self.allocated else ())))

    def factors(self) -> tuple[Factor, ...]:
        """Where the size of one request at the context comes from: heads, architecture, format.

        A model changed on the sliders has no published number of query heads.
        """
        config = None if self.scenario.customised else self.scenario.published
        return factors(self.plan, config, self.scenario.storage, self.scenario.context_tokens)

    def derivations(self) -> list[Derivation]:
        """How the figures on one rank were made: of each cache, then of the sums."""
        caches = [
            Derivation(
                quantity=f"groups.{number}.{cache.kind}.unit_bytes",
                expression=cache.unit_bytes(self.scenario.storage, self.scenario.tensor_parallel_size),
                source=cache.source,
            )
            for number, group in enumerate(self.plan.groups())
            for cache in group.caches
        ]
        sums = [
            Derivation(
                quantity=f"per_rank.{name}", expression=getattr(self.per_rank, name), source=ARITHMETIC
            )
            for name in QUANTITIES
        ]
        return caches + sums + list(self.allocated.derivations if self.allocated else ())

    def notices(self) -> list[Sentence]:
        """What a reader must know beside the numbers."""
        found: list[Sentence] = [*self.plan.warnings]
        tp = self.scenario.tensor_parallel_size
        if not self._accepts(tp):
            found.append(("notice.tp", {"tp": tp}))
        if self.refusal:
            found.append((self.refusal.key, self.refusal.values))
        if self.allocated:
            found += self.allocated.notes
            if not self.allocated.fits:
                found.append(("notice.memory", {"value": self.scenario.serving.available_memory_bytes}))
        return found

    def as_json(self) -> dict[str, object]:
        """The result JSON, schema 1: integers, and fractions as {"numerator", "denominator"}."""
        storage = self.scenario.storage
        return {
            "schema": SCHEMA,
            "scenario": self.scenario.as_json(),
            "engine": {"name": self.scenario.serving.engine, "version": self.scenario.serving.version},
            "per_rank": _amounts_json(self.allocated.per_rank if self.allocated else self.per_rank),
            "whole_model": _amounts_json(self.whole_model),
            "logical": _amounts_json(self.per_rank),
            "groups": [
                {
                    "layers": list(group.indices),
                    "caches": [
                        {
                            "kind": cache.kind,
                            "format": cache.stored_in(storage).name,
                            "growth": cache.growth.value,
                            "unit_bytes": number_json(
                                cache.unit_bytes(storage, self.scenario.tensor_parallel_size).value
                            ),
                            "bound_tokens": int(cache.bound.value) if cache.bound else None,
                        }
                        for cache in group.caches
                    ],
                }
                for group in self.plan.groups()
            ],
            "difference": [
                {"reason": part.reason.value}
                | {name: number_json(getattr(part, name).value) for name in DIFFERENCE}
                for part in (self.allocated.difference if self.allocated else ())
            ],
            "capacity": {
                figure.name: number_json(figure.value.value)
                for figure in (self.allocated.capacity if self.allocated else ())
            },
            "transfer": {
                figure.name: number_json(figure.value.value)
                for figure in (self.allocated.transfer if self.allocated else ())
            },
            "derivation": [
                {
                    "quantity": line.quantity,
                    "symbols": line.expression.symbols,
                    "numbers": line.expression.numbers,
                    "value": number_json(line.value),
                    "source": line.source,
                }
                for line in self.derivations()
            ],
            "notices": [{"key": key, "values": dict(values)} for key, values in self.notices()],
        }

    def _accepts(self, tp: int) -> bool:
        return all(cache.accepts_tp(tp) for cache in self.plan.caches())

    def _amounts(self, one_rank: Footprint) -> Amounts:
        return one_rank.amounts(self.scenario.context_tokens, self.scenario.num_sequences)


def estimate(scenario: Scenario) -> Estimate:
    """The answers for `scenario`.

    Raises:
        FieldError: numbers that do not go together, or a format that a cache cannot be written in.
        LimitError: 2^53 bytes or more.
    """
    answer = _answer(scenario)
    scenario.check_format(answer.plan)
    # No rank holds more than the whole model: if these are exact, all are.
    largest = max(getattr(answer.whole_model, name).value for name in QUANTITIES)
    if largest >= EXACT_LIMIT:
        raise LimitError("error.limit", value=int(largest), highest=EXACT_LIMIT)
    return answer


def _answer(scenario: Scenario) -> Estimate:
    plan = scenario.plan()
    try:
        return Estimate(scenario=scenario, plan=plan, allocated=allocate(scenario, plan))
    except EngineError as refusal:
        return Estimate(scenario=scenario, plan=plan, refusal=refusal)


def _amounts_json(amounts: Amounts) -> dict[str, object]:
    return {name: number_json(getattr(amounts, name).value) for name in QUANTITIES}
