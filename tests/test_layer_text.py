"""Layers as text: every kind, every catalogue model, and what is wrong with a text that is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator import catalogue
from calculator.caches import KINDS, MLA, FullAttention, IndexKey
from calculator.errors import FieldError
from calculator.layer_text import MAX_DEPTH, MAX_TEXT, blocks, parse, write
from calculator.locales import LANGUAGES
from tests.strategies import caches

FULL = FullAttention(num_kv_heads=8, head_size=128, head_size_v=64)
ROW = "full_attention(num_kv_heads=8,head_size=128,head_size_v=64)"
any_cache = st.sampled_from(list(KINDS.values())).flatmap(caches)
layers = st.lists(any_cache, max_size=3).map(tuple)


@given(st.lists(layers, min_size=1, max_size=4), st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_any_layers_come_back_from_their_text(sorts, order):
    made = tuple(sorts[number % len(sorts)] for number in order)
    assert parse(write(made)) == made
    assert parse(write(made).replace("+", " ")) == made, "an address turns + into a space"


@pytest.mark.parametrize("model", catalogue.ids())
def test_a_catalogue_model_comes_back_from_a_text_that_a_link_can_carry(model):
    text = write(catalogue.plan(model).layers)
    assert parse(text) == catalogue.plan(model).layers
    assert len(text) < 1_500


def test_patterns_are_found_wherever_they_begin():
    window = "sliding_window(num_kv_heads=16,head_size=128,head_size_v=128,sliding_window=1024)"
    full = "full_attention(num_kv_heads=16,head_size=128,head_size_v=128)"
    assert write(catalogue.plan("gemma-3-27b").layers) == f"10*(5*{window}+{full})+2*{window}"
    a, b, c = (FULL,), (), (MLA(kv_lora_rank=512, qk_rope_head_dim=64),)
    assert [(times, [count for count, _ in runs]) for times, runs in blocks([c, c, a, b, a, b, b])] == [
        (1, [2]),
        (2, [1, 1]),
        (1, [1]),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ROW, ((FULL,),)),
        (f"2*{ROW}", ((FULL,),) * 2),
        (f" 2 * ( {ROW} + none ) ", ((FULL,), ()) * 2),
        (f"{ROW}/index_key(index_head_dim=128)", ((FULL, IndexKey(index_head_dim=128)),)),
        ("none none", ((), ())),
        ("cross_attention(num_kv_heads=1,head_size=2,head_size_v=3)", None),
    ],
)
def test_what_a_person_may_write(text, expected):
    assert expected is None or parse(text) == expected
    assert parse(text)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("", "error.layers", "…"),
        ("3*", "error.layers", "…"),
        ("0*none", "error.layers", "0*"),
        ("1 2*none", "error.layers", "2*none"),
        ("none)", "error.layers", ")"),
        ("(none", "error.layers", "…"),
        ("none/none", "error.layers", "/none"),
        ("2*none $ 3", "error.layers", "$ 3"),
        ("full_attention", "error.layers", "…"),
        ("full_attention(num_kv_heads=x)", "error.layers", "x)"),
        ("full_attention(8)", "error.layers", "8)"),
        ("full_attention(num_kv_heads=1 head_size=2)", "error.layers", "head_size=2)"),
        ("<b>(x=1)", "error.layers", "<b>(x=1)"),
        ("attention(num_kv_heads=1)", "error.layers_kind", "attention"),
        ("full_attention(heads=1)", "error.layers_size", "heads"),
        ("full_attention(head_size=1,head_size=1)", "error.layers_size", "head_size"),
        ("full_attention(head_size=1)", "error.layers_missing", "full_attention"),
        ("mla(kv_lora_rank=0,qk_rope_head_dim=64)", "error.layers_range", 0),
        ("1025*none", "error.layers_many", 1025),
        ("32*(33*none)", "error.layers_many", 1056),
        ("1000*none+25*none", "error.layers_many", 1025),
        ("(" * (MAX_DEPTH + 2) + "none" + ")" * (MAX_DEPTH + 2), "error.layers", "none))"),
        (" " * (MAX_TEXT + 1), "error.layers_long", MAX_TEXT + 1),
    ],
)
def test_what_is_wrong_is_named(text, key, value):
    with pytest.raises(FieldError) as caught:
        parse(text)
    assert (caught.value.key, caught.value.field) == (key, "layers")
    assert caught.value.value == value or str(caught.value.value).endswith(str(value))
    assert len({caught.value.message(language) for language in LANGUAGES}) == len(LANGUAGES)


def test_a_size_out_of_bounds_is_told_with_them():
    with pytest.raises(FieldError, match=r"kv_lora_rank of mla is 99,999, outside 1 to 16,384\."):
        parse("mla(kv_lora_rank=99999,qk_rope_head_dim=64)")


@given(st.text(alphabet="0123456789*()+/=,_ abdeghilmnoprstuvw", max_size=60))
def test_no_text_breaks_it(text):
    try:
        found = parse(text)
    except FieldError:
        return
    assert parse(write(found)) == found
