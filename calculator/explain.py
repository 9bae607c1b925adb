"""Numbers that remember how they were made.

A formula is written once, with the operators of Python, and gives three things that therefore cannot
differ: its value, its text in symbols (`H · (d + d_v) · s`) and its text in numbers (`8 · (128 + 128) · 2`).
How the text looks is a `Notation`; others than plain text are in notation.py.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import reduce
from operator import add, mul
from typing import TypeAlias, TypeVar

Number: TypeAlias = int | Fraction | float  # float only where an engine computes in doubles
Operand: TypeAlias = "Number | Expression"
Counted = TypeVar("Counted", int, "Expression")


class Sign(Enum):
    """An operation: its name, how tightly it binds, how tightly its parts must bind."""

    SUM = ("sum", 1, (1, 1))
    DIFFERENCE = ("difference", 1, (1, 2))
    PRODUCT = ("product", 2, (2, 2))
    QUOTIENT = ("quotient", 2, (2, 3))
    FLOOR = ("floor", 3, (2, 3))
    CEILING = ("ceiling", 3, (2, 3))
    WHOLE = ("whole", 3, (1,))
    LEAST = ("least", 3, (1, 1))
    MOST = ("most", 3, (1, 1))

    def __init__(self, label: str, strength: int, needed: tuple[int, ...]) -> None:
        self.label = label
        self.strength = strength
        self.needed = needed


@dataclass(frozen=True, kw_only=True)
class Notation:
    """A way to write expressions down: what surrounds the parts of a sign, and what names and numbers become.

    The parts of the signs in `bars` stand above and below a line and so need no parentheses.
    """

    shapes: Mapping[Sign, str]
    parentheses: str
    name: Callable[[str], str]
    number: Callable[[str], str]
    bars: frozenset[Sign] = frozenset()


TEXT = Notation(
    shapes={
        Sign.SUM: "{} + {}",
        Sign.DIFFERENCE: "{} − {}",
        Sign.PRODUCT: "{} · {}",
        Sign.QUOTIENT: "{} / {}",
        Sign.FLOOR: "⌊{} / {}⌋",
        Sign.CEILING: "⌈{} / {}⌉",
        Sign.WHOLE: "⌊{}⌋",
        Sign.LEAST: "min({}, {})",
        Sign.MOST: "max({}, {})",
    },
    parentheses="({})",
    name=str,
    number=str,
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A value as the tree of its own computation: a number, a named number, or a sign over two parts."""

    value: Number
    name: str = ""
    sign: Sign | None = None
    parts: tuple["Expression", ...] = ()

    def __add__(self, other: Operand) -> "Expression":
        right = lift(other)
        return Expression(self.value + right.value, sign=Sign.SUM, parts=(self, right))

    def __radd__(self, other: Operand) -> "Expression":
        return lift(other) + self

    def __sub__(self, other: Operand) -> "Expression":
        right = lift(other)
        return Expression(self.value - right.value, sign=Sign.DIFFERENCE, parts=(self, right))

    def __mul__(self, other: Operand) -> "Expression":
        right = lift(other)
        return Expression(self.value * right.value, sign=Sign.PRODUCT, parts=(self, right))

    def __rmul__(self, other: Operand) -> "Expression":
        return lift(other) * self

    def __truediv__(self, other: Operand) -> "Expression":
        right = lift(other)
        return Expression(Fraction(self.value) / right.value, sign=Sign.QUOTIENT, parts=(self, right))

    def __floordiv__(self, other: Operand) -> "Expression":
        right = lift(other)
        return Expression(int(self.value // right.value), sign=Sign.FLOOR, parts=(self, right))

    @property
    def symbols(self) -> str:
        """The formula, `H · (d + d_v) · s`."""
        return self.written(symbolic=True)

    @property
    def numbers(self) -> str:
        """The formula with its numbers put in, `8 · (128 + 128) · 2`."""
        return self.written(symbolic=False)

    def written(self, symbolic: bool, notation: Notation = TEXT) -> str:
        """The formula, `symbolic` or in numbers, with no more parentheses than it needs."""
        if self.sign is None:
            if symbolic and self.name:
                return notation.name(self.name)
            return notation.number(plain(self.value))
        bar = self.sign in notation.bars
        texts = (
            text
            if bar or part.sign is None or part.sign.strength >= needed
            else notation.parentheses.format(text)
            for part, needed in zip(self.parts, self.sign.needed, strict=True)
            for text in [part.written(symbolic, notation)]
        )
        return notation.shapes[self.sign].format(*texts)


def symbol(name: str, value: Operand) -> Expression:
    """`value` under its name; how `value` itself was made is left to a derivation of its own."""
    return Expression(lift(value).value, name=name)


def lift(operand: Operand) -> Expression:
    """A bare number as an expression."""
    return operand if isinstance(operand, Expression) else Expression(operand)


def least(a: Counted, b: Operand) -> Counted:
    """The smaller; of two integers an integer, so that a curve of many points stays cheap."""
    if isinstance(a, Expression):
        right = lift(b)
        return Expression(min(a.value, right.value), sign=Sign.LEAST, parts=(a, right))
    return min(a, int(lift(b).value))


def whole(a: Operand) -> Expression:
    """`a` without its fraction, which an engine cuts off."""
    part = lift(a)
    return Expression(int(part.value), sign=Sign.WHOLE, parts=(part,))


def double(a: Operand) -> Expression:
    """`a` as an IEEE double, where an engine computes in doubles."""
    part = lift(a)
    return replace(part, value=float(part.value))


def ceiling(a: Operand, b: Operand) -> Expression:
    """A / b, rounded up."""
    left, right = lift(a), lift(b)
    return Expression(-(-left.value // right.value), sign=Sign.CEILING, parts=(left, right))


def round_up(a: Operand, multiple: Operand) -> Expression:
    """`a` rounded up to a whole multiple."""
    return ceiling(a, multiple) * multiple


def product(factors: Iterable[Expression]) -> Expression:
    """The product of `factors`; no factors are 1."""
    factors = list(factors)
    return reduce(mul, factors) if factors else lift(1)


def most(a: Operand, b: Operand) -> Expression:
    """The larger."""
    left, right = lift(a), lift(b)
    return Expression(max(left.value, right.value), sign=Sign.MOST, parts=(left, right))


def constant(value: int, like: Counted) -> Counted:
    """`value` in the type of `like`."""
    return lift(value) if isinstance(like, Expression) else value


def total(terms: Iterable[Expression]) -> Expression:
    """The sum of `terms`; no terms are 0."""
    terms = list(terms)
    return reduce(add, terms) if terms else lift(0)


def plain(number: Number) -> str:
    """Thousands separators; a fraction as a / b."""
    if isinstance(number, float):
        return f"{number:,}"
    if number.denominator == 1:
        return f"{int(number):,}"
    return f"{number.numerator:,}/{number.denominator:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """One line of "how?": which quantity, by which formula, from whose source."""

    quantity: str
    expression: Expression
    source: str

    @property
    def value(self) -> Number:
        """What the line comes to: the value of its expression."""
        return self.expression.value
