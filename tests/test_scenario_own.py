"""A model of one's own in a scenario: a configuration, layers in text, replaced numbers, pins."""

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest

from calculator import catalogue
from calculator.caches import MLA
from calculator.errors import FieldError
from calculator.fields import FIELDS
from calculator.own import pins
from calculator.packing import packed
from calculator.scenario import Opened, Scenario, catalogue_shape, open_address

UNSAYABLE = "deepseek-v4-flash"
LLAMA = json.dumps(catalogue.entry("llama-3.1-8b").config | {"vocab_size": 128_256, "rope_theta": 5e5})
HYBRID = (
    "15*(3*gated_delta_net(conv_kernel=4,linear_num_key_heads=16,linear_num_value_heads=64,"
    "linear_key_head_dim=128,linear_value_head_dim=128)+full_attention(num_kv_heads=2,head_size=256,"
    "head_size_v=256))"
)


def test_an_imported_configuration_takes_the_place_of_the_catalogue_model():
    scenario = Scenario().changed({"config": LLAMA, "own_name": "  My  model ", "context_tokens": "8K"})
    assert scenario.own
    assert not scenario.customised
    assert scenario.plan().layers == catalogue.plan("llama-3.1-8b").layers
    assert scenario.plan().provenance == catalogue.plan("llama-3.1-8b").provenance
    assert scenario.shape == catalogue_shape("llama-3.1-8b")
    assert "vocab_size" not in scenario.config, "only what decides the plan is kept"
    written = scenario.as_json()
    assert (written["model"], written["own_name"]) == (None, "My model")
    assert json.loads(written["config"])["num_hidden_layers"] == 32


def test_the_address_of_an_imported_configuration_is_short_and_whole():
    scenario = Scenario().changed({"config": LLAMA, "own_name": "Mine", "num_layers": 48})
    assert "&m=" not in scenario.address()
    assert len(scenario.address()) < 400
    assert open_address(scenario.address()) == Opened(scenario=scenario)


@pytest.mark.parametrize("model", catalogue.ids())
def test_every_catalogue_model_can_be_carried_as_a_configuration(model):
    config = json.dumps(catalogue.entry(model).config)
    scenario = Scenario().changed({"config": config})
    assert scenario.plan() == catalogue.plan(model)
    assert len(scenario.address()) < 1_000
    assert open_address(scenario.address()).scenario == scenario


