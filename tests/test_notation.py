"""Formulas as MathML and LaTeX: well formed, and worth what the expression is worth."""

import re
from fractions import Fraction
from operator import add, floordiv, mul, sub, truediv
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.explain import ceiling, least, lift, most, plain, symbol, whole
from calculator.notation import latex, mathml
from tests.arithmetic import evaluate

H, D, D_V, S = symbol("H", 8), symbol("d", 128), symbol("d_v", 64), symbol("s", 2)


@pytest.mark.parametrize(
    ("formula", "symbols", "numbers"),
    [
        (
            H * (D + D_V) * S,
            r"H \cdot \left(d + d_{v}\right) \cdot s",
            r"8 \cdot \left(128 + 64\right) \cdot 2",
        ),
        ((D + 1) / (D_V - 1), r"\frac{d + 1}{d_{v} - 1}", r"\frac{128 + 1}{64 - 1}"),
        (
            D // D_V * S,
            r"\left\lfloor \frac{d}{d_{v}} \right\rfloor \cdot s",
            r"\left\lfloor \frac{128}{64} \right\rfloor \cdot 2",
        ),
        (ceiling(D, S), r"\left\lceil \frac{d}{s} \right\rceil", r"\left\lceil \frac{128}{2} \right\rceil"),
        (least(H, S), r"\min\left(H, s\right)", r"\min\left(8, 2\right)"),
        (
            most(H, whole(D)),
            r"\max\left(H, \left\lfloor d \right\rfloor\right)",
            r"\max\left(8, \left\lfloor 128 \right\rfloor\right)",
        ),
        (symbol("n_request", 70_272), r"n_{\mathrm{request}}", "70{,}272"),
        (symbol("max_running_requests", 1), r"\mathrm{max\_running\_requests}", "1"),
    ],
)
def test_latex(formula, symbols, numbers):
    assert latex(formula, symbolic=True) == symbols
    assert latex(formula, symbolic=False) == numbers


@pytest.mark.parametrize(
    ("formula", "symbols"),
    [
        (H * S, "<mi>H</mi><mo>·</mo><mi>s</mi>"),
        (H / D_V, "<mfrac><mrow><mi>H</mi></mrow><mrow><msub><mi>d</mi><mi>v</mi></msub></mrow></mfrac>"),
        ((H + S) * D, "<mrow><mo>(</mo><mi>H</mi><mo>+</mo><mi>s</mi><mo>)</mo></mrow><mo>·</mo><mi>d</mi>"),
        (symbol("page_size_bytes", 1), "<mi>page_size_bytes</mi>"),
        (symbol("<b>", 1), "<mi>&lt;b&gt;</mi>"),
    ],
)
def test_mathml(formula, symbols):
    assert mathml(formula, symbolic=True) == f"<mrow>{symbols}</mrow>"


def test_numbers_are_one_element_each():
    assert mathml(symbol("T", 100_000), symbolic=False) == "<mrow><mn>100,000</mn></mrow>"


JOINED = (add, sub, mul, most, least)
DIVIDED = (truediv, floordiv, ceiling)


@st.composite
def expressions(draw, depth=3):
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(1, 10**9))
        name = draw(st.sampled_from(["", "H", "d_v", "n_request", "<&>", "a_b_c"]))
        return symbol(name, number) if name else lift(number)
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    made = draw(st.sampled_from(JOINED + DIVIDED if right.value > 0 else JOINED))(left, right)
    return whole(made) if made.value > 0 and draw(st.booleans()) else made


def as_text(element: ElementTree.Element) -> str:
    """MathML back as plain text; what stands above and below a line is in parentheses."""
    parts = [as_text(child) for child in element]
    match element.tag:
        case "mfrac":
            return f"({parts[0]}) / ({parts[1]})"
        case "mo":
            return {"+": " + ", "−": " − ", "·": " · ", ",": ", "}.get(element.text or "", element.text or "")
        case "mi" | "mn":
            return element.text or ""
        case "msub":
            return "_".join(parts)
    return "".join(parts)


@given(expressions())
def test_mathml_is_well_formed_and_comes_to_the_value(formula):
    written = ElementTree.fromstring(mathml(formula, symbolic=False))
    assert Fraction(evaluate(as_text(written))) == formula.value
    ElementTree.fromstring(mathml(formula, symbolic=True))


def latex_as_text(written: str) -> str:
    """LaTeX back as plain text."""
    text = written.replace("{,}", ",").replace(r"\left", "").replace(r"\right", "").replace("\\min", "min")
    text = text.replace(r"\max", "max").replace(r"\cdot", "·").replace(" - ", " − ")
    for name, sign in {"lfloor ": "⌊", " rfloor": "⌋", "lceil ": "⌈", " rceil": "⌉"}.items():
        text = text.replace(f"\\{name}", sign).replace(f" \\{name.strip()}", sign)
    return text.replace("}{", ") / (").replace(r"\frac{", "(").replace("}", ")")


@given(expressions())
def test_latex_comes_to_the_value(formula):
    assert Fraction(evaluate(latex_as_text(latex(formula, symbolic=False)))) == formula.value
    symbols = latex(formula, symbolic=True)
    assert symbols.count("{") == symbols.count("}")
    assert len(re.findall(r"\\left\b", symbols)) == len(re.findall(r"\\right\b", symbols))


def test_a_number_is_written_as_everywhere():
    assert latex(lift(1_048_576), symbolic=False).replace("{,}", ",") == plain(1_048_576)
