"""The tab of one's own model: where each number came from, and the layers as an editor has them."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any

from .. import layer_text, overrides
from ..caches import KINDS, Cache
from ..locales import text
from ..model import LayerGroup, sizes
from .state import OWN_FIELDS, State


@dataclass(frozen=True, kw_only=True)
class Number:
    """One size of one cache: `place` is what an override calls it, `origin` where it came from."""

    place: str
    size: str
    value: int
    origin: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cache of one layer group, with its sizes; `cache` is None for layers that keep nothing."""

    group: LayerGroup
    cache: Cache | None
    numbers: tuple[Number, ...]


def rows(state: State) -> Iterator[Row]:
    """The plan, cache by cache."""
    # A place is one of the plan before its numbers were replaced: two of its groups may be alike since.
    for number, group in enumerate(state.scenario.unreplaced().groups()):
        if not group.caches:
            yield Row(group=group, cache=None, numbers=())
        for position, cache in enumerate(state.answer.plan.layers[group.indices[0]]):
            yield Row(group=group, cache=cache, numbers=tuple(_numbers(state, number, position, cache)))


def _numbers(state: State, group: int, position: int, cache: Cache) -> Iterator[Number]:
    origins = state.answer.plan.provenance
    for size, value in sizes(cache).items():
        place = f"{group}.{position}.{size}"
        origin = origins.get(place) or origins.get(f"{cache.kind}.{size}") or origins.get(size)
        typed = origin is None or origin == overrides.TYPED
        yield Number(
            place=place,
            size=size,
            value=value,
            origin=text(state.language, "own.typed") if typed else str(origin),
        )


def messages(state: State) -> dict[str, str]:
    """What was wrong with what was given, by field."""
    found = state.problems
    return {name: found[name].message(state.language) if name in found else "" for name in OWN_FIELDS}


def editable(state: State) -> list[dict[str, Any]]:
    """The layers for the editor: patterns, each of runs of equal layers, each of caches with their sizes."""
    return [
        {
            "times": times,
            "rows": [
                {
                    "layers": count,
                    "caches": [{"kind": cache.kind, "sizes": sizes(cache)} for cache in layer],
                }
                for count, layer in runs
            ],
        }
        for times, runs in layer_text.blocks(state.answer.plan.layers)
    ]


def kinds() -> dict[str, list[dict[str, Any]]]:
    """The sizes of every kind with their bounds, for the editor; a new kind is among them by itself."""
    return {
        name: [
            {
                "name": item.name,
                "lowest": item.metadata["bounds"][0],
                "highest": item.metadata["bounds"][1],
                "start": item.metadata["bounds"][0] if item.default is MISSING else item.default,
            }
            for item in fields(kind)
        ]
        for name, kind in KINDS.items()
    }
