"""Where numbers stand on an axis, and which contexts are drawn."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.app.scales import contexts, count_text, scale

scales = {
    "kind": st.sampled_from(["log", "linear"]),
    "lowest": st.integers(1, 2**50),
    "ratio": st.one_of(st.floats(1, 8), st.floats(1, 2**30)),
    "base": st.sampled_from([1000, 1024]),
}


@given(**scales)
def test_a_scale_goes_from_0_to_1_and_its_ticks_are_inside(kind, lowest, ratio, base):
    highest = int(lowest * ratio)
    made = scale(kind, lowest, highest, base)
    assert made.place(highest) == pytest.approx(1)
    assert made.place(lowest if kind == "log" and made.place(lowest) == 0 else 0) == 0
    places = [made.place(tick) for tick in made.ticks]
    assert all(0 <= place <= 1 for place in places)
    assert all(before < after for before, after in pairwise(places))
    assert 2 <= len(places) <= 12


@given(**scales, numbers=st.lists(st.integers(1, 2**60), min_size=2))
def test_a_larger_number_never_stands_lower(kind, lowest, ratio, base, numbers):
    made = scale(kind, lowest, int(lowest * ratio), base)
    assert all(made.place(a) <= made.place(b) for a, b in pairwise(sorted(numbers)))


def test_a_logarithmic_scale_has_equal_steps_for_equal_ratios():
    place = scale("log", 256, 2**20, 1024).place
    assert (place(256), place(2**14), place(2**20)) == (0, 0.5, 1)
    assert place(1) == 0  # what is below the axis lies on it


def test_a_linear_scale_starts_at_zero():
    place = scale("linear", 256, 2**20, 1024).place
    assert (place(0), place(2**19), place(2**20)) == (0, 0.5, 1)


@given(**scales)
def test_ticks_are_round_in_the_unit(kind, lowest, ratio, base):
    for tick in scale(kind, lowest, int(lowest * ratio), base).ticks:
        if base == 1024:
            step = tick and tick & -tick  # the largest power of two in it
            assert tick // max(step, 1) <= 12
        else:
            assert len(str(tick).rstrip("0")) <= 2


@pytest.mark.parametrize(
    ("count", "words"),
    [(1024, "1Ki"), (2**20, "1Mi"), (3 * 2**20, "3Mi"), (1000, "1,000"), (0, "0"), (1, "1")],
)
def test_counts_on_the_axis(count, words):
    assert count_text(count) == words


@given(st.integers(1, 2**27), st.lists(st.integers(1, 2**27), max_size=3).map(tuple))
def test_the_points_have_the_chosen_context_and_every_bend_in_sight(chosen, bends):
    found = contexts(chosen, bends)
    assert found == sorted(set(found))
    assert {chosen, 256, max(2**20, chosen)} <= set(found)
    assert {bend for bend in bends if bend <= found[-1]} <= set(found)
    assert found[-1] == max(2**20, chosen)
    assert len(found) <= 104
