from dataclasses import fields, replace
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator import catalogue
from calculator.caches import MLA, bounds
from calculator.errors import FieldError
from calculator.fields import FIELDS, VIEW_FIELDS, Choice, Whole, parse
from calculator.formats import BF16, FP8, FP16, Storage
from calculator.locales import LANGUAGES, label
from calculator.model import ModelPlan
from calculator.scenario import Scenario, catalogue_shape, open_address
from calculator.serving import Serving
from calculator.shape import Architecture, Interleave, Shape

WHOLE = {name: item.rule for name, item in FIELDS.items() if isinstance(item.rule, Whole)}
CHOICES = {name: item.rule for name, item in FIELDS.items() if type(item.rule) is Choice}
every_whole = pytest.mark.parametrize("name", WHOLE)
every_choice = pytest.mark.parametrize("name", CHOICES)

NOT_A_NUMBER = ["1e5", "NaN", "nan", "inf", "６１", "6.5", "61 layers", "1__0", "0x3d", "12,34", "½"]
AS_TYPED = {" 61 ": 61, "100K": 100_000, "128Ki": 131_072, "1_000": 1_000, "131,072": 131_072, "61.0": 61}
ABSURD = ["9" * 30, "9" * 5_000, "-" + "9" * 5_000, "1" + "0" * 400 + "Mi"]


def query(name: str, text: str) -> str:
    return urlencode({FIELDS[name].key: text})


# --- the default scenario ---


def test_it_starts_with_deepseek_v3_bf16_tp_1_at_100_000_tokens():
    start = Scenario()
    assert (start.model, start.kv_cache_dtype, start.tensor_parallel_size) == ("deepseek-v3", "bf16", 1)
    assert (start.context_tokens, start.compare_tokens, start.num_sequences) == (100_000, 100_000, 1)
    assert (start.shape.architecture, start.shape.num_layers, start.shape.latent_width) == (
        Architecture.MLA,
        61,
        576,
    )
    assert not start.customised
    assert start.plan() == catalogue.plan("deepseek-v3")


def test_every_field_can_be_chosen_and_has_a_key_of_its_own():
    own = {item.name for item in fields(Scenario)} - {"shape", "serving"}
    of_shape = {item.name for item in fields(Shape)}
    of_serving = {item.name for item in fields(Serving)}
    assert {name for name, item in FIELDS.items() if not item.of_shape} == own | of_serving
    assert {name for name, item in FIELDS.items() if item.of_serving} == of_serving
    assert {name for name, item in FIELDS.items() if item.of_shape} == of_shape
    keys = [item.key for item in FIELDS.values()]
    assert len(set(keys)) == len(keys)
    assert "v" not in keys, "taken by the version"


def test_defaults_are_legal():
    for name, item in FIELDS.items():
        value = Scenario().value(name)
        assert item.rule.parse(name, value) == value
        assert item.rule.parse(name, str(value)) == value


def test_formats_follow_the_choice():
    chosen = Scenario(kv_cache_dtype="fp8", state_dtype="fp16")
    assert chosen.storage == Storage(kv=FP8, recurrent=FP16, convolution=BF16)


# --- changing ---


def test_a_changed_number_makes_the_model_custom_and_back_again():
    changed = Scenario().changed({"num_layers": "48"})
    assert changed.customised
    assert len(changed.plan().layers) == 48
    assert not changed.changed({"num_layers": 61}).customised


def test_what_is_not_of_the_model_does_not_make_it_custom():
    assert not Scenario().changed({"tensor_parallel_size": 8, "kv_cache_dtype": "fp8"}).customised


def test_a_new_model_brings_its_own_numbers():
    gemma = Scenario().changed({"num_layers": 48}).changed({"model": "gemma-3-27b"})
    assert gemma.shape == catalogue_shape("gemma-3-27b")
    assert not gemma.customised


