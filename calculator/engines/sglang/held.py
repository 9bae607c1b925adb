"""The caches of a plan as SGLang's pools know them, and which pool class they get.

Source: SGLang 0.5.13 `model_executor/model_runner_kv_cache_mixin.py` _init_pools, `configs/model_config.py`.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from ...caches import (
    MLA,
    Cache,
    ChunkedLocal,
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    EncoderOnlyAttention,
    FullAttention,
    IndexKey,
    RingBuffer,
    SlidingWindow,
    SlidingWindowMLA,
    SparseIndexKey,
    State,
)
from ...errors import EngineError
from ...model import ModelPlan

Kind = TypeVar("Kind", bound=Cache)


@dataclass(frozen=True, kw_only=True)
class Part(Generic[Kind]):
    """One cache and the layers, in order, that hold it."""

    cache: Kind
    indices: tuple[int, ...]

    def layers(self, first: int, end: int) -> int:
        """How many of its layers are in [first, end)."""
        return bisect_left(self.indices, end) - bisect_left(self.indices, first)


@dataclass(frozen=True, kw_only=True)
class Held:
    """What a plan holds: at most one shape of each kind, but states of any number of shapes."""

    full: Part[FullAttention] | None = None
    window: Part[FullAttention] | None = None
    latent: Part[MLA] | None = None
    index: Part[IndexKey] | None = None
    v4_window: Part[SlidingWindowMLA] | None = None
    v4_latents: tuple[Part[CompressedLatent], ...] = ()
    v4_indexes: tuple[Part[CompressedIndexKey], ...] = ()
    sparse_index: Part[SparseIndexKey] | None = None
    states: tuple[Part[State], ...] = ()


class Family(Enum):
    """Plans by the pool they get."""

    V4 = "DeepSeek-V4"
    SPARSE = "DSA"
    LATENT = "MLA"
    WINDOW = "SWA"
    SPARSE_ATTENTION = "sparse MHA"
    HYBRID = "hybrid linear"
    ATTENTION = "MHA"


def read(plan: ModelPlan, *, window_pool: bool) -> Held:
    """Sort the caches of `plan`; without a window pool, window layers keep all tokens like full ones.

    Raises:
        EngineError: a kind without a pool, or two shapes where a pool has one.
    """
    found: dict[str, dict[Cache, list[int]]] = {}
    for group in plan.groups():
        for cache in group.caches:
            slot = _slot(cache, window_pool=window_pool)
            shape = _shape(cache) if slot in ("full", "window") else cache
            found.setdefault(slot, {}).setdefault(shape, []).extend(group.indices)
    found.pop("v4_state", None)  # their sizes follow from the latents
    # Kinds of which a plan may hold several shapes.
    many = {slot: _parts(found.pop(slot, {})) for slot in ("states", "v4_latents", "v4_indexes")}
    for shapes in found.values():
        if len(shapes) > 1:
            raise EngineError("sglang.shapes", kind=next(iter(shapes)).kind, count=len(shapes))
    single = {slot: _parts(shapes)[0] for slot, shapes in found.items()}
    return Held(**single, **many)  # type: ignore[arg-type]  # the slots are the fields


def _parts(shapes: dict[Cache, list[int]]) -> tuple[Part[Cache], ...]:
    return tuple(Part(cache=cache, indices=tuple(sorted(indices))) for cache, indices in shapes.items())


def _slot(cache: Cache, *, window_pool: bool) -> str:
    if isinstance(cache, SlidingWindow | ChunkedLocal):
        return "window" if window_pool else "full"
    slots: dict[type[Cache], str] = {
        FullAttention: "full",
        EncoderOnlyAttention: "full",
        MLA: "latent",
        IndexKey: "index",
        SlidingWindowMLA: "v4_window",
        CompressedLatent: "v4_latents",
        CompressedIndexKey: "v4_indexes",
        CompressorState: "v4_state",
        RingBuffer: "v4_state",
        SparseIndexKey: "sparse_index",
    }
    if type(cache) in slots:
        return slots[type(cache)]
    if isinstance(cache, State):
        return "states"
    raise EngineError("sglang.kind", kind=cache.kind)


def _shape(cache: Cache) -> Cache:
    """Heads and widths alone: a pool does not ask how long a window is."""
    assert isinstance(cache, FullAttention)
    return FullAttention(
        num_kv_heads=cache.num_kv_heads, head_size=cache.head_size, head_size_v=cache.head_size_v
    )


def family(held: Held) -> Family:
    """The pool that the engine picks, in its order.

    Raises:
        EngineError: kinds that no pool holds together, or nothing that grows with the context.
    """
    present = frozenset(
        name
        for name in ("full", "window", "latent", "index", "sparse_index", "v4_window", "states")
        if getattr(held, name)
    )
    for match, wanted in _FAMILIES:
        if present == wanted:
            return match
    raise EngineError("sglang.mixture", kinds=", ".join(sorted(present)) or "none")


def _sets(*families: tuple[Family, Iterable[str]]) -> tuple[tuple[Family, frozenset[str]], ...]:
    return tuple((match, frozenset(kinds)) for match, kinds in families)


_FAMILIES = _sets(
    (Family.V4, ("v4_window",)),
    (Family.SPARSE, ("latent", "index")),
    (Family.LATENT, ("latent",)),
    (Family.WINDOW, ("full", "window")),
    (Family.WINDOW, ("window",)),
    (Family.SPARSE_ATTENTION, ("full", "sparse_index")),
    (Family.HYBRID, ("full", "states")),
    (Family.HYBRID, ("latent", "states")),
    (Family.ATTENTION, ("full",)),
)
