"""A model as the calculator sees it: which caches each layer holds, and where every number came from."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise

from .caches import Cache

Layer = tuple[Cache, ...]  # the caches of one layer: none, one, or several


@dataclass(frozen=True, kw_only=True)
class LayerGroup:
    """The layers (counted from 0) whose caches are the same."""

    indices: tuple[int, ...]
    caches: Layer


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """An ordered list of layers.

    `architecture` is the model class that the configuration names, None for numbers from sliders and for a
    file that names none; `hybrid_swa` says that the file asks for a pool of window layers.
    `provenance` says for each size which config key it came from, or how it was derived;
    `warnings` are sentences (catalogue key, values) about what was read but not counted;
    `kv_format` and `state_dtype` are the formats that the checkpoint asks for: offered, not applied.
    """

    layers: tuple[Layer, ...]
    architecture: str | None = None
    hybrid_swa: bool = False
    context_hint: int | None = None
    kv_format: str | None = field(default=None, compare=False)
    state_dtype: str | None = field(default=None, compare=False)
    provenance: Mapping[str, str] = field(default_factory=dict, compare=False)
    warnings: tuple[tuple[str, Mapping[str, object]], ...] = field(default=(), compare=False)

    def groups(self) -> tuple[LayerGroup, ...]:
        """Layers with equal caches together, in order of first appearance."""
        return self._groups

    @cached_property
    def _groups(self) -> tuple[LayerGroup, ...]:
        """Sorted out once: what is said of a model asks for its groups, not its layers, again and again."""
        indices: dict[Layer, list[int]] = {}
        for index, layer in enumerate(self.layers):
            indices.setdefault(layer, []).append(index)
        return tuple(LayerGroup(indices=tuple(found), caches=layer) for layer, found in indices.items())

    def caches(self) -> Iterator[Cache]:
        """Every different cache once per layer group that holds it."""
        return (cache for group in self.groups() for cache in group.caches)


def sizes(cache: Cache) -> dict[str, int]:
    """The whole numbers that a cache was made of."""
    return {item.name: getattr(cache, item.name) for item in fields(cache) if item.metadata.get("bounds")}


def ranges(indices: Iterable[int]) -> str:
    """`0-2, 5, 11`: layer numbers as text; equal steps of more than one as `5, 11, ..., 59`."""
    numbers = list(indices)
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) > 3 and len(steps) == 1 and steps != {1}:
        return f"{numbers[0]}, {numbers[1]}, …, {numbers[-1]}"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
