import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator.caches import KINDS
from calculator.locales import catalogue
from calculator.reuse import need, radix_hit, tokens_needed
from tests.strategies import caches


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.kind)
@settings(max_examples=10)
@given(data=st.data())
def test_every_kind_needs_something_that_has_words(kind, data):
    cache = data.draw(caches(kind))
    prefix = data.draw(st.integers(0, 10_000))
    assert 0 <= tokens_needed(cache, prefix) <= prefix
    assert f"reuse.{need(cache)}" in catalogue("en")


def test_sglangs_radix_tree():
    """formulas.md 7.2, the last paragraph."""
    assert radix_hit(100, page_size=64) == 64
    assert radix_hit(1_000, window=127, window_spans=[(0, 200), (500, 600)]) == 200
    assert radix_hit(1_000, window=127, window_spans=[(0, 200), (500, 700)]) == 700
    assert radix_hit(600, window=127, window_spans=[(500, 700)]) == 0
    assert radix_hit(1_000, window=127) == 0
    assert radix_hit(1_000, page_size=64, snapshots=[128, 640, 700, 1_024]) == 640
    assert radix_hit(1_000, snapshots=[]) == 0
