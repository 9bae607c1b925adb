"""What the page holds: the last good answer, and beside it what was typed and could not be taken."""

from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator import catalogue
from calculator.app import own
from calculator.app.controls import form
from calculator.app.readouts import pieces
from calculator.app.state import NOT_CONTROLS, hidden
from calculator.caches import State
from calculator.errors import FieldError, LimitError
from calculator.estimate import EXACT_LIMIT, estimate
from calculator.fields import FIELDS, Choice, Whole, parse
from calculator.scenario import Scenario, catalogue_shape
from calculator.shape import Architecture
from tests.app.page import SYSTEM, changed, opened
from tests.strategies import values

BAD_NUMBERS = ["", " ", "0x", "1.5", "-1", "9" * 5_000, "many", "１"]
WINDOWED = {"architecture": "window", "num_layers": "48", "num_global_layers": "8"}


def messages(state):
    return {name: shown["message"] for name, shown in form(state).items() if shown["message"]}


# --- one field ---


@pytest.mark.parametrize("text", BAD_NUMBERS)
@pytest.mark.parametrize("name", [name for name, item in FIELDS.items() if isinstance(item.rule, Whole)])
def test_a_number_that_cannot_be_taken_stays_typed_with_its_range_and_the_last_good_answer_stays(name, text):
    architecture = next(kind for kind in every_architecture() if name not in hidden(kind.scenario))
    before = architecture.answer
    state = changed(architecture, **{name: text})
    assert state.answer.scenario == before.scenario
    assert state.typed == {name: text}
    assert isinstance(state.problems[name], FieldError)
    rule = FIELDS[name].rule
    assert form(state)[name]["text"] == text
    for bound in (rule.lowest, rule.highest):
        assert f"{bound:,}" in form(state)[name]["message"]


def every_architecture():
    for engine in FIELDS["engine"].rule.options:
        for kind in Architecture:
            for state_kind in FIELDS["state_kind"].rule.options:
                yield changed(opened(), engine=engine, architecture=kind, state_kind=state_kind)


def test_a_correction_takes_the_text_and_its_message_away():
    state = changed(opened(), num_layers="none")
    changed(state, num_layers="7")
    assert (state.typed, state.problems, state.scenario.shape.num_layers) == ({}, {}, 7)


def test_what_is_taken_is_shown_as_it_was_understood():
    state = changed(opened(), context_tokens="128Ki")
    assert form(state)["context_tokens"]["text"] == "131,072"
    assert state.typed == {}


def test_one_bad_field_does_not_hold_up_another():
    state = changed(opened(), num_layers="none")
    changed(state, tensor_parallel_size="8")
    assert state.scenario.tensor_parallel_size == 8
    assert messages(state).keys() == {"num_layers"}


def test_two_bad_fields_keep_their_texts_and_are_corrected_one_by_one():
    state = changed(opened(), num_layers="none", context_tokens="")
    assert state.typed == {"num_layers": "none", "context_tokens": ""}
    assert messages(state).keys() == {"num_layers", "context_tokens"}
    changed(state, num_layers="3")
    assert state.typed == {"context_tokens": ""}
    assert (state.scenario.shape.num_layers, state.scenario.context_tokens) == (3, 100_000)
    changed(state, context_tokens="5")
    assert (state.typed, state.problems, state.scenario.context_tokens) == ({}, {}, 5)


def test_a_bad_number_in_a_batch_does_not_hold_up_the_good_ones():
    state = changed(opened(), num_layers="0", tensor_parallel_size="4", context_tokens="2,048")
    assert (state.scenario.tensor_parallel_size, state.scenario.context_tokens) == (4, 2048)
    assert state.typed == {"num_layers": "0"}


def test_messages_are_in_the_language_of_the_page():
    state = changed(opened(), num_layers="0", language="zh")
    assert messages(state) == {"num_layers": state.problems["num_layers"].message("zh")}
    assert state.problems["num_layers"].message("zh") != state.problems["num_layers"].message("en")


