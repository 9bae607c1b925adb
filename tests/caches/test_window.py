import pytest

from calculator.caches import ChunkedLocal, FullAttention, Growth, SlidingWindow
from calculator.explain import symbol
from calculator.formats import Storage

SIZES = {"num_kv_heads": 8, "head_size": 128, "head_size_v": 128}
WINDOW = SlidingWindow(sliding_window=1_024, **SIZES)
CHUNK = ChunkedLocal(attention_chunk_size=8_192, **SIZES)


@pytest.mark.parametrize(
    ("context", "window", "chunk"),
    [(1, 1, 1), (1_023, 1_023, 1_023), (1_024, 1_024, 1_024), (1_025, 1_024, 1_025), (32_768, 1_024, 8_192)],
)
def test_tokens_are_kept_up_to_the_bound(context, window, chunk):
    assert WINDOW.units(context) == window
    assert CHUNK.units(context) == chunk


def test_the_formula_of_the_tokens_kept():
    assert WINDOW.units(symbol("T", 32_768)).symbols == "min(T, w)"
    assert WINDOW.units(symbol("T", 32_768)).numbers == "min(32,768, 1,024)"
    assert CHUNK.units(symbol("T", 32_768)).symbols == "min(T, c)"


def test_the_bound_is_where_growth_stops():
    assert WINDOW.growth is CHUNK.growth is Growth.BOUNDED
    assert WINDOW.bound.value == 1_024
    assert CHUNK.bound.value == 8_192


@pytest.mark.parametrize("tp", [1, 2, 16])
def test_a_token_in_the_window_weighs_what_it_weighs_in_full_attention(tp):
    full = FullAttention(**SIZES).unit_bytes(Storage(), tp).value
    assert WINDOW.unit_bytes(Storage(), tp).value == CHUNK.unit_bytes(Storage(), tp).value == full
