"""Which layers slide or are chunked, and when a window counts."""

import pytest

from calculator.hf_config import read_config
from tests.hf_config.reading import ROW, figures, kinds, notes, of, plain, refused


def slides(config: dict) -> list[int]:
    return [layer for layer, kind in enumerate(kinds(read_config(config))) if kind == "sliding_window"]


WINDOWED = {"sliding_window": 128, "num_hidden_layers": 6}


@pytest.mark.parametrize(
    ("config", "sliding"),
    [
        (of("mistral", **WINDOWED), [0, 1, 2, 3, 4, 5]),
        (of("mistral", **WINDOWED, max_position_embeddings=128), []),
        (of("qwen2", **WINDOWED), []),
        (of("qwen2", **WINDOWED, use_sliding_window=True, max_window_layers=4), [4, 5]),
        (of("qwen2", **WINDOWED, use_sliding_window=True, max_window_layers=6), []),
        (of("mimo", **WINDOWED, max_window_layers=4), []),
        (of("mimo", **WINDOWED, use_sliding_window=True), [0, 1, 2, 3, 4, 5]),
        (of("gemma2", **WINDOWED), [0, 2, 4]),
        (of("cohere2", **WINDOWED), [0, 1, 2, 4, 5]),
        (of("gemma3_text", **WINDOWED), [0, 1, 2, 3, 4]),
        (of("gemma3_text", **WINDOWED, _sliding_window_pattern=3), [0, 1, 2, 3, 4]),
        (of("granite_swa", **WINDOWED), [1, 2, 3, 5]),
        (of("exaone4", **WINDOWED, sliding_window_pattern="LLG"), [0, 1, 3, 4]),
        (of("exaone4", num_hidden_layers=6, sliding_window=None, sliding_window_pattern=None), []),
        (
            of(
                "mimo_v2_flash", **WINDOWED, hybrid_layer_pattern=[0, 1, 1, 0, 1, 1], attention_chunk_size=128
            ),
            [1, 2, 4, 5],
        ),
        (of("mimo_v2", **WINDOWED, full_attention_layers=2, sliding_attention_layers=4), [2, 3, 4, 5]),
        (of("phi3", **WINDOWED, layer_types=["full_attention"] * 6), []),
    ],
)
def test_which_layers_slide(config, sliding):
    assert slides(config) == sliding


def test_the_longest_stated_context_decides_whether_a_window_binds():
    stated = {"max_position_embeddings": 128, "model_max_length": 4096}
    assert slides(of("mistral", **WINDOWED, **stated)) == [0, 1, 2, 3, 4, 5]
    assert read_config(of("mistral", **WINDOWED, **stated)).context_hint == 4096


@pytest.mark.parametrize(
    ("config", "key", "field"),
    [
        (of("llama", sliding_window=128), "unread", "sliding_window"),
        (of("mistral", **WINDOWED, max_window_layers=2), "unread", "max_window_layers"),
        (of("exaone4", sliding_window_pattern="LLX"), "word", "sliding_window_pattern[2]"),
        (of("mimo_v2_flash", hybrid_layer_pattern=[0, 1, 2, 0]), "word", "hybrid_layer_pattern[2]"),
        (
            of("mimo_v2", full_attention_layers=2, sliding_attention_layers=1),
            "length",
            "full_attention_layers",
        ),
        (of("phi3", layer_types=["sliding_attention"] * 4), "missing", "sliding_window"),
        (of("deepseek_v3", layer_types=["sliding_attention"] * 4), "missing", "sliding_window"),
        (of("qwen3", layer_types=["indexed_attention"] * 4), "unread", "layer_types"),
        (of("gemma3_text", full_attention_interval=2), "unread", "full_attention_interval"),
        (of("llama", layer_types=["linear_attention"] * 4), "recurrence", "layer_types"),
        (of("llama4_text", no_rope_layers=[1, 1, 2, 0]), "word", "no_rope_layers[2]"),
        (plain(attention_chunk_size=128), "unread", "attention_chunk_size"),
    ],
)
def test_patterns_that_do_not_fit(config, key, field):
    refused(config, key, field)