def test_a_new_model_and_a_number_for_it_in_one_go():
    gemma = Scenario().changed({"num_layers": 12, "num_global_layers": 2, "model": "gemma-3-27b"})
    assert gemma.shape == replace(catalogue_shape("gemma-3-27b"), num_layers=12, num_global_layers=2)


def test_changing_the_architecture_and_back_loses_nothing():
    there = Scenario().changed({"architecture": "window", "sliding_window": 512})
    assert there.changed({"architecture": "mla", "sliding_window": 1024}) == Scenario()


@pytest.mark.parametrize(
    ("values", "rank", "rope"),
    [
        ({"latent_width": "576"}, 512, 64),
        ({"latent_width": 320}, 256, 64),
        ({"latent_width": 576, "qk_rope_head_dim": 32}, 544, 32),
        ({"latent_width": 65}, 1, 64),
        ({"latent_width": 16_448}, 16_384, 64),
    ],
)
def test_the_rank_follows_the_latent_width(values, rank, rope):
    shape = Scenario().changed(values).shape
    assert (shape.kv_lora_rank, shape.qk_rope_head_dim) == (rank, rope)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"latent_width": 64}, r"^Latent width \(rank \+ rope\): 64 is outside 65 to 16,448\."),
        ({"latent_width": 16_449}, r"16,449 is outside 65 to 16,448\."),
        ({"latent_width": 100, "qk_rope_head_dim": 100}, r"100 is outside 101 to 16,484\."),
        ({"latent_width": 0}, r"0 is outside 1 to 20,480\."),
        ({"latent_width": ""}, r"nothing was entered.*1 to 20,480"),
        ({"latent_width": "wide"}, r"“wide” is not a whole number.*1 to 20,480"),
    ],
)
def test_a_latent_width_that_leaves_no_rank_is_refused_with_its_range(values, sentence):
    with pytest.raises(FieldError, match=sentence) as caught:
        Scenario().changed(values)
    assert caught.value.field == "latent_width"


def test_numbers_that_do_not_go_together_are_refused():
    with pytest.raises(FieldError, match=r"^Full-attention layers: 9 is outside 0 to 4\."):
        Scenario().changed({"architecture": "window", "num_layers": 4, "num_global_layers": 9})


UNSAYABLE = "deepseek-v4-flash"


def test_a_model_that_the_sliders_cannot_say_keeps_its_layers():
    scenario = Scenario().changed({"model": UNSAYABLE})
    assert scenario.plan() == catalogue.plan(UNSAYABLE)
    assert not scenario.customised
    assert scenario.value("num_layers") is None
    assert scenario.as_json()["num_layers"] is None
    assert scenario.address() == f"v=1&m={UNSAYABLE}"
    assert open_address(scenario.address()).scenario == scenario


def test_a_number_changed_on_such_a_model_starts_from_the_plain_shape():
    scenario = Scenario().changed({"model": UNSAYABLE, "num_layers": 5})
    assert scenario.customised
    assert scenario.plan() == Shape(num_layers=5).plan()
    assert open_address(scenario.address()).scenario == scenario


# --- reading what was typed ---


@every_whole
def test_both_bounds_are_read(name):
    for number in (WHOLE[name].lowest, WHOLE[name].highest):
        assert parse(name, number) == parse(name, str(number)) == parse(name, f"{number:,}") == number


@every_whole
@pytest.mark.parametrize("text", AS_TYPED)
def test_numbers_are_read_as_people_type_them_or_refused_for_their_size(name, text):
    rule, number = WHOLE[name], AS_TYPED[text]
    if rule.lowest <= number <= rule.highest:
        assert parse(name, text) == number
    else:
        with pytest.raises(FieldError) as caught:
            parse(name, text)
        assert (caught.value.key, caught.value.value) == ("error.range", number)


def refusal(name: str, given: object) -> FieldError:
    with pytest.raises(FieldError) as caught:
        parse(name, given)
    return caught.value


