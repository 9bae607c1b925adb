"""The controls: every field once, sliders within the rules, words in both languages."""

from itertools import pairwise

import pytest

from calculator.app.controls import GROUPS, controls, form, option_text
from calculator.app.state import OWN_FIELDS
from calculator.caches import MLA, bounds
from calculator.fields import FIELDS, Memory, Whole, parse
from calculator.formats import KV_FORMATS, PLAIN
from calculator.locales import LANGUAGES, catalogue
from tests.app.page import changed, opened

CONTROLS = {control.field: control for control in controls()}
SLIDERS = {name: control for name, control in CONTROLS.items() if control.stops}
NUMBERS = {name: control for name, control in SLIDERS.items() if isinstance(FIELDS[name].rule, Whole)}
every_slider = pytest.mark.parametrize("name", SLIDERS)
every_number = pytest.mark.parametrize("name", NUMBERS)


def limits(name):
    if name == "latent_width":
        return tuple(map(sum, zip(bounds(MLA, "kv_lora_rank"), bounds(MLA, "qk_rope_head_dim"), strict=True)))
    return FIELDS[name].rule.lowest, FIELDS[name].rule.highest


def test_every_field_is_offered_exactly_once_and_the_latent_width_beside_the_rank():
    offered = [control.field for group in GROUPS.values() for control in group]
    in_tabs = {*OWN_FIELDS, "compared", "pins", "tab"}
    assert sorted(offered) == sorted([*FIELDS.keys() - in_tabs, "latent_width"])


def test_the_sliders_of_the_task_are_sliders():
    wanted = {"num_layers", "kv_lora_rank", "sliding_window", "tensor_parallel_size", "kv_cache_dtype"}
    wanted |= {"num_kv_heads", "head_size", "qk_rope_head_dim", "num_global_layers", "context_tokens"}
    assert wanted | {"num_sequences", "compare_tokens"} <= SLIDERS.keys()


@every_number
def test_stops_are_sorted_distinct_and_within_the_rule(name):
    stops = SLIDERS[name].stops
    lowest, highest = limits(name)
    assert all(before < after for before, after in pairwise(stops))
    assert lowest <= stops[0]
    assert stops[-1] <= highest


@pytest.mark.parametrize("name", sorted(SLIDERS.keys() - NUMBERS.keys()))
def test_a_slider_over_options_stops_at_the_plain_ones_once_and_the_list_beside_it_has_all(name):
    plain = {storage.name for storage in PLAIN}
    assert sorted(SLIDERS[name].stops) == sorted(plain & set(FIELDS[name].rule.options))
    assert SLIDERS[name].options == FIELDS[name].rule.options


def test_every_format_can_be_chosen_from_the_list():
    assert CONTROLS["kv_cache_dtype"].options == KV_FORMATS
    shown = form(changed(opened(), kv_cache_dtype="fp4_e2m1"))["kv_cache_dtype"]
    assert (shown["text"], shown["message"]) == ("fp4_e2m1", "")


@every_number
def test_every_value_of_the_default_models_is_near_a_stop(name):
    for architecture in FIELDS["architecture"].rule.options:
        state = changed(opened(), architecture=architecture)
        value = state.scenario.value(name)
        assert SLIDERS[name].stops[0] <= value <= SLIDERS[name].stops[-1]


@every_slider
def test_every_stop_can_be_taken_and_the_slider_stands_on_it(name):
    state = changed(opened(), architecture="full", num_layers="128")  # not narrowed by another field
    for position, stop in enumerate(SLIDERS[name].stops):
        changed(state, **{name: str(stop)})
        assert state.problems == {}
        assert form(state)[name]["position"] == position


@every_number
def test_between_and_beyond_the_stops_the_slider_stands_on_the_nearest(name):
    stops = SLIDERS[name].stops
    lowest, highest = limits(name)
    near = (stops[0], stops[len(stops) // 2], stops[-1])
    tried = {lowest, highest, *(stop + 1 for stop in near), *(stop - 1 for stop in near)}
    state = changed(opened(), architecture="full", num_layers="1024", context_tokens="1")
    for value in sorted(value for value in tried if lowest <= value <= highest):
        changed(state, **{name: str(value)})
        assert state.problems == {}
        shown = form(state)[name]
        assert parse(name, shown["text"]) == value
        assert shown["text"].startswith(f"{value:,}") or SLIDERS[name].unit == ""
        assert abs(stops[shown["position"]] - value) == min(abs(stop - value) for stop in stops)


def test_the_slider_of_full_attention_layers_ends_at_the_layers():
    state = changed(opened(), architecture="window", num_layers="48", num_global_layers="48")
    shown = form(state)["num_global_layers"]
    assert (shown["most"], shown["position"]) == (48, 48)
    changed(state, num_layers="1000")
    assert form(state)["num_global_layers"]["most"] == len(CONTROLS["num_global_layers"].stops) - 1


@pytest.mark.parametrize("architecture", FIELDS["architecture"].rule.options)
def test_a_slider_never_stands_beyond_its_end(architecture):
    shown = form(changed(opened(), architecture=architecture))
    assert shown.keys() == CONTROLS.keys()
    for name in SLIDERS:
        if not shown[name]["hidden"]:
            assert 0 <= shown[name]["position"] <= shown[name]["most"] < len(SLIDERS[name].stops)


def test_the_form_shows_the_default_scenario():
    shown = form(opened())
    texts = {name: shown[name]["text"] for name in ("num_layers", "kv_lora_rank", "latent_width", "model")}
    assert texts == {"num_layers": "61", "kv_lora_rank": "512", "latent_width": "576", "model": "deepseek-v3"}
    assert shown["context_tokens"]["text"] == "100,000"
    assert not any(control["message"] for control in shown.values())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", [name for name, control in CONTROLS.items() if control.options])
def test_every_option_has_words_of_its_own(language, name):
    options = CONTROLS[name].options
    assert options == FIELDS[name].rule.options
    words = [option_text(language, name, option) for option in options]
    assert len(set(words)) == len(words)
    assert all(words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_unit_of_a_slider_has_a_word(language):
    units = {control.unit for control in CONTROLS.values() if control.unit}
    assert units <= catalogue(language).keys()
    without = {name for name in NUMBERS if not CONTROLS[name].unit}
    assert all(isinstance(FIELDS[name].rule, Memory) for name in without), "its text says its own"