def test_counts_without_an_order_are_said_to_be_so():
    plan = read_config(of("mimo_v2", **WINDOWED, full_attention_layers=2, sliding_attention_layers=4))
    assert notes(plan)["order"]["count"] == 6


@pytest.mark.parametrize(
    ("changed", "chunked"),
    [
        ({}, [0, 1, 2, 4, 5, 6]),
        ({"no_rope_layers": []}, [0, 1, 2, 4, 5, 6]),
        ({"no_rope_layer_interval": 2}, [0, 2, 4, 6]),
        ({"no_rope_layers": [1, 0, 1, 0, 0, 0, 0, 0]}, [0, 2]),
        ({"layer_types": ["chunked_attention", *["full_attention"] * 7]}, [0]),
        ({"max_position_embeddings": 8192}, []),
        ({"attention_chunk_size": None}, []),
    ],
)
def test_layers_with_rotary_embedding_are_chunked(changed, chunked):
    plan = read_config(of("llama4_text", num_hidden_layers=8, **changed))
    assert [layer for layer, kind in enumerate(kinds(plan)) if kind == "chunked_local"] == chunked


def test_layers_without_rotary_embedding_are_full_where_nothing_is_chunked():
    config = of("smollm3", no_rope_layers=[1, 1, 1, 0])
    assert figures(config) == (4 * 4 * ROW, 0, 0)


def test_a_chunk_without_an_interval_is_refused():
    config = of("llama4_text", no_rope_layer_interval=None, attention_chunk_size=8192)
    refused(config, "unread", "attention_chunk_size")


def test_a_longer_list_is_cut_and_noted():
    config = of("mistral", sliding_window=128, layer_types=["full_attention"] * 6)
    plan = read_config(config)
    assert len(plan.layers) == 4
    assert notes(plan)["tail"]["value"] == 2
    refused(of("mistral", layer_types=["full_attention"] * 13), "length", "layer_types")


@pytest.mark.parametrize(
    ("model_type", "count", "words"),
    [
        ("beam", 8, "SSSSSFSF"),  # every sixth, and the last
        ("gemma4_text", 7, "SSSSSFF"),
        ("flint", 8, "FFSSSFSF"),  # the first two, every fourth, the last
        ("flint", 1, "F"),
        ("cwm", 5, "FSSSF"),
        ("kolibri1", 6, "SSSSFS"),
        ("laguna", 3, "FFF"),
    ],
)
def test_the_layers_of_a_class_whose_file_lists_none(model_type, count, words):
    config = {"model_type": model_type, "num_hidden_layers": count}
    told = {"full_attention": "F", "sliding_window": "S"}
    assert "".join(told[kind] for kind in kinds(read_config(config))) == words


def test_full_layers_of_gemma_4_as_transformers_5_saves_them():
    per_layer = {"1": {"head_dim": 512}, "3": {"head_dim": 512}}
    words = ["sliding_attention", "full_attention"] * 2
    config = of("gemma4_text", head_dim=256, layer_types=words, sliding_window=128)
    apart = read_config(config | {"per_layer_config": per_layer})
    assert apart == read_config(config | {"global_head_dim": 512})
    same = read_config(config | {"per_layer_config": {"0": {"num_key_value_heads": 2}}})
    assert {cache.head_size for cache in same.caches()} == {256}


def test_a_window_of_minus_one_is_none():
    assert figures(of("mistral", sliding_window=-1))[0] == 4 * 4 * ROW
    assert figures(plain(sliding_window_size=-1))[0] == 4 * 4 * ROW


def test_a_window_over_generated_tokens_alone():
    config = of("unlimited_ocr_text", layer_types=["reference_sliding_attention"] * 4, sliding_window=128)
    assert kinds(read_config(config)) == ["reference_window"] * 4
    del config["layer_types"], config["sliding_window"]
    assert kinds(read_config(config)) == ["reference_window"] * 4
    refused(
        plain(layer_types=["reference_sliding_attention"] * 4, sliding_window=128), "unread", "layer_types"
    )
