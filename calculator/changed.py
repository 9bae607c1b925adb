"""What the newest version of an engine makes otherwise of a scenario, and which of its rules do it.

The rules of the older version are replaced by the newer ones one after another; a rule that moves a figure on
the way, or refuses, is one that matters here. The figures before and after all of them are those of the two
versions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .allocation import Allocated, Figure, Rules, allocate_under, rules_of
from .errors import CalculatorError, EngineError, FieldError
from .explain import Expression
from .footprint import QUANTITIES
from .locales import text
from .model import ModelPlan
from .scenario import Scenario
from .serving import LOGICAL, SGLANG, VERSIONS, VLLM
from .units import exact, number_json

# Which fields of `Rules` change together, in the order in which they are replaced. The words are under
# change.<name> (what it is called, .old, .new, .why) in the catalogues.
STEPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    VLLM: {
        "steps": ("batches_in_flight",),
        "null_block": ("blocks_beside_requests",),
        "state_reuse": ("states_reused", "mamba_modes"),
        "state_shapes": ("drafted_states", "kda_convolutions"),
        "latent_block": ("least_latent_block",),
        "shards": ("context_shards", "states_beside_shards"),
        "layout": (
            *("packed", "without_value_size", "promote", "group_mixed"),
            *("block_bytes", "divided_by", "weigh"),
        ),
        "formats": ("formats_to_come", "kinds_to_come"),
    },
    SGLANG: {
        "spare_slot": ("states_of_stage", "spare_state_slot"),
        "raw_rows": ("plain_latent_backends",),
        "sparse_rows": ("sparse_price",),
        "own_indexers": ("index_as_allocated",),
        "v4_pages": ("v4_paged",),
        "v4_limit": ("v4_requests",),
        "limit": ("limited", "drafter_requests"),
        "drafters": ("drafters_priced",),
        "window_floor": ("window_checked", "window_capped"),
        "window_classes": ("hybrid_swa_architectures", "own_window_shapes", "unsplit_with_host_cache"),
        "recipes": ("formats", "kinds_to_come"),
    },
}
# Of these no figure of a scenario depends: they are of prefix hits, of host pools and of their transfers.
BESIDE = frozenset(
    {
        *("name", "planning", "fine_grained_hits", "host_page_bytes", "shared_host_copy"),
        *("host_value_width", "host_may_be_smaller"),
    }
)

Outcome = Allocated | CalculatorError


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A figure by the key of its words; None where the engine refuses or has no such figure."""

    label: str
    unit: str
    old: Expression | None
    new: Expression | None

    def as_json(self) -> dict[str, object]:
        """Both values."""
        values = {"old": self.old, "new": self.new}
        return {
            "figure": self.label,
            "unit": self.unit,
            **{name: None if value is None else number_json(value.value) for name, value in values.items()},
        }


@dataclass(frozen=True, kw_only=True)
class Change:
    """Rules that change together, and what they change of what the rules before them left."""

    names: tuple[str, ...]
    effects: tuple[Effect, ...]
    refusal: CalculatorError | None  # for which the engine refuses from here on


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One engine in its last two versions."""

    engine: str
    old: str
    new: str
    before: Outcome
    after: Outcome
    changes: tuple[Change, ...]

    @property
    def figures(self) -> tuple[Effect, ...]:
        """Every figure of both versions, side by side."""
        return tuple(_pairs(self.before, self.after))

    def as_json(self) -> dict[str, object]:
        """The versions with their refusals, every figure, and the changes that matter."""
        return {
            "engine": self.engine,
            "versions": {"old": self.old, "new": self.new},
            "refused": {"old": _reason(self.before), "new": _reason(self.after)},
            "figures": [pair.as_json() for pair in self.figures],
            "changes": [
                {
                    "rules": list(change.names),
                    "refused": _reason(change.refusal),
                    "effects": [effect.as_json() for effect in change.effects],
                }
                for change in self.changes
            ],
        }

    def report(self, language: str) -> Iterator[str]:
        """The same as lines of text."""
        engine = text(language, f"option.engine.{self.engine}")
        yield text(language, "changed.title", engine=engine, old=self.old, new=self.new)
        for version, outcome in ((self.old, self.before), (self.new, self.after)):
            if isinstance(outcome, CalculatorError):
                title = f"{engine} {version}"
                yield "  " + text(language, "view.refused", engine=title, reason=outcome.message(language))
        yield from (f"  {_line(pair, language)}" for pair in self.figures)
        if not self.changes:
            yield "  " + text(language, "changed.nothing")
        for change in self.changes:
            for name in change.names:
                yield text(language, f"change.{name}")
                for side, version in (("old", self.old), ("new", self.new)):
                    yield f"  {version}: {text(language, f'change.{name}.{side}')}"
                yield "  " + text(language, f"change.{name}.why")
            if change.refusal:
                yield "  " + change.refusal.message(language)
            yield from (f"  {_line(effect, language)}" for effect in change.effects)


def comparisons(scenario: Scenario, plan: ModelPlan) -> tuple[Comparison, ...]:
    """The scenario's engine, or of logical bytes every engine, in its last two versions."""
    chosen = scenario.serving.engine
    return tuple(_compared(scenario, plan, engine) for engine in STEPS if chosen in (engine, LOGICAL))