# --- fields that limit each other ---


def test_fewer_layers_than_full_attention_layers_are_refused_and_corrected_by_either_field():
    for correction in ({"num_layers": "9"}, {"num_global_layers": "2"}):
        state = changed(opened(), **WINDOWED)
        good = state.answer
        changed(state, num_layers="4")
        assert state.answer.scenario == good.scenario
        assert state.typed == {"num_layers": "4"}
        assert "8" in messages(state)["num_layers"]
        changed(state, **correction)
        wanted = {"num_layers": "4", "num_global_layers": "8", **correction}
        assert {name: str(state.scenario.value(name)) for name in wanted} == wanted
        assert (state.typed, state.problems) == ({}, {})


def test_more_full_attention_layers_than_layers_are_refused_and_corrected_by_either_field():
    for correction in ({"num_layers": "60"}, {"num_global_layers": "48"}):
        state = changed(opened(), **WINDOWED)
        changed(state, num_global_layers="50")
        assert state.typed == {"num_global_layers": "50"}
        assert "0 to 48" in messages(state)["num_global_layers"]
        changed(state, **correction)
        assert (state.typed, state.problems) == ({}, {})


@pytest.mark.parametrize(
    "other", [{"language": "zh"}, {"theme": "dark"}, {"units": "GB"}, {"context_tokens": "5"}]
)
def test_numbers_that_do_not_go_together_hold_up_no_other_field(other):
    state = changed(changed(opened(), **WINDOWED), num_layers="4")
    changed(state, **other)
    ((name, text),) = other.items()
    assert str(state.scenario.value(name)) == text
    assert state.typed == {"num_layers": "4"}


def test_in_one_batch_as_many_fields_are_taken_as_go_together():
    state = changed(opened(), **WINDOWED)
    changed(state, num_layers="4", context_tokens="7", num_global_layers="2", num_sequences="0")
    assert (state.scenario.shape.num_layers, state.scenario.shape.num_global_layers) == (4, 2)
    assert state.scenario.context_tokens == 7
    assert state.typed == {"num_sequences": "0"}


def test_what_was_refused_is_taken_as_soon_as_there_is_room_even_beside_another_refusal():
    state = changed(opened(), **WINDOWED)
    changed(state, num_layers="4")
    changed(state, num_global_layers="2", num_sequences="1000000", context_tokens="100000000")
    assert (state.scenario.shape.num_layers, state.scenario.shape.num_global_layers) == (4, 2)
    assert len(state.typed) == 1


def test_an_architecture_can_be_chosen_although_a_number_that_it_brings_does_not_fit():
    state = changed(opened(), num_layers="4")  # the 8 full-attention layers of a hybrid are not shown yet
    changed(state, architecture="window")
    assert state.scenario.shape.architecture == "window"
    assert state.scenario.shape.num_global_layers == 4
    assert (state.typed, state.problems) == ({}, {})


def test_a_number_given_with_the_architecture_is_not_bent():
    state = changed(changed(opened(), num_layers="4"), architecture="window", num_global_layers="5")
    assert state.typed == {"num_global_layers": "5"}
    assert "0 to 4" in messages(state)["num_global_layers"]


def test_more_than_2_to_the_53_bytes_are_refused_with_the_limit_and_the_last_good_answer_stays():
    state = changed(opened(), context_tokens="100M")
    good = state.answer
    changed(state, num_sequences="1,000,000")
    assert state.answer.scenario == good.scenario
    assert state.typed == {"num_sequences": "1,000,000"}
    assert isinstance(state.problems["num_sequences"], LimitError)
    assert "9,007,199,254,740,992" in messages(state)["num_sequences"]
    changed(state, context_tokens="1")
    assert (state.typed, state.problems, state.scenario.num_sequences) == ({}, {}, 1_000_000)


# --- formats that a model cannot be kept in ---


