from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.errors import FieldError
from calculator.units import BINARY, DECIMAL, exact, human, parse_bytes, parse_count, scaled, unit_of


@pytest.mark.parametrize(
    ("amount", "binary", "decimal"),
    [
        (0, "0 B", "0 B"),
        (1_152, "1.13 KiB", "1.15 kB"),
        (1_023, "1,023 B", "1.02 kB"),
        (70_272, "68.6 KiB", "70.3 kB"),
        (524_288, "512 KiB", "524 kB"),
        (575_668_224, "549 MiB", "576 MB"),
        (1024**2 - 1, "1 MiB", "1.05 MB"),
        (999_999, "977 KiB", "1 MB"),
        (3_072_000_000, "2.86 GiB", "3.07 GB"),
        (7_027_200_000, "6.54 GiB", "7.03 GB"),
        (25_395_200_000, "23.7 GiB", "25.4 GB"),
        (2**50, "1 PiB", "1.13 PB"),
        (2**60, "1,024 PiB", "1,153 PB"),
        (Fraction(15_401, 4), "3.76 KiB", "3.85 kB"),
    ],
)
def test_bytes_are_written_in_the_unit_that_suits_them_never_mixing_the_systems(amount, binary, decimal):
    assert human(amount) == binary
    assert human(amount, "GB") == decimal


def test_more_digits_on_request():
    assert human(70_272, digits=5) == "68.625 KiB"


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (70_272, "70,272"),
        (Fraction(70_272), "70,272"),
        (Fraction(15_401, 4), "3,850.25"),
        (Fraction(1, 3), "0.3333"),
        (Fraction(1, 10**6), "0"),
        (Fraction(2**60 * 2 + 1, 2), "1,152,921,504,606,846,976.5"),
        (Fraction(99_999_999, 10**7), "10"),
    ],
)
def test_exact_numbers_keep_every_digit_before_the_point(amount, text):
    assert exact(amount) == text


@pytest.mark.parametrize(
    ("amount", "unit"), [(0, "B"), (1023, "B"), (1024, "KiB"), (2**50, "PiB"), (2**70, "PiB")]
)
def test_the_unit_is_the_largest_that_fits(amount, unit):
    assert unit_of(amount) == unit


@pytest.mark.parametrize("unit", BINARY + DECIMAL)
def test_one_of_each_unit_is_that_many_bytes_there_and_back(unit):
    amount = parse_bytes(f"1 {unit}")
    assert scaled(amount, unit) == 1
    assert human(amount, "GiB" if unit in BINARY else "GB") == f"1 {unit}"


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("70,272 B", 70_272),
        ("70272B", 70_272),
        ("68.625 KiB", 70_272),
        (" 549 MiB ", 575_668_224),
        ("1.5 GB", 1_500_000_000),
        ("0.5 B", Fraction(1, 2)),
    ],
)
def test_sizes_are_read_exactly(text, amount):
    assert parse_bytes(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        "B",
        ",B",
        "1,B",
        "12,34 B",
        "1.5",
        "1 KB",
        "1 gb",
        "-1 B",
        "1e3 B",
        "nan GiB",
        "１ GiB",
        "9" * 5000 + " B",
    ],
)
def test_what_is_not_a_size_is_refused_with_an_example_of_one(text):
    with pytest.raises(FieldError, match="is not a size"):
        parse_bytes(text)


@given(st.integers(0, 2**53), st.sampled_from(["GiB", "GB"]))
def test_text_to_bytes_to_text(amount, system):
    text = human(amount, system)
    assert human(parse_bytes(text), system) == text


@given(st.integers(0, 2**53))
def test_exact_bytes_come_back_as_they_were(amount):
    assert parse_bytes(f"{exact(amount)} B") == amount


@given(st.integers(0, 2**60), st.integers(0, 2**60), st.sampled_from(["GiB", "GB"]))
def test_a_larger_amount_is_never_written_as_a_smaller_one(a, b, system):
    small, large = sorted((a, b))
    assert parse_bytes(human(small, system)) <= parse_bytes(human(large, system))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("61", 61),
        (" 61 ", 61),
        ("131072", 131_072),
        ("131,072", 131_072),
        ("131_072", 131_072),
        ("131 072", 131_072),
        ("1_000", 1_000),
        ("100K", 100_000),
        ("100 k", 100_000),
        ("128Ki", 131_072),
        ("1M", 1_000_000),
        ("1Mi", 1_048_576),
        ("0.5Ki", 512),
        ("1.5K", 1_500),
        ("61.0", 61),
        ("007", 7),
        ("0", 0),
        ("0" * 5000, 0),
        ("-5", -5),
        ("−5", -5),
        ("-1,000", -1_000),
    ],
)
def test_counts_as_people_type_them(text, count):
    assert parse_count(text, "num_layers", lowest=1, highest=9) == count


@pytest.mark.parametrize(
    "text",
    [
        "61.5",
        "1e5",
        "nan",
        "NaN",
        "inf",
        "0x10",
        "６１",
        "٦١",
        "61 layers",
        "100KB",
        "12,34",
        "1,0000",
        "1__000",
        "--5",
        "- 5",
        "+5",
        "½",
        "0.1K2",
        ".5K",
        "1.0001K",
        "1." + "0" * 4000 + "1K",
        "True",
        "None",
    ],
)
def test_anything_else_is_not_a_whole_number_and_the_range_is_told(text):
    with pytest.raises(FieldError, match=r"^Layers: “.*” is not a whole number.* from 1 to 1,024") as caught:
        parse_count(text, "num_layers", lowest=1, highest=1024)
    assert (caught.value.field, caught.value.value) == ("num_layers", text)


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u3000"])
def test_an_empty_box_is_told_apart_from_a_wrong_one(text):
    with pytest.raises(FieldError, match=r"nothing was entered.* from 1 to 1,024"):
        parse_count(text, "num_layers", lowest=1, highest=1024)


def test_a_number_of_thousands_of_digits_is_only_known_to_be_huge():
    assert parse_count("9" * 10_000, "num_layers") > 2**64
    assert parse_count("-" + "9" * 10_000 + "Mi", "num_layers") < -(2**64)
