"""A model as a handful of numbers: what the sliders set, and what a catalogue model looks like on them."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from .caches import (
    MLA,
    Cache,
    ChunkedLocal,
    FullAttention,
    GatedDeltaNet,
    IndexKey,
    Mamba2,
    SlidingWindow,
    State,
)
from .errors import FieldError
from .model import Layer, ModelPlan

MAX_LAYERS = 1024


class Architecture(StrEnum):
    """Which caches the layers hold."""

    FULL = "full"
    MLA = "mla"
    WINDOW = "window"  # sliding-window or chunked layers among full-attention layers
    STATE = "state"  # recurrent layers among full-attention layers


class Interleave(StrEnum):
    """Where the full-attention layers of a hybrid stand."""

    EVERY = "every"  # with L layers and g of them full: layers p, 2p, … counted from 1, p = floor(L / g)
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The numbers of every architecture at once, so that changing the architecture loses none of them."""

    architecture: Architecture = Architecture.MLA
    num_layers: int = 61
    num_kv_heads: int = 8
    head_size: int = 128
    head_size_v: int = 128
    kv_lora_rank: int = 512
    qk_rope_head_dim: int = 64
    index_head_dim: int = 0  # 0: no indexer
    window_kind: str = SlidingWindow.kind
    sliding_window: int = 1024
    num_global_layers: int = 8
    interleave: Interleave = Interleave.EVERY
    state_kind: str = GatedDeltaNet.kind
    conv_kernel: int = 4
    linear_num_key_heads: int = 16
    linear_num_value_heads: int = 64
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    mamba_num_heads: int = 128
    mamba_head_dim: int = 64
    state_size: int = 128
    n_groups: int = 8

    @property
    def latent_width(self) -> int:
        """Elements of one latent with its rope key: 512 + 64 = 576."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    def used(self) -> frozenset[str]:
        """The fields that this architecture reads; the others wait for another architecture."""
        names = {"architecture", "num_layers"}
        if self.architecture is Architecture.MLA:
            return frozenset(names | {"kv_lora_rank", "qk_rope_head_dim", "index_head_dim"})
        names |= {"num_kv_heads", "head_size", "head_size_v"}
        if self.architecture is not Architecture.FULL:
            names |= {"num_global_layers", "interleave"}
        if self.architecture is Architecture.WINDOW:
            names |= {"window_kind", "sliding_window"}
        if self.architecture is Architecture.STATE:
            names |= {"state_kind", *(item.name for item in fields(_STATE_KINDS[self.state_kind]))}
        return frozenset(names)

    def plan(self) -> ModelPlan:
        """The layers. Raises FieldError for a number outside the bounds of its cache kind."""
        if not 0 <= self.num_global_layers <= self.num_layers and "num_global_layers" in self.used():
            raise FieldError(
                "error.range",
                field="num_global_layers",
                value=self.num_global_layers,
                lowest=0,
                highest=self.num_layers,
            )
        if self.architecture is Architecture.MLA:
            return ModelPlan(layers=(self._latent(),) * self.num_layers)
        full: Layer = (self._attention(FullAttention),)
        if self.architecture is Architecture.FULL:
            return ModelPlan(layers=(full,) * self.num_layers)
        other: Layer = (self._window() if self.architecture is Architecture.WINDOW else self._state(),)
        placed = self.global_layers()
        return ModelPlan(layers=tuple(full if i in placed else other for i in range(self.num_layers)))

    def global_layers(self) -> frozenset[int]:
        """The full-attention layers of a hybrid, counted from 0."""
        layers, full = self.num_layers, self.num_global_layers
        if self.interleave is Interleave.FIRST:
            return frozenset(range(full))
        if self.interleave is Interleave.LAST:
            return frozenset(range(layers - full, layers))
        return frozenset(turn * (layers // full) - 1 for turn in range(1, full + 1))

    def _latent(self) -> Layer:
        latent = MLA(kv_lora_rank=self.kv_lora_rank, qk_rope_head_dim=self.qk_rope_head_dim)
        if self.index_head_dim == 0:
            return (latent,)
        return (latent, IndexKey(index_head_dim=self.index_head_dim))

    def _attention(self, kind: type[FullAttention], **window: int) -> FullAttention:
        return kind(
            num_kv_heads=self.num_kv_heads,
            head_size=self.head_size,
            head_size_v=self.head_size_v,
            **window,
        )

    def _window(self) -> FullAttention:
        if self.window_kind == ChunkedLocal.kind:
            return self._attention(ChunkedLocal, attention_chunk_size=self.sliding_window)
        return self._attention(SlidingWindow, sliding_window=self.sliding_window)

    def _state(self) -> State:
        kind = _STATE_KINDS[self.state_kind]
        return kind(**{item.name: getattr(self, item.name) for item in fields(kind)})


_ON_SLIDERS = (MLA, IndexKey, FullAttention, SlidingWindow, ChunkedLocal, GatedDeltaNet, Mamba2)
_STATE_KINDS: dict[str, type[State]] = {kind.kind: kind for kind in (GatedDeltaNet, Mamba2)}


def shape_of(plan: ModelPlan) -> Shape | None:
    """`plan` on the sliders, or None where they cannot say it: `shape_of(p).plan().layers == p.layers`."""
    groups = plan.groups()
    if len(groups) > 2 or any(len(group.caches) > 2 or not group.caches for group in groups):
        return None
    caches = list(plan.caches())
    if any(type(cache) not in _ON_SLIDERS for cache in caches):
        return None
    shape = replace(_numbers(caches), num_layers=len(plan.layers))
    for full in _interleavings(plan, shape):
        if full.plan().layers == plan.layers:
            return full
    return None


def _numbers(caches: Iterable[Cache]) -> Shape:
    """The numbers of `caches` on a shape whose architecture suits them."""
    shape = Shape(architecture=Architecture.FULL)
    for cache in caches:
        numbers = {item.name: getattr(cache, item.name) for item in fields(cache)}
        match cache:
            case MLA() | IndexKey():
                numbers["architecture"] = Architecture.MLA
            case ChunkedLocal():
                numbers["sliding_window"] = numbers.pop("attention_chunk_size")
                numbers |= {"architecture": Architecture.WINDOW, "window_kind": cache.kind}
            case SlidingWindow():
                numbers |= {"architecture": Architecture.WINDOW, "window_kind": cache.kind}
            case State():
                numbers |= {"architecture": Architecture.STATE, "state_kind": cache.kind}
        shape = replace(shape, **numbers)
    return shape


def _interleavings(plan: ModelPlan, shape: Shape) -> Iterable[Shape]:
    """`shape` with each placing of as many full-attention layers as `plan` has, or itself without any."""
    if "interleave" not in shape.used():
        yield shape
        return
    full = sum(type(layer[0]) is FullAttention for layer in plan.layers)
    for interleave in Interleave:
        yield replace(shape, num_global_layers=full, interleave=interleave)
