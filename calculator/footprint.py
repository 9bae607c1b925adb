"""What one request costs: the caches of a plan, weighed, at any context."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from .caches import Cache, Growth
from .errors import LimitError
from .explain import Expression, symbol, total
from .formats import Storage
from .model import ModelPlan


@dataclass(frozen=True, kw_only=True)
class Term:
    """One cache of one layer group: `layers` layers, each `unit` bytes for every unit of the cache."""

    cache: Cache
    layers: int
    unit: Expression

    @property
    def per_unit(self) -> Expression:
        """Bytes of one unit in all layers of the group: `L · (R + D_r) · s`."""
        return symbol("L", self.layers) * self.unit

    @property
    def per_token(self) -> Expression:
        """Growth of a linear cache per token: a fraction where tokens share a unit."""
        shared = self.cache.tokens_per_unit
        return self.per_unit if shared == 1 else self.per_unit / symbol("r", shared)

    @property
    def most(self) -> Expression:
        """The most that a bounded or constant cache ever takes."""
        if self.cache.bound is not None:
            return self.per_unit * self.cache.bound
        units = self.cache.units(1)
        return self.per_unit if units == 1 else self.per_unit * symbol("T_enc", units)

    def at(self, tokens: Expression) -> Expression:
        """Bytes of one request of `tokens`, of a linear or bounded cache."""
        name = "b" if self.cache.growth is Growth.LINEAR else "b_w"
        return symbol(name, self.per_unit) * self.cache.units(tokens)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Bytes of one request, by the way they grow."""

    linear: int
    bounded: int
    constant: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.linear + self.bounded + self.constant

    def times(self, sequences: int) -> "Parts":
        """The parts of so many requests."""
        return Parts(
            linear=self.linear * sequences,
            bounded=self.bounded * sequences,
            constant=self.constant * sequences,
        )


@dataclass(frozen=True, kw_only=True)
class Amounts:
    """The four figures, each with its formula.

    `bytes_per_token` is the growth of the linear caches; `bounded_bytes` the most that windows ever take and
    `constant_bytes` the states, both of one request; `total_bytes` is what all requests take at the context.
    """

    bytes_per_token: Expression
    bounded_bytes: Expression
    constant_bytes: Expression
    total_bytes: Expression


EXACT_LIMIT = 2**53  # below this the integers of JSON and JavaScript are exact


def check_exact(parts: Parts) -> Parts:
    """`parts`, if their sum is exact in JSON.

    Raises:
        LimitError: 2^53 bytes or more.
    """
    if parts.total >= EXACT_LIMIT:
        raise LimitError("error.limit", value=parts.total, highest=EXACT_LIMIT)
    return parts


QUANTITIES = ("bytes_per_token", "bounded_bytes", "constant_bytes", "total_bytes")


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """The weighed caches of one request on one rank, without block rounding or padding."""

    terms: tuple[Term, ...]

    def parts(self, context: int, sequences: int = 1) -> Parts:
        """Bytes of `sequences` requests of `context` tokens."""
        linear, bounded, constant = [
            sequences * sum([each * units(context) for each, units in weights]) for weights in self._weights
        ]
        return Parts(linear=linear, bounded=bounded, constant=constant)

    @cached_property
    def _weights(self) -> tuple[list[tuple[int, Callable[[int], int]]], ...]:
        """(bytes of a unit in all layers, units at a context) by growth, made once for many contexts."""
        return tuple(
            [(int(term.layers * term.unit.value), term.cache.units) for term in self._of(growth)]
            for growth in (Growth.LINEAR, Growth.BOUNDED, Growth.CONSTANT)
        )

    def held(self, context: int) -> Parts:
        """Bytes that a request holds while the last of its `context` tokens is decoded."""
        sums = dict.fromkeys(Growth, 0)
        for term in self.terms:
            sums[term.cache.growth] += int(term.layers * term.unit.value) * term.cache.held(context)
        return Parts(linear=sums[Growth.LINEAR], bounded=sums[Growth.BOUNDED], constant=sums[Growth.CONSTANT])

    def amounts(self, context: int, sequences: int) -> Amounts:
        """The four figures for `sequences` requests of `context` tokens."""
        tokens = symbol("T", context)
        rate = total(term.per_token for term in self._of(Growth.LINEAR))
        states = total(term.most for term in self._of(Growth.CONSTANT))
        whole = [term for term in self._of(Growth.LINEAR) if term.cache.tokens_per_unit == 1]
        shared = [term for term in self._of(Growth.LINEAR) if term.cache.tokens_per_unit > 1]
        request = [symbol("b", total(term.per_unit for term in whole)) * tokens] if whole else []
        request += [term.at(tokens) for term in (*shared, *self._of(Growth.BOUNDED))]
        request += [symbol("S", states)] if self._of(Growth.CONSTANT) else []
        one = total(request)
        return Amounts(
            bytes_per_token=rate,
            bounded_bytes=total(term.most for term in self._of(Growth.BOUNDED)),
            constant_bytes=states,
            total_bytes=one if sequences == 1 else symbol("N", sequences) * one,
        )

    def bounds(self) -> tuple[int, ...]:
        """Contexts at which a bounded cache stops growing."""
        return tuple(sorted({int(term.cache.bound.value) for term in self.terms if term.cache.bound}))

    def _of(self, growth: Growth) -> Iterable[Term]:
        return [term for term in self.terms if term.cache.growth is growth]


def footprint(plan: ModelPlan, storage: Storage, tp: int) -> Footprint:
    """The caches of `plan` as one of `tp` ranks stores them in `storage`."""
    return Footprint(
        terms=tuple(
            Term(cache=cache, layers=len(group.indices), unit=cache.unit_bytes(storage, tp))
            for group in plan.groups()
            for cache in group.caches
        )
    )