def _compared(scenario: Scenario, plan: ModelPlan, engine: str) -> Comparison:
    old, new = VERSIONS[engine][-2:]
    rules, newer = rules_of(engine, old), rules_of(engine, new)
    before, after = _outcome(scenario, plan, rules), _outcome(scenario, plan, newer)
    found: list[Change] = []
    last: Outcome = before
    pending: tuple[str, ...] = ()
    for name, fields in STEPS[engine].items():
        moved = {key: getattr(newer, key) for key in fields if getattr(newer, key) != getattr(rules, key)}
        rules = replace(rules, name=new, **moved)
        outcome = _outcome(scenario, plan, rules)
        pending = (*pending, name) if moved else pending
        if _half_way(outcome, after):
            continue
        effects = tuple(pair for pair in _pairs(last, outcome) if _value(pair.old) != _value(pair.new))
        refusal = outcome if isinstance(outcome, CalculatorError) else None
        if effects or _key(last) != _key(refusal):
            found.append(Change(names=pending, effects=effects, refusal=refusal))
        last, pending = outcome, ()
    return Comparison(engine=engine, old=old, new=new, before=before, after=after, changes=tuple(found))


def _half_way(outcome: Outcome, after: Outcome) -> bool:
    """Whether this is refused only because the rules that belong to it are still the old ones."""
    return _key(outcome) not in (None, _key(after))


def _outcome(scenario: Scenario, plan: ModelPlan, rules: Rules) -> Outcome:
    try:
        return allocate_under(scenario, plan, rules)
    except (EngineError, FieldError) as refusal:
        return refusal


def _pairs(before: Outcome, after: Outcome) -> Iterator[Effect]:
    old, new = _figures(before), _figures(after)
    for label, figure in (old | new).items():
        was, now = old.get(label), new.get(label)
        yield Effect(
            label=label,
            unit=figure.unit,
            old=None if was is None else was.value,
            new=None if now is None else now.value,
        )


def _figures(outcome: Outcome) -> dict[str, Figure]:
    """Every figure by the key of its words."""
    if isinstance(outcome, CalculatorError):
        return {}
    amounts = (Figure(name=name, unit="bytes", value=getattr(outcome.per_rank, name)) for name in QUANTITIES)
    return {
        **{f"quantity.{figure.name}": figure for figure in amounts},
        **{f"figure.{figure.name}": figure for figure in (*outcome.capacity, *outcome.transfer)},
    }


def _value(made: Expression | None) -> object:
    return None if made is None else made.value


def _reason(outcome: Outcome | None) -> str | None:
    return str(outcome) if isinstance(outcome, CalculatorError) else None


def _key(outcome: Outcome | None) -> str | None:
    return outcome.key if isinstance(outcome, CalculatorError) else None


def _line(pair: Effect, language: str) -> str:
    shown = ("–" if value is None else exact(value.value) for value in (pair.old, pair.new))
    return f"{text(language, pair.label)}: {' → '.join(shown)}"
