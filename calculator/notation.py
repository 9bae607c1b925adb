"""Formulas as MathML and LaTeX: the tree of an `Expression`, written by the rules of its plain text."""

from html import escape

from .explain import Expression, Notation, Sign

_BARS = frozenset({Sign.QUOTIENT, Sign.FLOOR, Sign.CEILING})
_FRACTION = "<mfrac><mrow>{}</mrow><mrow>{}</mrow></mfrac>"


def mathml(expression: Expression, *, symbolic: bool) -> str:
    """One `<mrow>`, in symbols or with the numbers put in; every text in it is escaped."""
    return f"<mrow>{expression.written(symbolic, MATHML)}</mrow>"


def latex(expression: Expression, *, symbolic: bool) -> str:
    r"""Mathematics without its delimiters: `H \cdot \left(d + d_{v}\right) \cdot s`."""
    return expression.written(symbolic, LATEX)


def _indexed(name: str) -> list[str]:
    """`d_v` is d with the index v; a longer name, such as a setting of an engine, is one word."""
    return name.split("_") if name.count("_") == 1 else [name]


def _mathml_name(name: str) -> str:
    parts = [f"<mi>{escape(part)}</mi>" for part in _indexed(name)]
    return parts[0] if len(parts) == 1 else f"<msub>{''.join(parts)}</msub>"


def _latex_name(name: str) -> str:
    words = [part.replace("_", r"\_") for part in _indexed(name)]
    parts = [word if len(word) == 1 else rf"\mathrm{{{word}}}" for word in words]
    return parts[0] if len(parts) == 1 else f"{parts[0]}_{{{parts[1]}}}"


MATHML = Notation(
    shapes={
        Sign.SUM: "{}<mo>+</mo>{}",
        Sign.DIFFERENCE: "{}<mo>−</mo>{}",
        Sign.PRODUCT: "{}<mo>·</mo>{}",
        Sign.QUOTIENT: _FRACTION,
        Sign.FLOOR: f"<mrow><mo>⌊</mo>{_FRACTION}<mo>⌋</mo></mrow>",
        Sign.CEILING: f"<mrow><mo>⌈</mo>{_FRACTION}<mo>⌉</mo></mrow>",
        Sign.WHOLE: "<mrow><mo>⌊</mo>{}<mo>⌋</mo></mrow>",
        Sign.LEAST: "<mrow><mi>min</mi><mo>(</mo>{}<mo>,</mo>{}<mo>)</mo></mrow>",
        Sign.MOST: "<mrow><mi>max</mi><mo>(</mo>{}<mo>,</mo>{}<mo>)</mo></mrow>",
    },
    parentheses="<mrow><mo>(</mo>{}<mo>)</mo></mrow>",
    name=_mathml_name,
    number=lambda number: f"<mn>{number}</mn>",
    bars=_BARS,
)

LATEX = Notation(
    shapes={
        Sign.SUM: "{} + {}",
        Sign.DIFFERENCE: "{} - {}",
        Sign.PRODUCT: r"{} \cdot {}",
        Sign.QUOTIENT: r"\frac{{{}}}{{{}}}",
        Sign.FLOOR: r"\left\lfloor \frac{{{}}}{{{}}} \right\rfloor",
        Sign.CEILING: r"\left\lceil \frac{{{}}}{{{}}} \right\rceil",
        Sign.WHOLE: r"\left\lfloor {} \right\rfloor",
        Sign.LEAST: r"\min\left({}, {}\right)",
        Sign.MOST: r"\max\left({}, {}\right)",
    },
    parentheses=r"\left({}\right)",
    name=_latex_name,
    number=lambda number: number.replace(",", "{,}"),  # else a space follows each comma
    bars=_BARS,
)
