"""A plan for people and as JSON: what each layer stores, how that grows, and where its numbers are from."""

from collections.abc import Iterator, Mapping

from .caches import Cache
from .errors import LimitError
from .explain import Number
from .footprint import EXACT_LIMIT, QUANTITIES, footprint
from .formats import Storage
from .locales import text
from .model import ModelPlan, ranges, sizes
from .units import exact, human, number_json

SCHEMA = 1
STORAGE = Storage()
FIGURES = QUANTITIES[:3]  # those of one request, whatever its context


def figures(plan: ModelPlan, storage: Storage = STORAGE) -> dict[str, Number]:
    """Bytes of one request in the formats of `storage`, whole model: growth per token, full windows, states.

    Raises:
        LimitError: 2^53 bytes or more.
    """
    amounts = footprint(plan, storage, 1).amounts(1, 1)
    found = {name: getattr(amounts, name).value for name in FIGURES}
    largest = max(found.values())
    if largest >= EXACT_LIMIT:
        raise LimitError("error.limit", value=int(largest), highest=EXACT_LIMIT)
    return found


def as_json(plan: ModelPlan, storage: Storage = STORAGE) -> dict[str, object]:
    """The plan as JSON, schema 1; a fraction is {"numerator", "denominator"}."""
    return {
        "schema": SCHEMA,
        "layers": len(plan.layers),
        "context_hint": plan.context_hint,
        "kv_format": plan.kv_format,
        "state_dtype": plan.state_dtype,
        **{name: number_json(value) for name, value in figures(plan, storage).items()},
        "groups": [
            {
                "layers": list(group.indices),
                "caches": [
                    {
                        "kind": cache.kind,
                        "growth": cache.growth.value,
                        "format": cache.stored_in(storage).name,
                        "sizes": sizes(cache),
                        "unit_bytes": number_json(cache.unit_bytes(storage, 1).value),
                        "tokens_per_unit": cache.tokens_per_unit,
                        "bound_tokens": number_json(cache.bound.value) if cache.bound else None,
                    }
                    for cache in group.caches
                ],
            }
            for group in plan.groups()
        ],
        "architecture": plan.architecture,
        "provenance": dict(plan.provenance),
        "warnings": [{"key": key, "values": dict(values)} for key, values in plan.warnings],
    }


def report(plan: ModelPlan, language: str, storage: Storage = STORAGE) -> Iterator[str]:
    """The same as lines of text."""
    for name, value in figures(plan, storage).items():
        amount = value if not isinstance(value, float) else int(value)
        yield f"{text(language, f'quantity.{name}')}: {exact(amount)} B = {human(amount)}"
    for group in plan.groups():
        numbers = f"{ranges(group.indices)} ({len(group.indices)})"
        if not group.caches:
            yield f"{text(language, 'config.layers')} {numbers}: {text(language, 'config.nothing')}"
        for cache in group.caches:
            yield f"{text(language, 'config.layers')} {numbers}: {_line(cache, language, storage)}"
    for size, origin in plan.provenance.items():
        yield f"  {size}: {origin}"
    if plan.state_dtype:
        yield text(language, "config.state_dtype", value=plan.state_dtype)
    for key, values in plan.warnings:
        yield text(language, key, **values)


def _line(cache: Cache, language: str, storage: Storage) -> str:
    unit = cache.unit_bytes(storage, 1)
    made = ", ".join(f"{name} {value:,}" for name, value in sizes(cache).items())
    growth = text(language, f"growth.{cache.growth.value}")
    return f"{text(language, f'kind.{cache.kind}')}; {growth}; {unit.symbols} = {unit.numbers} B; {made}"


def families_table(rows: Mapping[str, str], known: int) -> Iterator[str]:
    """The README's table: the model types with rules of their own; the others of `known` have none."""
    alike: dict[str, list[str]] = {}
    for name, differs in rows.items():
        alike.setdefault(differs, []).append(f"`{name}`")
    yield f"{known - len(rows)} of {known} known model types need no rule of their own. The others:"
    yield ""
    yield "| model types | what differs from the general rules |"
    yield "|---|---|"
    for differs, names in alike.items():
        yield f"| {', '.join(names)} | {differs} |"