@pytest.mark.parametrize("storage", ["nvfp4", "turboquant_k8v4", "turboquant_4bit_nc"])
def test_a_format_of_heads_is_refused_for_latents_with_the_kind_and_the_last_good_answer_stays(storage):
    state = opened()
    good = state.answer
    changed(state, kv_cache_dtype=storage)
    assert state.answer.scenario == good.scenario
    assert state.typed == {"kv_cache_dtype": storage}
    assert storage in messages(state)["kv_cache_dtype"]
    assert "mla" in messages(state)["kv_cache_dtype"]
    changed(state, model="llama-7b")
    assert (state.typed, state.scenario.kv_cache_dtype, state.scenario.model) == ({}, storage, "llama-7b")


def test_an_address_with_a_format_that_its_model_cannot_be_kept_in_opens_in_the_default_one():
    state = opened("m=deepseek-v3&f=nvfp4&t=4096")
    assert (state.scenario.kv_cache_dtype, state.scenario.context_tokens) == ("bf16", 4096)
    assert state.typed == {"kv_cache_dtype": "nvfp4"}
    assert isinstance(state.problems["kv_cache_dtype"], FieldError)
    pieces(state)


# --- two ways to say one number ---


def test_the_latent_width_and_the_rank_follow_each_other():
    state = changed(opened(), latent_width="320")
    assert (state.scenario.shape.kv_lora_rank, state.scenario.shape.qk_rope_head_dim) == (256, 64)
    changed(state, kv_lora_rank="512")
    assert form(state)["latent_width"]["text"] == "576"


@pytest.mark.parametrize(
    ("wrong", "right"), [("latent_width", "kv_lora_rank"), ("kv_lora_rank", "latent_width")]
)
def test_a_good_number_in_one_of_the_two_drops_a_bad_one_in_the_other(wrong, right):
    state = changed(opened(), **{wrong: "none"})
    assert state.typed == {wrong: "none"}
    changed(state, **{right: "256"})
    assert (state.typed, state.problems) == ({}, {})


def test_of_both_in_one_batch_the_later_one_counts():
    assert changed(opened(), latent_width="576", kv_lora_rank="128").scenario.shape.kv_lora_rank == 128
    assert changed(opened(), kv_lora_rank="128", latent_width="576").scenario.shape.kv_lora_rank == 512


def test_a_width_within_its_rule_but_not_wider_than_the_rope_key_says_the_range_that_is_left():
    state = changed(opened(), latent_width="64")
    assert "65 to 16,448" in messages(state)["latent_width"]
    changed(state, qk_rope_head_dim="16")
    assert (state.typed, state.scenario.shape.kv_lora_rank) == ({}, 48)


# --- choosing a model ---


def test_a_model_brings_its_own_shape_and_drops_what_was_typed_into_the_old_one():
    state = changed(opened(), num_layers="7", kv_lora_rank="none", latent_width="none", context_tokens="none")
    assert state.typed.keys() == {"latent_width", "context_tokens"}
    changed(state, model="kimi-k2.6")
    assert state.scenario.shape == catalogue_shape("kimi-k2.6")
    assert not state.scenario.customised
    assert state.typed == {"context_tokens": "none"}


def test_what_was_changed_before_the_model_in_a_batch_belongs_to_the_old_one():
    for text in ("7", "none"):
        state = changed(
            opened(), num_layers=text, latent_width=text, tensor_parallel_size="4", model="llama-7b"
        )
        assert state.scenario.shape == catalogue_shape("llama-7b")
        assert state.scenario.tensor_parallel_size == 4
        assert (state.typed, state.problems) == ({}, {})


def test_what_was_changed_after_the_model_in_a_batch_is_of_the_new_one():
    state = changed(opened(), model="llama-7b", num_layers="7", num_kv_heads="none")
    assert state.scenario.shape.num_layers == 7
    assert state.scenario.model == "llama-7b"
    assert state.scenario.customised
    assert state.typed == {"num_kv_heads": "none"}


