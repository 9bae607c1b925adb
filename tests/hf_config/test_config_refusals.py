"""Every refusal names the key, the value and what to do, in both languages."""

import json
from collections.abc import Mapping

import pytest

from calculator import catalogue
from calculator.errors import ConfigError
from calculator.hf_config import read_config
from calculator.hf_config.plain_text import shown
from calculator.locales import LANGUAGES

GONE = object()


def changed(model: str, path: str, value: object) -> dict:
    """The catalogue's configuration with one key set or removed."""
    config = json.loads(json.dumps(catalogue.entry(model).config))
    *parts, key = path.split("/")
    place = config
    for part in parts:
        place = place[part]
    if value is GONE:
        del place[key]
    else:
        place[key] = value
    return config


def refused(source: object, key: str, field: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_config(source)
    error = caught.value
    assert (error.key, error.field) == (key, field), str(error)
    for language in LANGUAGES:
        assert error.message(language).startswith(field)
    return error


@pytest.mark.parametrize(
    ("source", "key", "field"),
    [
        ("", "config.json", "config.json"),
        ("{'model_type': 'llama'}", "config.json", "config.json"),
        ('{"model_type": "llama"', "config.json", "config.json"),
        ("[1]", "config.object", "config.json"),
        ("null", "config.object", "config.json"),
        ("17", "config.object", "config.json"),
        (None, "config.object", "config.json"),
        ('{"a": 1, "a": 1}', "config.duplicate", "a"),
        ('{"a": {"b": 1, "b": 2}}', "config.duplicate", "b"),
        ('{"a": ' + "9" * 5000 + "}", "config.deep", "config.json"),
        ("[" * 200_000, "config.deep", "config.json"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_text_that_is_no_configuration(source, key, field):
    refused(source, key, field)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "num_hidden_layers"),
        ({"model_type": None}, "num_hidden_layers"),
        ({"text_config": {}}, "text_config.num_hidden_layers"),
        ({"model_type": "no_such_model", "num_hidden_layers": 2}, "hidden_size"),
        (
            {"model_type": "internvl", "text_config": {"model_type": "internlm2"}},
            "text_config.num_hidden_layers",
        ),
    ],
)
def test_a_file_that_says_too_little(config, field):
    refused(config, "config.missing", field)


@pytest.mark.parametrize(
    ("config", "field", "value"),
    [
        ({"model_type": "xlstm"}, "model_type", "xlstm"),
        ({"model_type": "reformer", "text_config": {"model_type": "llama"}}, "model_type", "reformer"),
        ({"text_config": {"model_type": "zaya"}}, "text_config.model_type", "zaya"),
    ],
)
def test_model_types_whose_caches_have_no_kind_here(config, field, value):
    message = str(refused(config, "config.model_type", field))
    assert value in message
    assert "sliders" in message


LLAMA, MISTRAL, GEMMA = "llama-3.1-8b", "mistral-7b-v0.1", "gemma-3-27b"
QWEN, GLM, MINIMAX, DEEPSEEK = "qwen3.5-397b-a17b", "glm-5.1", "minimax-m2.7", "deepseek-v3.2"


@pytest.mark.parametrize(
    ("model", "path", "value", "key"),
    [
        (LLAMA, "num_hidden_layers", None, "missing"),
        (LLAMA, "num_hidden_layers", True, "whole"),
        (LLAMA, "num_hidden_layers", "32", "whole"),
        (LLAMA, "num_hidden_layers", 32.0, "whole"),
        (LLAMA, "num_hidden_layers", float("nan"), "whole"),
        (LLAMA, "num_hidden_layers", [32], "whole"),
        (LLAMA, "num_hidden_layers", {}, "whole"),
        (LLAMA, "num_hidden_layers", 0, "range"),
        (LLAMA, "num_hidden_layers", -1, "range"),
        (LLAMA, "num_hidden_layers", 1025, "range"),
        (LLAMA, "num_key_value_heads", 0, "range"),
        (LLAMA, "head_dim", 5000, "range"),
        (LLAMA, "hidden_size", 4095, "divides"),
        (LLAMA, "hidden_size", 32 * 5000, "range"),
        (LLAMA, "hidden_size", 10**5000, "range"),
        (LLAMA, "max_position_embeddings", "long", "whole"),
        (LLAMA, "model_type", 7, "text"),
        (LLAMA, "model_type", "", "text"),
        (LLAMA, "text_config", "nested", "object"),
        (LLAMA, "layer_types", "full_attention", "list"),
        (LLAMA, "layer_types", ["full_attention"] * 31, "length"),
        (LLAMA, "sliding_window", 4096, "unread"),
        (LLAMA, "kv_lora_rank", 512, "unread"),
        (LLAMA, "num_kv_shared_layers", 4, "unread"),
        (LLAMA, "quantization_config", [], "object"),
        (MISTRAL, "sliding_window", 0, "range"),
        (MISTRAL, "use_sliding_window", "no", "flag"),
        (MISTRAL, "max_window_layers", 8, "unread"),
        (GEMMA, "text_config/sliding_window", None, "missing"),
        (GEMMA, "text_config/sliding_window", 2**30, "range"),
        (GEMMA, "text_config/sliding_window_pattern", "", "whole"),
        (GEMMA, "text_config/use_sliding_window", False, "contradiction"),
        (GEMMA, "text_config/head_dim", None, "missing"),
        (GEMMA, "text_config/use_bidirectional_attention", True, "unread"),
        (QWEN, "text_config/linear_num_value_heads", None, "missing"),
        (QWEN, "text_config/linear_num_value_heads", 63, "divides"),
        (QWEN, "text_config/linear_conv_kernel_dim", 300, "range"),
        (QWEN, "text_config/linear_key_head_dim", None, "missing"),
        (QWEN, "text_config/mtp_num_hidden_layers", -1, "range"),
        (DEEPSEEK, "kv_lora_rank", None, "missing"),
        (DEEPSEEK, "kv_lora_rank", 0, "range"),
        (DEEPSEEK, "qk_rope_head_dim", None, "missing"),
        (DEEPSEEK, "qk_rope_head_dim", 0, "range"),
        (DEEPSEEK, "index_head_dim", 5000, "range"),
        (DEEPSEEK, "use_mla", False, "unread"),
        (GLM, "indexer_types", ["full"] * 10, "length"),
        (GLM, "index_topk_pattern", ["F"] * 10, "length"),
        (MINIMAX, "attn_type_list", [1] * 61, "length"),
        (MINIMAX, "attn_type_list", [1] * 71, "length"),
    ],
    ids=shown,
)
def test_refused_key(model, path, value, key):
    field = path.replace("/", ".")
    error = refused(changed(model, path, value), f"config.{key}", field)
    if "value" in error.values and isinstance(value, str | int):
        assert error.values["value"] in {shown(value), value, "5,000"}  # a head size is derived: 160,000 / 32


def test_head_counts_that_do_not_fit():
    error = refused(changed(LLAMA, "num_key_value_heads", 5), "config.divides", "num_attention_heads")
    assert "num_key_value_heads = 5" in str(error)


@pytest.mark.parametrize("value", [True, 2, "1"])
def test_unknown_attention_code(value):
    codes = [1] * 61 + [value]
    refused(changed(MINIMAX, "attn_type_list", codes), "config.word", "attn_type_list[61]")


@pytest.mark.parametrize("word", ["linear_attentions", "Full_Attention", "", 3, None])
def test_unknown_layer_word(word):
    words = ["full_attention"] * 31 + [word]
    error = refused(changed(LLAMA, "layer_types", words), "config.word", "layer_types[31]")
    assert "full_attention" in str(error)


@pytest.mark.parametrize("kinds", [["shared"] + ["full"] * 77, ["full"] * 77 + ["half"]])
def test_unknown_indexer_word(kinds):
    position = 0 if kinds[0] == "shared" else 77
    refused(changed(GLM, "indexer_types", kinds), "config.word", f"indexer_types[{position}]")


def test_index_frequency_needs_its_offset():
    config = changed(GLM, "index_topk_freq", 4) | {"model_type": "no_such_model"}
    refused(config, "config.missing", "index_skip_topk_offset")


def test_a_pattern_is_needed_where_layers_differ():
    refused({"model_type": "muse_spark_text", "num_hidden_layers": 4}, "config.missing", "layer_types")


def test_two_text_parts():
    refused({"text_config": {}, "llm_config": {}}, "config.ambiguous", "text_config, llm_config")


def test_malformed_kv_format():
    scheme = changed(LLAMA, "quantization_config", {"kv_cache_scheme": {"num_bits": "8"}})
    refused(scheme, "config.whole", "quantization_config.kv_cache_scheme.num_bits")


class Odd(Mapping):
    """A mapping of another make than dict."""

    def __getitem__(self, key):
        return {"model_type": "llama"}[key]

    def __iter__(self):
        return iter(["model_type"])

    def __len__(self):
        return 1


def test_any_mapping_is_read():
    assert len(read_config(Odd()).layers) == 32


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (1024, "1,024"),
        (10**5000, "> 2^64"),
        (-(10**5000), "< -2^64"),
        (1.5, "1.5"),
        (float("inf"), "inf"),
        ("x" * 100, "x" * 40 + "…"),
        ("a\nb\ud800\u202e", "a�b��"),
        ({}, "{}"),
        ({"a": 1}, "{…}"),
        ([], "[]"),
        ((1,), "[…]"),
        (b"", "bytes"),
    ],
    ids=shown,
)
def test_values_are_shown_as_one_plain_line(value, line):
    assert shown(value) == line
