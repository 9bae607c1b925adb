"""A group of layers that share one block table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ...explain import Expression, symbol, total
from .spec import LayerSpec

Members = tuple[tuple[LayerSpec, tuple[int, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Layers of one block table: their different specs, each with the numbers of its layers.

    A `container` holds layers of one type but different pages (`UniformTypeKVCacheSpecs`). `present` is False
    on a pipeline stage that has none of the layers.
    """

    members: Members
    container: bool = False
    present: bool = True

    @property
    def spec(self) -> LayerSpec:
        """The spec of the first layer, which stands for all of a group that is no container."""
        return self.members[0][0]

    @property
    def num_layers(self) -> int:
        """Layers of this group."""
        return sum(len(layers) for _, layers in self.members) if self.present else 0

    @property
    def page(self) -> Expression:
        """Bytes of one block: of one layer, or of a container over all its layers."""
        if not self.container:
            return self.spec.page
        return total(symbol("L", len(layers)) * symbol("page", spec.page) for spec, layers in self.members)

    @property
    def page_counts(self) -> dict[int, int]:
        """Layers of a container by their page size."""
        counts: dict[int, int] = {}
        for spec, layers in self.members:
            counts[spec.page_size_bytes] = counts.get(spec.page_size_bytes, 0) + len(layers)
        return counts

    def on_stage(self, stage: frozenset[int]) -> "Group":
        """What a pipeline stage with the layers `stage` holds of this group.

        Source: vLLM 0.22.0 `_project_kv_cache_groups_to_worker`.
        """
        kept = tuple(
            (spec, found)
            for spec, layers in self.members
            if (found := tuple(layer for layer in layers if layer in stage))
        )
        return replace(self, members=kept) if kept else replace(self, present=False)


def members(specs: Sequence[LayerSpec], layers: Iterable[int]) -> Members:
    """`layers` by equal specs, in order of first appearance."""
    found: dict[LayerSpec, list[int]] = {}
    for layer in layers:
        found.setdefault(specs[layer], []).append(layer)
    return tuple((spec, tuple(numbers)) for spec, numbers in found.items())