@every_whole
@pytest.mark.parametrize("text", ["", " ", *NOT_A_NUMBER])
def test_what_is_no_whole_number_is_refused_with_field_value_and_range(name, text):
    error = refusal(name, text)
    assert error.key == ("error.integer" if text.strip() else "error.empty")
    assert (error.field, error.value) == (name, text)
    for language in LANGUAGES:
        sentence = error.message(language)
        assert sentence.startswith(label(language, name))
        assert f"{WHOLE[name].lowest:,}" in sentence
        assert f"{WHOLE[name].highest:,}" in sentence
        assert text.strip() in sentence


@every_whole
@pytest.mark.parametrize("given", [None, True, 2.5, float("nan"), float("inf"), [], {}], ids=repr)
def test_values_of_other_types_are_refused_too(name, given):
    assert refusal(name, given).key == "error.integer"


@every_whole
@pytest.mark.parametrize("beyond", [*ABSURD, "below", "above", "-1"])
def test_what_is_out_of_range_is_refused_with_field_value_and_range(name, beyond):
    rule = WHOLE[name]
    text = {"below": str(rule.lowest - 1), "above": str(rule.highest + 1)}.get(beyond, beyond)
    error = refusal(name, text)
    assert (error.key, error.field) == ("error.range", name)
    for language in LANGUAGES:
        sentence = error.message(language)
        assert sentence.startswith(label(language, name))
        assert f"{rule.lowest:,}" in sentence
        assert f"{rule.highest:,}" in sentence
    if len(text) < 15:
        assert f"{int(text):,} is outside" in error.message("en")


@every_choice
@pytest.mark.parametrize("given", ["", "nope", None, 1, [], " bf16 "], ids=repr)
def test_what_is_no_option_is_refused_with_the_options(name, given):
    error = refusal(name, given)
    assert (error.key, error.field, error.value) == ("error.choice", name, given)
    for language in LANGUAGES:
        assert error.message(language).startswith(label(language, name))
        assert all(option in error.message(language) for option in CHOICES[name].options)


@every_choice
def test_each_option_is_read(name):
    for option in CHOICES[name].options:
        assert parse(name, str(option)) == option


def test_architecture_and_placing_are_read_as_themselves():
    assert parse("architecture", "mla") is Architecture.MLA
    assert parse("interleave", "last") is Interleave.LAST


# --- the address ---


def test_an_address_names_the_version_the_model_and_what_differs():
    assert Scenario().address() == "v=1&m=deepseek-v3"
    changed = Scenario().changed({"num_layers": 48, "tensor_parallel_size": 8, "kv_cache_dtype": "fp8"})
    assert changed.address() == "v=1&m=deepseek-v3&L=48&f=fp8&tp=8"


@pytest.mark.parametrize(
    "text", ["", "?", "?v=1", "v=1&m=deepseek-v3", "?v=1&m=deepseek-v3&", "m=deepseek-v3&m=deepseek-v3"]
)
def test_an_empty_address_is_the_default(text):
    opened = open_address(text)
    assert (opened.scenario, opened.problems, opened.unknown) == (Scenario(), (), ())


def test_numbers_in_an_address_are_read_as_typed():
    opened = open_address("?t=128Ki&L=+61+&n=1%2C000&ct=100K")
    assert opened.problems == ()
    assert opened.scenario.context_tokens == 131_072
    assert (opened.scenario.num_sequences, opened.scenario.compare_tokens) == (1_000, 100_000)
    assert not opened.scenario.customised


def test_unknown_keys_are_reported_and_the_rest_is_read():
    opened = open_address("?zz=1&tp=8&utm_source=mail")
    assert opened.unknown == ("zz", "utm_source")
    assert opened.problems == ()
    assert opened.scenario.tensor_parallel_size == 8


