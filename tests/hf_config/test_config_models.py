"""Published configurations, against figures that other programs computed."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from calculator import catalogue
from calculator.caches import Cache, FullAttention, Growth, SlidingWindow
from calculator.errors import ConfigError
from calculator.formats import Storage
from calculator.hf_config import read_config
from calculator.locales import LANGUAGES, text
from calculator.model import ModelPlan

FAR = 10**9  # a context beyond every window


def bytes_by_growth(plan: ModelPlan) -> tuple[int, int, int]:
    """Bytes per token, of full windows, and of states, over all layers."""
    sums = dict.fromkeys(Growth, 0)
    for layer in plan.layers:
        for cache in layer:
            units = 1 if cache.growth is Growth.LINEAR else cache.units(FAR)
            sums[cache.growth] += int(cache.unit_bytes(Storage(), 1).value) * units
    return sums[Growth.LINEAR], sums[Growth.BOUNDED], sums[Growth.CONSTANT]


# Bytes per token, window, state: the sizes of one layer times the layers that have it.
@pytest.mark.parametrize(
    ("model", "per_token", "bounded", "constant"),
    [
        ("llama-7b", 524_288, 0, 0),
        ("llama-3.1-8b", 131_072, 0, 0),
        ("deepseek-v2", 69_120, 0, 0),
        ("deepseek-v3", 70_272, 0, 0),
        ("deepseek-v3.2", 61 * (1_152 + 132), 0, 0),
        ("mistral-7b-v0.1", 0, 536_870_912, 0),
        ("gemma-3-27b", 10 * 2 * 16 * 128 * 2, 52 * 2 * 16 * 128 * 2 * 1024, 0),
        ("qwen3.5-397b-a17b", 30_720, 0, 192_061_440),
        ("kimi-k2.6", 70_272, 0, 0),
        ("glm-5.1", 100_152, 0, 0),
        ("minimax-m2.7", 253_952, 0, 0),
    ],
)
def test_catalogue_figures(model, per_token, bounded, constant):
    assert bytes_by_growth(catalogue.plan(model)) == (per_token, bounded, constant)


def full_layers(model: str) -> list[int]:
    return [
        index for index, layer in enumerate(catalogue.plan(model).layers) if type(layer[0]) is FullAttention
    ]


def test_every_sixth_layer_of_gemma_3_is_full():
    assert full_layers("gemma-3-27b") == [5, 11, 17, 23, 29, 35, 41, 47, 53, 59]
    assert len(catalogue.plan("gemma-3-27b").layers) == 62


def test_every_fourth_layer_of_qwen_3_5_is_full():
    assert full_layers("qwen3.5-397b-a17b") == list(range(3, 60, 4))


@pytest.mark.parametrize("model", catalogue.ids())
def test_every_number_has_an_origin(model):
    plan = catalogue.plan(model)
    sizes = {
        field.name
        for group in plan.groups()
        for cache in group.caches
        for field in fields(cache)
        if type(getattr(cache, field.name)) is int
    }
    told = {name.rpartition(".")[2] for name in plan.provenance}
    beside = {"layers", "layer_pattern"} | {
        name for name in ("architecture", "context_hint") if getattr(plan, name)
    }
    assert sizes | beside == told - {"index_owners"}
    assert all(plan.provenance.values())


def test_origins_name_the_key_the_derivation_or_the_class():
    llama = catalogue.plan("llama-3.1-8b").provenance
    assert llama["num_kv_heads"] == "num_key_value_heads"
    assert llama["head_size"] == llama["head_size_v"] == "derived: hidden_size / num_attention_heads"
    gemma = catalogue.plan("gemma-3-27b").provenance
    assert gemma["num_kv_heads"] == "text_config.num_key_value_heads"
    assert gemma["layer_pattern"] == "class default of gemma3_text"
    assert catalogue.plan("qwen3.5-397b-a17b").provenance["layer_pattern"] == "text_config.layer_types"


def notes(config: dict) -> dict[str, object]:
    return dict(read_config(config).warnings)


def llama(**changed: object) -> dict[str, object]:
    return {**catalogue.entry("llama-3.1-8b").config, **changed}


def mistral(**changed: object) -> dict[str, object]:
    return {**catalogue.entry("mistral-7b-v0.1").config, **changed}


def only_cache(config: dict) -> Cache:
    (group,) = read_config(config).groups()
    (cache,) = group.caches
    return cache


def test_text_and_object_give_the_same_plan():
    assert read_config(json.dumps(llama())) == read_config(llama())


def test_bare_infinity_and_nan_are_accepted():
    published = json.dumps(llama(time_step_limit=[0.0, float("inf")], other=float("nan")))
    assert "Infinity" in published
    assert read_config(published) == read_config(llama())


def test_head_dim_wins_over_the_quotient():
    assert only_cache(llama(head_dim=256)).head_size == 256


def test_absent_and_null_kv_heads_are_the_attention_heads():
    config = llama(num_key_value_heads=None)
    assert only_cache(config).num_kv_heads == 32
    del config["num_key_value_heads"]
    assert only_cache(config).num_kv_heads == 32
    assert read_config(config).provenance["num_kv_heads"] == "derived: num_attention_heads"
    assert notes(config) == {"config.note.heads": {"field": "num_key_value_heads", "value": 32}}


def test_null_or_switched_off_window_leaves_full_attention():
    assert type(only_cache(mistral(sliding_window=None))) is FullAttention
    assert type(only_cache(mistral(use_sliding_window=False))) is FullAttention
    assert type(only_cache(mistral(use_sliding_window=True))) is SlidingWindow


def test_absent_window_of_mistral_is_the_class_default_and_said():
    config = mistral()
    del config["sliding_window"]
    assert only_cache(config) == only_cache(mistral(sliding_window=4096))
    assert notes(config)["config.note.default"] == {
        "field": "sliding_window",
        "value": 4096,
        "model_type": "mistral",
    }


def test_window_as_long_as_the_context_is_full_attention_and_noted():
    config = mistral(sliding_window=32_768)
    assert type(only_cache(config)) is FullAttention
    assert notes(config)["config.note.window"]["context"] == 32_768
    assert type(only_cache(mistral(sliding_window=32_767))) is SlidingWindow
    assert type(only_cache(mistral(max_position_embeddings=None))) is SlidingWindow


def test_context_is_only_a_hint():
    assert read_config(llama()).context_hint == 131_072
    plan = read_config(llama(max_position_embeddings=None))
    assert plan.context_hint is None
    assert "context_hint" not in plan.provenance


def test_layer_types_win_over_the_window():
    words = ["attention", "sliding_attention"] * 16
    kinds = [type(layer[0]) for layer in read_config(mistral(layer_types=words)).layers]
    assert kinds == [FullAttention, SlidingWindow] * 16


def test_the_tail_of_a_longer_list_belongs_to_the_draft_layers():
    config = {**catalogue.entry("minimax-m2.7").config, "attn_type_list": [1] * 65}
    assert read_config(config) == catalogue.plan("minimax-m2.7")


def test_draft_layers_are_noted_and_not_counted():
    assert notes(catalogue.entry("minimax-m2.7").config) == {
        "config.note.mtp": {"field": "num_mtp_modules", "value": 3}
    }
    without = {**catalogue.entry("minimax-m2.7").config, "mtp_transformer_layers": None}
    assert notes(without) == notes(catalogue.entry("minimax-m2.7").config)
    assert notes(catalogue.entry("kimi-k2.6").config) == {}


def test_declared_kv_format_is_noted():
    scheme = {"num_bits": 8, "type": "float"}
    noted = notes(llama(quantization_config={"kv_cache_scheme": scheme}))
    assert noted == {
        "config.note.kv_format": {
            "field": "quantization_config.kv_cache_scheme",
            "value": "float",
            "bits": 8,
        }
    }
    assert notes(llama(quantization_config={"kv_cache_scheme": None})) == {}
    assert notes(llama(quantization_config={"quant_method": "fp8"})) == {}


def test_gemma_3_4b_lacks_head_counts():
    config = {
        "model_type": "gemma3",
        "text_config": {"hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024},
    }
    plan = read_config(config)
    assert bytes_by_growth(plan) == (5 * 2 * 4 * 256 * 2, 29 * 2 * 4 * 256 * 2 * 1024, 0)
    assert plan.context_hint == 131_072
    assert plan.provenance["num_kv_heads"] == "class default of gemma3_text"


def test_qwen_3_5_without_a_list_uses_the_interval():
    config = json.loads(json.dumps(catalogue.entry("qwen3.5-397b-a17b").config))
    del config["text_config"]["layer_types"]
    config["text_config"]["full_attention_interval"] = 4
    assert read_config(config) == catalogue.plan("qwen3.5-397b-a17b")
    assert read_config(config["text_config"]).layers == catalogue.plan("qwen3.5-397b-a17b").layers


@pytest.mark.parametrize("place", ["text_config", "language_config", "llm_config", "thinker_config"])
def test_text_part_is_found_wherever_it_is(place):
    nested = {"text_config": llama()} if place == "thinker_config" else llama()
    plan = read_config({"model_type": "llama", place: nested, "vision_config": {"num_hidden_layers": 7}})
    assert plan == read_config(llama())


def test_text_part_may_be_the_only_one_with_a_model_type():
    assert read_config({"text_config": llama()}) == read_config(llama())


def test_shared_indexer_layers_follow_from_the_frequency():
    path = Path(__file__).parent / "configs" / "zai-org__GLM-5.2.json"
    published = json.loads(path.read_text(encoding="utf-8"))
    config = {**published, "indexer_types": None}
    assert read_config(config) == read_config(published)
    every = {**config, "index_topk_freq": 1, "index_skip_topk_offset": None}
    assert len(read_config(every).groups()) == 1


def test_older_word_for_indexed_layers():
    config = catalogue.entry("deepseek-v3.2").config
    assert read_config({**config, "layer_types": ["deepseek_sparse_attention"] * 61}) == read_config(config)


def test_notes_have_a_sentence_in_every_language():
    noted = {
        **notes(catalogue.entry("gemma-3-27b").config),
        **notes(catalogue.entry("minimax-m2.7").config),
        **notes(mistral(sliding_window=32_768)),
        **notes(llama(num_key_value_heads=None)),
        **notes(llama(quantization_config={"kv_cache_scheme": {"num_bits": 8, "type": "float"}})),
    }
    assert len(noted) == 5
    for key, values in noted.items():
        for language in LANGUAGES:
            assert values["field"] in text(language, key, **values)


def test_mla_is_not_computed_where_the_file_switches_it_off():
    with pytest.raises(ConfigError, match="use_mla: false"):
        read_config({**catalogue.entry("deepseek-v2").config, "use_mla": False})