def test_a_file_can_be_given_by_its_path(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("\ufeff" + LLAMA, encoding="utf-8")
    assert Scenario().changed({"config": path}) == Scenario().changed({"config": LLAMA})


def test_layers_described_by_hand_are_a_model_with_sliders_where_they_can_say_it():
    scenario = Scenario().changed({"layers": HYBRID})
    assert scenario.plan().layers == catalogue.plan("qwen3.5-397b-a17b").layers
    assert scenario.shape == catalogue_shape("qwen3.5-397b-a17b")
    assert scenario.address().startswith("v=1&l=15*(3*gated_delta_net(conv_kernel=4,")
    assert open_address(scenario.address()).scenario == scenario


def test_numbers_of_any_model_can_be_replaced():
    flash = Scenario().changed({"model": UNSAYABLE, "overrides": "0.0.sliding_window=256"})
    assert flash.customised
    assert next(flash.plan().caches()).sliding_window == 256
    assert flash.address() == f"v=1&m={UNSAYABLE}&o=0.0.sliding_window=256"
    assert open_address(flash.address()).scenario == flash
    own = (
        Scenario().changed({"config": LLAMA, "own_name": "Mine"}).changed({"overrides": "0.0.num_kv_heads=4"})
    )
    assert (own.own_name, own.shape.num_kv_heads) == ("Mine", 4)
    assert open_address(own.address()).scenario == own


def test_a_replaced_number_keeps_what_the_sliders_changed():
    moved = Scenario().changed({"num_layers": 5}).changed({"overrides": "0.0.kv_lora_rank=256"})
    assert moved.layers == "5*mla(kv_lora_rank=512,qk_rope_head_dim=64)"
    assert moved.plan().layers == ((MLA(kv_lora_rank=256, qk_rope_head_dim=64),),) * 5
    assert open_address(moved.address()).scenario == moved


def test_models_take_each_others_place():
    own = Scenario().changed({"config": LLAMA, "overrides": "0.0.num_kv_heads=4", "own_name": "Mine"})
    assert own.changed({"model": "deepseek-v3"}) == Scenario()
    described = own.changed({"layers": HYBRID})
    assert (described.config, described.overrides, described.own_name) == ("", "", "")
    assert described.changed({"layers": ""}) == Scenario()


def test_a_set_of_models_and_pins_is_part_of_the_link_but_not_of_the_numbers():
    pin = [["Mine <b>", HYBRID.replace("+", " ")]]
    scenario = Scenario().changed({"compared": "glm-5.1, this,glm-5.1", "pins": json.dumps(pin)})
    assert scenario.compared == "glm-5.1,this"
    assert pins(scenario.pins) == [("Mine <b>", HYBRID)]
    assert "compared" not in scenario.as_json()
    assert open_address(scenario.address()).scenario == scenario
    assert pins(scenario.changed({"pins": ""}).pins) == []


@pytest.mark.parametrize(
    ("field", "given", "key"),
    [
        ("config", '{"model_type": "nope"}', "config.missing"),
        ("config", "{", "config.json"),
        ("config", packed('{"model_type":"nope"}'), "config.missing"),
        ("config", packed("[]"), "config.object"),
        ("config", "nonsense!", "error.packed"),
        ("config", Path("/nowhere/config.json"), "config.file"),
        ("layers", "full", "error.layers_kind"),
        ("overrides", "9.9.head_size=1", "error.overrides_place"),
        ("own_name", "x" * 61, "error.name"),
        ("own_name", "a\u0000b", "error.name"),
        ("compared", "glm-5.1,glm-9", "error.model"),
        ("compared", ",".join(catalogue.ids()), "error.many"),
        ("pins", '[["a", "full"]]', "error.layers_kind"),
        ("pins", '[["a"]]', "error.packed"),
        ("pins", "[1]", "error.packed"),
        ("pins", json.dumps([["a", "none"]] * 41), "error.many"),
    ],
)
def test_what_is_wrong_in_it_is_told_at_its_field_and_left_out_of_a_link(field, given, key):
    with pytest.raises(FieldError) as caught:
        Scenario().changed({field: given})
    assert (caught.value.key, caught.value.field) == (key, field)
    opened = open_address(urlencode({FIELDS[field].key: given, "tp": 8}))
    assert [problem.field for problem in opened.problems] == [field]
    assert opened.scenario == Scenario(tensor_parallel_size=8)


def test_a_version_of_the_other_engine_in_a_link_is_left_out():
    opened = open_address("e=vllm&ev=0.5.13&tp=2")
    assert [problem.field for problem in opened.problems] == ["engine_version"]
    assert opened.scenario == Scenario().changed({"engine": "vllm", "tensor_parallel_size": 2})


# --- the configuration behind a model ---


def test_the_published_configuration_is_that_of_the_model_that_was_read():
    assert Scenario().published == catalogue.entry("deepseek-v3").config
    imported = Scenario().changed({"config": LLAMA})
    assert imported.published["num_hidden_layers"] == 32
    assert Scenario().changed({"layers": HYBRID}).published is None


def test_groups_for_replaced_numbers_are_those_of_the_model_as_it_stands():
    scenario = Scenario().changed({"overrides": "0.0.kv_lora_rank=256"})
    assert scenario.unreplaced() == catalogue.plan("deepseek-v3")
    moved = Scenario().changed({"num_layers": 3})
    assert moved.unreplaced() == moved.plan()