@pytest.mark.parametrize("version", ["2", "", "one"])
def test_an_unknown_version_is_reported_and_the_rest_is_read(version):
    opened = open_address(f"?v={version}&tp=8")
    (problem,) = opened.problems
    assert (problem.key, problem.field, problem.value) == ("error.version", "version", version)
    assert "version 1" in problem.message("en")
    assert "版本 1" in problem.message("zh")
    assert opened.scenario.tensor_parallel_size == 8


@every_whole
@pytest.mark.parametrize("beyond", [*ABSURD, "-1"])
def test_out_of_range_in_an_address_becomes_the_nearest_bound(name, beyond):
    opened = open_address(query(name, beyond))
    nearest = WHOLE[name].lowest if beyond.startswith("-") else WHOLE[name].highest
    assert opened.problems[0].field == name
    assert opened.problems[0].key == "error.range"
    if len(opened.problems) == 1:
        assert opened.scenario.value(name) == nearest


@every_whole
@pytest.mark.parametrize("text", ["", *NOT_A_NUMBER])
def test_what_cannot_be_read_in_an_address_leaves_the_default(name, text):
    opened = open_address(query(name, text))
    (problem,) = opened.problems
    assert (problem.field, problem.value) == (name, text)
    assert opened.scenario == Scenario()


@every_choice
def test_an_unknown_option_in_an_address_leaves_the_default(name):
    opened = open_address(query(name, "nope"))
    assert [problem.field for problem in opened.problems] == [name]
    assert opened.scenario == Scenario()


def test_problems_come_in_the_order_of_the_address():
    opened = open_address("?tp=0&L=x&n=&d=0&v=7")
    assert [problem.field for problem in opened.problems] == [
        "version",
        "tensor_parallel_size",
        "num_layers",
        "num_sequences",
        "head_size",
    ]
    assert opened.scenario.tensor_parallel_size == 1


def test_more_full_layers_than_layers_become_as_many():
    opened = open_address("?a=window&L=4&g=9")
    (problem,) = opened.problems
    assert problem.message("en").startswith("Full-attention layers: 9 is outside 0 to 4.")
    assert opened.scenario.shape.num_global_layers == 4


def test_fewer_layers_than_the_full_ones_of_the_model_become_all_full():
    opened = open_address("?m=gemma-3-27b&L=4")
    (problem,) = opened.problems
    assert (problem.field, problem.value) == ("num_global_layers", 10)
    assert opened.scenario.shape.num_global_layers == opened.scenario.shape.num_layers == 4


fragments = st.one_of(
    st.text(),
    st.builds(
        lambda item, text: urlencode({item.key: text}),
        st.sampled_from(list(FIELDS.values())),
        st.one_of(st.text(), st.integers().map(str), st.sampled_from([*AS_TYPED, *NOT_A_NUMBER, *ABSURD])),
    ),
    st.sampled_from(
        ["v=1", "v=2", "?", "&&", "=", "%", "%zz", "%ff%fe", "a=window", "a=state", "L=2", "g=99"]
    ),
)


@given(st.lists(fragments, max_size=8).map("&".join))
def test_no_address_raises_and_the_scenario_that_comes_out_is_sound(text):
    opened = open_address(text)
    assert open_address(opened.scenario.address()).scenario == opened.scenario
    assert isinstance(opened.scenario.plan(), ModelPlan)
    for problem in opened.problems:
        for language in LANGUAGES:
            assert problem.message(language).startswith(label(language, problem.field))


# --- JSON ---


def test_the_json_holds_what_the_numbers_depend_on():
    written = Scenario().changed({"num_layers": 48, "units": "GB", "theme": "dark"}).as_json()
    assert written["custom"] is True
    assert written["num_layers"] == 48
    assert written.keys() == {"custom", *FIELDS} - set(VIEW_FIELDS)


def test_bounds_come_from_the_cache_kinds():
    rule = FIELDS["kv_lora_rank"].rule
    assert (rule.lowest, rule.highest) == bounds(MLA, "kv_lora_rank") == (1, 16_384)