def test_the_same_model_again_undoes_what_was_changed_of_it():
    state = changed(opened(), num_layers="7")
    assert state.scenario.customised
    assert not changed(state, model="deepseek-v3").scenario.customised


def test_a_model_that_is_not_there_changes_nothing_and_drops_nothing():
    state = changed(opened(), kv_lora_rank="none")
    changed(state, model="no-such-model")
    assert state.scenario == Scenario()
    assert state.typed == {"kv_lora_rank": "none", "model": "no-such-model"}


def test_fields_that_become_hidden_lose_their_text_and_problem():
    state = changed(opened(), kv_lora_rank="none", context_tokens="none")
    changed(state, architecture="full")
    assert state.typed == {"context_tokens": "none"}
    assert state.problems.keys() == {"context_tokens"}
    assert messages(changed(state, architecture="mla")).keys() == {"context_tokens"}


@pytest.mark.parametrize("model", catalogue.ids())
def test_what_a_model_does_not_use_is_hidden_and_the_rest_is_not(model):
    state = changed(opened(), model=model)
    shape = state.scenario.shape
    used = shape.used() if shape else set()  # what the sliders cannot say has none of theirs
    gone = hidden(state.scenario)
    assert {name for name, item in FIELDS.items() if item.of_shape and name not in used} <= gone
    assert not gone & used
    assert ("latent_width" in gone) == ("kv_lora_rank" in gone)
    has_states = any(isinstance(cache, State) for cache in state.answer.plan.caches())
    assert ("state_dtype" in gone) == (not has_states)
    assert not gone & {"model", "kv_cache_dtype", "context_tokens", "theme"}


# --- addresses ---


def test_the_address_is_opened():
    state = opened("v=1&m=llama-7b&t=4096&tp=2&ct=8192&u=GB")
    assert (state.scenario.model, state.scenario.context_tokens, state.units) == ("llama-7b", 4096, "GB")
    assert state.compared[0].parts.total < opened().compared[0].parts.total
    assert (state.typed, state.problems, state.unknown, state.unplaced) == ({}, {}, [], [])


def test_problems_of_an_address_stand_beside_their_fields_and_what_was_in_it_stays():
    state = opened("L=0&t=many&tp=5000")
    assert state.typed == {"num_layers": "0", "context_tokens": "many", "tensor_parallel_size": "5000"}
    assert messages(state).keys() == state.typed.keys()
    assert state.scenario.shape.num_layers == 1  # the nearest
    assert state.scenario.context_tokens == 100_000  # the default
    changed(state, context_tokens="5")
    assert state.typed.keys() == {"num_layers", "tensor_parallel_size"}


def test_numbers_of_an_address_that_do_not_go_together_stand_beside_a_field_and_hold_up_no_other():
    state = opened("a=window&L=4&g=8")
    assert messages(state).keys() == {"num_global_layers"}
    changed(state, context_tokens="5")
    assert state.scenario.context_tokens == 5
    assert state.typed == {"num_global_layers": "8"}


def test_what_an_address_says_of_things_without_a_control_is_a_notice():
    state = opened("v=9&m=llama-7b&r=0&nonsense=1")  # a version, a number that the model does not have, a key
    assert messages(state) == {}
    notices = pieces(state)["notices"]
    assert notices.count("<p>") == 3
    for words in ("“9”", "kv_lora_rank", "nonsense"):
        assert words in notices
    changed(state, context_tokens="5")
    assert pieces(state)["notices"] == notices


def test_an_address_beyond_the_limit_opens_with_all_that_can_be_shown_and_says_what_cannot():
    state = opened(urlencode({"m": "llama-7b", "L": 5, "t": 2**27, "n": 10**6, "lang": "zh", "tp": 2}))
    assert state.answer.whole_model.total_bytes.value < EXACT_LIMIT
    assert (state.scenario.model, state.scenario.shape.num_layers) == ("llama-7b", 5)
    assert (state.scenario.tensor_parallel_size, state.language) == (2, "zh")
    assert state.typed == {"num_sequences": "1000000"}
    assert "9,007,199,254,740,992" in messages(state)["num_sequences"]


