"""Engine cases that a scenario can express come out of Scenario and Estimate, not around them."""

import math

import pytest

from calculator import Scenario, estimate
from tests.engine_cases import expressed

CASES = list(expressed())


def test_there_are_enough_of_them():
    assert len(CASES) >= 40


@pytest.mark.parametrize(
    ("choices", "figures"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_engines_figures(choices, figures):
    answer = estimate(Scenario().changed(choices))
    assert answer.refusal is None
    found = {figure.name: figure.value.value for figure in answer.allocated.capacity}
    for name, expected in figures.items():
        assert math.isclose(found[name], expected, rel_tol=1e-9 if isinstance(expected, float) else 0), name
