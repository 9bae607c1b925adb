"""Single numbers of a plan, replaced."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator import catalogue
from calculator.errors import FieldError
from calculator.overrides import MOST, TYPED, applied, parse, write

GEMMA = catalogue.plan("gemma-3-27b")  # group 0: windows, group 1: full attention


def test_a_number_is_replaced_in_every_layer_of_its_group_and_nowhere_else():
    plan = applied(GEMMA, parse("1.0.num_kv_heads=4, 0.0.sliding_window=512"))
    assert {layer[0].sliding_window for layer in plan.layers if layer[0].kind == "sliding_window"} == {512}
    full = [index for index, layer in enumerate(plan.layers) if layer[0].num_kv_heads == 4]
    assert full == [5, 11, 17, 23, 29, 35, 41, 47, 53, 59]
    assert plan.provenance["1.0.num_kv_heads"] == TYPED
    assert plan.provenance["num_kv_heads"] == GEMMA.provenance["num_kv_heads"]
    assert plan.architecture == GEMMA.architecture


def test_one_of_several_equal_kinds_in_a_layer_can_be_meant():
    flash = catalogue.plan("deepseek-v4-flash")
    (place,) = [
        (group, cache)
        for group, held in enumerate(flash.groups())
        for cache, one in enumerate(held.caches)
        if one.kind == "compressor_state" and one.state_width == 512
    ]
    plan = applied(flash, {(*place, "state_width"): 256})
    widths = {cache.state_width for cache in plan.caches() if cache.kind == "compressor_state"}
    assert 256 in widths
    assert 512 not in widths


def test_groups_are_those_before_any_number_is_replaced():
    same = applied(GEMMA, parse("0.0.num_kv_heads=1,1.0.num_kv_heads=1"))
    assert {layer[0].num_kv_heads for layer in same.layers} == {1}


numbers = st.dictionaries(
    st.tuples(st.integers(0, 999), st.integers(0, 9), st.sampled_from(["head_size", "n_groups"])),
    st.integers(0, 10**12 - 1),
    max_size=5,
)


@given(numbers)
def test_numbers_come_back_from_their_text(numbers):
    assert parse(write(numbers)) == numbers
    assert write(parse(write(numbers))) == write(numbers)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("head_size=1", "error.form"),
        ("0.0.head_size=-1", "error.form"),
        ("0.0.<b>=1", "error.form"),
        ("0.0.a=1,0.0.a=2", "error.overrides"),
        (",".join(f"{group}.0.a=1" for group in range(MOST + 1)), "error.overrides"),
    ],
)
def test_another_form_is_refused(text, key):
    with pytest.raises(FieldError) as caught:
        parse(text)
    assert (caught.value.key, caught.value.field) == (key, "overrides")


@pytest.mark.parametrize("text", ["2.0.head_size=1", "0.1.head_size=1", "0.0.kv_lora_rank=1"])
def test_a_place_that_the_plan_does_not_have_is_named(text):
    with pytest.raises(FieldError, match=text.partition("=")[0]) as caught:
        applied(GEMMA, parse(text))
    assert (caught.value.key, caught.value.values["highest"]) == ("error.overrides_place", 1)


def test_a_number_out_of_bounds_is_refused_with_them():
    with pytest.raises(
        FieldError, match=r"num_kv_heads of full_attention is 0, outside 1 to 1,024"
    ) as caught:
        applied(GEMMA, parse("1.0.num_kv_heads=0"))
    assert caught.value.field == "overrides"
