from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.explain import symbol
from calculator.formats import (
    BF16,
    FORMATS,
    FP8,
    FP8_INDEX,
    FP16,
    FP32,
    KV_FORMATS,
    STATE_FORMATS,
    Row,
    Storage,
)
from tests.strategies import formats


def row(*widths: int, heads: int | None = None) -> Row:
    vectors = {f"v{number}": symbol(f"d_{number}", width) for number, width in enumerate(widths)}
    return Row(vectors=vectors, heads=None if heads is None else symbol("H", heads))


@pytest.mark.parametrize(
    ("storage", "latent", "attention"),
    [
        (FP32, 2_304, 8_192),
        (BF16, 1_152, 4_096),  # the latent of DeepSeek-V3; 8 KV heads of 128
        (FP16, 1_152, 4_096),
        (FP8, 576, 2_048),
    ],
)
def test_plain_formats_weigh_every_element_alike(storage, latent, attention):
    assert storage.row_bytes(row(512, 64)).value == latent
    assert storage.row_bytes(row(128, 128, heads=8)).value == attention


@pytest.mark.parametrize(
    ("width", "weight"),
    [
        (128, 132),  # the index key of DeepSeek Sparse Attention: 128 FP8 elements and one float32 scale
        (127, 127),  # d_i + floor(d_i / 128) * 4
        (255, 259),
        (256, 264),
    ],
)
def test_the_index_format_adds_a_scale_for_each_full_group(width, weight):
    assert FP8_INDEX.row_bytes(row(width)).value == weight


def test_a_scaled_format_counts_its_scales_in_every_head_and_vector():
    assert FP8_INDEX.row_bytes(row(128, 256, heads=3)).value == 3 * (132 + 264)


def test_the_formula_names_what_it_multiplies():
    assert BF16.row_bytes(row(128, 64, heads=8)).symbols == "H · (d_0 + d_1) · s"
    assert BF16.row_bytes(row(512, 64)).numbers == "(512 + 64) · 2"
    assert FP8_INDEX.row_bytes(row(128)).numbers == "128 · 1 + ⌊128 / 128⌋ · 4"


def test_every_format_that_can_be_chosen_exists_under_its_own_name():
    assert all(name == FORMATS[name].name for name in FORMATS)
    assert set(KV_FORMATS) | set(STATE_FORMATS) <= set(FORMATS)


def test_the_default_storage_is_that_of_the_engines():
    assert Storage() == Storage(kv=BF16, recurrent=FP32, convolution=BF16)


widths = st.lists(st.integers(0, 4096), min_size=1, max_size=3)


@given(formats, widths, st.integers(1, 128))
def test_a_row_takes_at_least_its_elements(storage, sizes, heads):
    elements = row(*sizes, heads=heads).elements.value
    assert elements == heads * sum(sizes)
    assert storage.row_bytes(row(*sizes, heads=heads)).value >= elements * storage.element_bytes


@given(formats, widths, st.integers(0, 4096))
def test_a_longer_vector_never_weighs_less(storage, sizes, more):
    longer = [sizes[0] + more, *sizes[1:]]
    assert storage.row_bytes(row(*longer)).value >= storage.row_bytes(row(*sizes)).value


@given(formats, widths, st.integers(1, 128))
def test_heads_weigh_alike_and_a_row_is_whole_bytes(storage, sizes, heads):
    one = storage.row_bytes(row(*sizes, heads=1)).value
    assert storage.row_bytes(row(*sizes, heads=heads)).value == heads * one
    assert Fraction(one).denominator == 1
