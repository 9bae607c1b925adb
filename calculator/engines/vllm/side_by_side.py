"""Layers whose pages of several sizes lie side by side in a block: nothing is padded to a common size.

Source: vLLM 0.33.0 `v1/core/kv_cache_planning.py`, `_get_packed_kv_cache_groups`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...errors import EngineError
from .deepseek_v4 import least_padding
from .group import Group, members
from .spec import LayerSpec, SpecType
from .uniform import one_type


@dataclass(frozen=True)
class _Bucket:
    """Layers of one type, in model order."""

    specs: Sequence[LayerSpec]
    layers: tuple[int, ...]

    @cached_property
    def by_page(self) -> dict[int, list[int]]:
        """Layers by their page size, in order of first appearance."""
        found: dict[int, list[int]] = {}
        for layer in self.layers:
            found.setdefault(self.specs[layer].page_size_bytes, []).append(layer)
        return found

    @property
    def repeats(self) -> int:
        """The most layers of one page size."""
        return max(map(len, self.by_page.values()))

    @property
    def balanced(self) -> bool:
        """Whether every page size occurs equally often: the layers repeat a pattern."""
        return len({len(layers) for layers in self.by_page.values()}) == 1

    def widest(self, parts: int) -> int:
        """Bytes of the largest of so many parts."""
        return sum(-(-len(layers) // parts) * page for page, layers in self.by_page.items())

    def states(self, *, windows: bool) -> bool:
        """Whether it holds states or rings, which may go down to one layer per group; or `windows`."""
        kind = self.specs[self.layers[0]].type
        kept = {SpecType.MAMBA, SpecType.RING}
        return kind in (kept | {SpecType.SLIDING_WINDOW, SpecType.SLIDING_WINDOW_MLA} if windows else kept)

    def split(self, parts: int) -> list[Group]:
        """Every `parts`-th repeat of the pattern together."""
        if parts == 1:
            return [Group(members=members(self.specs, self.layers), container=True)]
        if not self.balanced:
            raise EngineError("vllm.pattern", sizes=", ".join(map(str, sorted(self.by_page))))
        repeats = list(zip(*self.by_page.values(), strict=True))
        return [
            Group(
                members=members(self.specs, [layer for repeat in repeats[i::parts] for layer in repeat]),
                container=True,
            )
            for i in range(parts)
        ]


def group_layers(specs: Sequence[LayerSpec]) -> tuple[Group, ...]:
    """The groups of all layers; hidden states each alone.

    Raises:
        EngineError: layers to be split whose page sizes do not repeat a pattern.
    """
    hidden = [layer for layer, spec in enumerate(specs) if spec.type is SpecType.HIDDEN_STATE]
    buckets = _buckets(specs, [layer for layer in range(len(specs)) if layer not in set(hidden)])
    mixed = max((b.repeats for b in buckets if b.balanced and len(b.by_page) > 1), default=0)
    repeats = [bucket.repeats for bucket in buckets if bucket.balanced]
    per_group = least_padding(repeats, mixed) if mixed else None

    def parts(bucket: _Bucket) -> int:
        return -(-bucket.repeats // per_group) if per_group and bucket.balanced else 1

    windows = per_group is None
    anchor = max(
        bucket.widest(len(bucket.layers) if bucket.states(windows=windows) else parts(bucket))
        for bucket in buckets
    )
    groups: list[Group] = []
    for bucket in buckets:
        count = parts(bucket)
        if bucket.states(windows=windows):
            page = specs[bucket.layers[0]].page_size_bytes
            count = max(count, -(-len(bucket.layers) // max(1, anchor // page)))
        groups += bucket.split(count)
    return (*groups, *(Group(members=((specs[layer], (layer,)),)) for layer in hidden))


def _buckets(specs: Sequence[LayerSpec], layers: Sequence[int]) -> list[_Bucket]:
    """Each layer in the first bucket with which it is still of one type."""
    found: list[list[int]] = []
    for layer in layers:
        for bucket in found:
            # Being of one type is being alike, so one layer stands for the bucket.
            if one_type([specs[bucket[0]], specs[layer]]):
                bucket.append(layer)
                break
        else:
            found.append([layer])
    return [_Bucket(specs, tuple(bucket)) for bucket in found]
