from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.explain import (
    Derivation,
    Expression,
    ceiling,
    constant,
    double,
    least,
    lift,
    most,
    plain,
    product,
    round_up,
    symbol,
    total,
    whole,
)
from tests.arithmetic import evaluate

H, D, D_V, S = symbol("H", 8), symbol("d", 128), symbol("d_v", 64), symbol("s", 2)


@pytest.mark.parametrize(
    ("formula", "value", "symbols", "numbers"),
    [
        (H * (D + D_V) * S, 3072, "H · (d + d_v) · s", "8 · (128 + 64) · 2"),
        (D + D_V + S, 194, "d + d_v + s", "128 + 64 + 2"),
        (D - (D_V - S), 66, "d − (d_v − s)", "128 − (64 − 2)"),
        (D - D_V - S, 62, "d − d_v − s", "128 − 64 − 2"),
        (D + (D_V - S), 190, "d + d_v − s", "128 + 64 − 2"),
        (D * (D_V * S), 16384, "d · d_v · s", "128 · 64 · 2"),
        ((D + 1) // (D_V - 1), 2, "⌊(d + 1) / (d_v − 1)⌋", "⌊(128 + 1) / (64 − 1)⌋"),
        ((D * 3) // D_V, 6, "⌊d · 3 / d_v⌋", "⌊128 · 3 / 64⌋"),
        (D // (D_V * S), 1, "⌊d / (d_v · s)⌋", "⌊128 / (64 · 2)⌋"),
        (D // D_V * S, 4, "⌊d / d_v⌋ · s", "⌊128 / 64⌋ · 2"),
        (2 * D, 256, "2 · d", "2 · 128"),
        (1 + D, 129, "1 + d", "1 + 128"),
        (least(D + 1, D_V), 64, "min(d + 1, d_v)", "min(128 + 1, 64)"),
        (most(1, D) * S, 256, "max(1, d) · s", "max(1, 128) · 2"),
        (ceiling(D + 1, D_V) * S, 6, "⌈(d + 1) / d_v⌉ · s", "⌈(128 + 1) / 64⌉ · 2"),
        (ceiling(D, D_V), 2, "⌈d / d_v⌉", "⌈128 / 64⌉"),
        (round_up(D + 1, S), 130, "⌈(d + 1) / s⌉ · s", "⌈(128 + 1) / 2⌉ · 2"),
        (D * S / D_V, 4, "d · s / d_v", "128 · 2 / 64"),
        (D / (D_V * 4) * S, 1, "d / (d_v · 4) · s", "128 / (64 · 4) · 2"),
        (H * (S / D), Fraction(1, 8), "H · s / d", "8 · 2 / 128"),
        (D / (D_V / S), 4, "d / (d_v / s)", "128 / (64 / 2)"),
        (D / Fraction(1, 4), 512, "d / 1/4", "128 / 1/4"),
        ((H + 1) / S, Fraction(9, 2), "(H + 1) / s", "(8 + 1) / 2"),
        (whole(D / 3), 42, "⌊d / 3⌋", "⌊128 / 3⌋"),
        (whole(D + 1) * S, 258, "⌊d + 1⌋ · s", "⌊128 + 1⌋ · 2"),
        (product([H, D, S]), 2048, "H · d · s", "8 · 128 · 2"),
        (lift(1_048_576) * Fraction(1, 4), 262_144, "1,048,576 · 1/4", "1,048,576 · 1/4"),
    ],
)
def test_a_formula_is_a_value_a_text_in_symbols_and_a_text_in_numbers(formula, value, symbols, numbers):
    assert formula.value == value
    assert formula.symbols == symbols
    assert formula.numbers == numbers
    assert evaluate(formula.numbers) == value


def test_a_symbol_hides_how_its_value_was_made():
    rate = symbol("b", H * D)
    assert (rate.value, rate.symbols, rate.numbers) == (1024, "b", "1,024")


def test_no_terms_sum_to_zero_and_one_term_stays_itself():
    assert total([]).value == 0
    assert total([H]) is H
    assert total([H, D, S]).symbols == "H + d + s"


def test_no_factors_are_one():
    assert product([]).value == 1
    assert product([H]) is H


def test_a_double_is_written_as_the_number_that_it_came_from():
    ratio = double(lift(4) / symbol("n", 5))
    assert type(ratio.value) is float
    assert (ratio.value, ratio.symbols, ratio.numbers) == (0.8, "4 / n", "4 / 5")
    assert (ratio * 3).value == 0.8 * 3 != 2.4, "rounded as the engine rounds"
    assert double(5).value == 5.0
    assert plain(63_897.6) == "63,897.6"


def test_bare_numbers_stay_bare_so_that_curves_are_cheap():
    assert least(5, symbol("w", 3)) == 3
    assert type(least(2, 3)) is int
    assert constant(1, 100) == 1
    assert constant(1, H).value == 1


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1_572_864, "1,572,864"), (Fraction(15401, 4), "15,401/4"), (Fraction(8, 2), "4")],
)
def test_plain_numbers_have_thousands_separators(number, text):
    assert plain(number) == text


def test_a_derivation_is_worth_its_expression():
    line = Derivation(quantity="per_rank.total_bytes", expression=H * S, source="here")
    assert line.value == 16


def expressions() -> st.SearchStrategy[Expression]:
    leaves = st.integers(0, 10**7).map(lambda number: symbol("x", number))
    return st.recursive(
        leaves,
        lambda parts: st.one_of(
            st.tuples(parts, parts).map(lambda pair: pair[0] + pair[1]),
            st.tuples(parts, parts).map(lambda pair: pair[0] - pair[1]),
            st.tuples(parts, parts).map(lambda pair: pair[0] * pair[1]),
            st.tuples(parts, parts).map(lambda pair: pair[0] // (pair[1] * pair[1] + 1)),
            st.tuples(parts, parts).map(lambda pair: ceiling(pair[0], pair[1] * pair[1] + 1)),
            st.tuples(parts, parts).map(lambda pair: pair[0] / (pair[1] * pair[1] + 1)),
            st.tuples(parts, parts).map(lambda pair: whole(most(pair[0] / (pair[1] * pair[1] + 1), 0))),
            st.tuples(parts, parts).map(lambda pair: least(pair[0], pair[1])),
            st.tuples(parts, parts).map(lambda pair: most(pair[0], pair[1])),
        ),
        max_leaves=12,
    )


@given(expressions())
def test_what_is_written_evaluates_to_the_value(formula):
    assert evaluate(formula.numbers) == formula.value


@pytest.mark.parametrize("text", ["", "1 +", "(1", "1 2", "min(1)", "⌊1 / 2", "1 × 2"])
def test_the_reader_of_formulas_refuses_what_is_not_one(text):
    with pytest.raises((ValueError, IndexError)):
        evaluate(text)
