"""A reader for the `numbers` text of a formula that shares nothing with the code that wrote it."""

import re
from fractions import Fraction
from math import ceil, floor

_TOKEN = re.compile(r"\s*(\d{1,3}(?:,\d{3})*(?:/\d{1,3}(?:,\d{3})*)?|min|max|[()⌊⌋⌈⌉+−·/,])")

ROUNDED = {"⌊": ("⌋", floor), "⌈": ("⌉", ceil)}


def evaluate(formula: str) -> Fraction:
    """`8 · (128 + 128) · 2` -> 4096."""
    tokens = _tokens(formula)
    value = _sum(tokens)
    if tokens:
        raise ValueError(f"left over in {formula!r}: {tokens}")
    return value


def _tokens(formula: str) -> list[str]:
    found, position = [], 0
    while position < len(formula):
        match = _TOKEN.match(formula, position)
        if match is None:
            raise ValueError(f"cannot read {formula[position:]!r}")
        found.append(match[1])
        position = match.end()
    return found


def _sum(tokens: list[str]) -> Fraction:
    value = _product(tokens)
    while tokens and tokens[0] in "+−":
        sign = 1 if tokens.pop(0) == "+" else -1
        value += sign * _product(tokens)
    return value


def _product(tokens: list[str]) -> Fraction:
    value = _atom(tokens)
    while tokens and tokens[0] in "·/":
        if tokens.pop(0) == "·":
            value *= _atom(tokens)
        else:
            value /= _atom(tokens)
    return value


def _atom(tokens: list[str]) -> Fraction:
    token = tokens.pop(0)
    if token == "(":
        value = _sum(tokens)
        _expect(tokens, ")")
    elif token in ROUNDED:
        closing, rounded = ROUNDED[token]
        value = Fraction(rounded(_sum(tokens)))
        _expect(tokens, closing)
    elif token in ("min", "max"):
        _expect(tokens, "(")
        first = _sum(tokens)
        _expect(tokens, ",")
        value = (min if token == "min" else max)(first, _sum(tokens))
        _expect(tokens, ")")
    else:
        value = Fraction(token.replace(",", ""))
    return value


def _expect(tokens: list[str], wanted: str) -> None:
    found = tokens.pop(0)
    if found != wanted:
        raise ValueError(f"{found!r} stands where {wanted!r} should")