def test_beyond_the_limit_a_text_of_the_address_is_kept_as_it_stood():
    state = opened(urlencode({"t": 2**27, "n": 10**9}))
    assert state.typed == {"num_sequences": "1000000000"}
    assert "1,000,000" in messages(state)["num_sequences"]


# --- language and theme ---


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_language_and_theme_are_the_browsers_until_one_is_chosen(language, theme):
    state = opened(language=language, theme=theme)
    assert (state.language, state.theme) == (language, theme)
    other = {"language": "zh" if language == "en" else "en", "theme": "dark" if theme == "light" else "light"}
    state.change({}, other)  # the browser's preference changes
    assert {"language": state.language, "theme": state.theme} == other
    state.change({"language": language, "theme": theme}, other)
    assert (state.language, state.theme) == (language, theme)
    state.change({"language": "auto", "theme": "auto"}, other)
    assert {"language": state.language, "theme": state.theme} == other


def test_the_address_wins_over_the_browser():
    state = opened("lang=zh&theme=dark")
    assert (state.language, state.theme) == ("zh", "dark")


# --- whatever is done ---

NAMES = [*FIELDS, "latent_width"]


def texts(name):
    if name == "latent_width":
        return st.one_of(st.integers(0, 20_000).map(str), st.sampled_from(BAD_NUMBERS))
    legal = values(name).map(str)
    return legal if isinstance(FIELDS[name].rule, Choice) else st.one_of(legal, st.sampled_from(BAD_NUMBERS))


pairs = st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), texts(name)))
batches = st.lists(pairs, max_size=6).map(dict)


def holds(state):
    """What is true after every change."""
    assert state.answer.plan == estimate(state.scenario).plan  # does not raise
    beside = state.problems.keys() - set(NOT_CONTROLS)
    assert beside == state.typed.keys()
    assert not state.problems.keys() & hidden(state.scenario)
    shown = form(state)
    for name in beside:
        assert shown[name]["text"] == state.typed[name]
        assert shown[name]["message"] == state.problems[name].message(state.language)
    assert messages(state).keys() == beside
    for name, sentence in own.messages(state).items():
        assert bool(sentence) == (name in state.problems)


@given(st.lists(batches, max_size=5))
def test_no_changes_break_the_page(all_changes):
    state = opened()
    for changes in all_changes:
        state.change(changes, SYSTEM)
        holds(state)
        kept = (state.scenario, dict(state.typed))
        state.change({}, SYSTEM)  # nothing that was refused could have been taken
        assert (state.scenario, state.typed) == kept


@given(st.lists(batches, max_size=3), pairs)
def test_a_field_has_what_was_typed_or_keeps_it_with_a_message(before, pair):
    name, text = pair
    state = opened()
    for changes in before:
        state.change(changes, SYSTEM)
    state.change({name: text}, SYSTEM)
    if name in state.typed:
        assert state.typed[name] == text
    elif name in state.problems:
        assert name in NOT_CONTROLS
    elif name not in hidden(state.scenario):
        value = state.scenario.shape.latent_width if name == "latent_width" else state.scenario.value(name)
        assert value == parse(name, text)


addresses = st.dictionaries(
    st.sampled_from([item.key for item in FIELDS.values()] + ["v", "x"]),
    st.one_of(
        st.integers(-1, 2**28).map(str), st.text(max_size=8), *(values(name).map(str) for name in FIELDS)
    ),
    max_size=8,
).map(urlencode)


@settings(max_examples=200)
@given(addresses, batches)
def test_no_address_breaks_the_page(query, changes):
    state = opened(query)
    holds(state)
    pieces(state)
    state.change(changes, SYSTEM)
    holds(state)
