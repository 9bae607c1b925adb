"""Rule by rule: spellings, patterns, sizes. Figures are products of the sizes beside them, or published."""

import json

import pytest

from calculator import catalogue
from calculator.cli import main
from calculator.errors import ConfigError
from calculator.hf_config import read_config
from calculator.hf_config.families import FAMILIES, known_types
from tests.hf_config.reading import figures, kinds, notes, published

PLAIN = {"hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4, "num_hidden_layers": 4}
ROW = 2 * 2 * 64  # K and V in two bytes, 64 wide


def plain(**changed: object) -> dict:
    """A complete configuration of a model_type that is not known."""
    return {"model_type": "no_such_model", **PLAIN, **changed}


def of(model_type: str, **changed: object) -> dict:
    return {"model_type": model_type, **PLAIN, **changed}


def refusal(config: object, **options: bool) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_config(config, **options)
    return caught.value


def refused(config: object, key: str, field: str) -> None:
    error = refusal(config)
    assert (error.key, error.field) == (f"config.{key}", field), str(error)


# Heads and widths.


@pytest.mark.parametrize(
    ("config", "per_token"),
    [
        (plain(), 4 * 4 * ROW),
        (plain(head_dim=128), 4 * 4 * 2 * ROW),
        (plain(num_key_value_heads=None, num_kv_heads=8), 4 * 8 * ROW),
        (plain(num_key_value_heads=None, n_head_kv=None), 4 * 16 * ROW),
        (plain(num_key_value_heads=None, num_attention_groups=1), 4 * 1 * ROW),
        (plain(multi_query=True, num_key_value_heads=None, num_kv_heads=16), 4 * 1 * ROW),
        (plain(multi_query=True, new_decoder_architecture=True), 4 * 4 * ROW),
        (plain(num_key_value_heads=None, multi_query_attention=True, multi_query_group_num=2), 4 * 2 * ROW),
        (plain(multi_query_attention=False, multi_query_group_num=2), 4 * 4 * ROW),
        (plain(v_head_dim=32), 4 * 4 * 2 * (64 + 32)),
        (plain(v_head_dim=0), 4 * 4 * ROW),
        (plain(num_attention_heads=None, head_dim=64), 4 * 4 * ROW),
        (of("mpt", attn_config={"kv_n_heads": 2}), 4 * 2 * ROW),
        (of("mpt", attn_config={"attn_type": "multiquery_attention"}), 4 * 1 * ROW),
        (of("hunyuan", attention_head_dim=32, head_dim=32), 4 * 4 * ROW // 2),
        (of("gemma4_text", layer_types=["full_attention"] * 4), 4 * 4 * 2 * 2 * 512),
        ({"model_type": "gpt2", "n_embd": 1280, "n_head": 20, "n_layer": 36}, 184_320),
        (
            {"model_type": "jetmoe", "num_hidden_layers": 2, "num_key_value_heads": 16, "kv_channels": 128},
            16_384,
        ),
    ],
)
def test_kv_heads_and_widths(config, per_token):
    assert figures(config) == (per_token, 0, 0)


@pytest.mark.parametrize(
    ("config", "key", "field"),
    [
        (plain(num_kv_heads=8), "contradiction", "num_key_value_heads"),
        (plain(head_dim=64, attention_head_dim=32), "contradiction", "head_dim"),
        (plain(hidden_size=1000), "divides", "hidden_size"),
        (plain(num_key_value_heads=5), "divides", "num_attention_heads"),
        (plain(head_dim=64, kv_channels="64"), "whole", "kv_channels"),
        (of("dbrx"), "missing", "attn_config.kv_n_heads"),
        (of("dbrx", attn_config={}), "missing", "attn_config.kv_n_heads"),
        (of("mpt", attn_config={"sliding_window_size": 128}), "unread", "attn_config.sliding_window_size"),
        (plain(multi_query_attention=True), "missing", "multi_query_group_num"),
        (plain(hidden_size=None), "missing", "hidden_size"),
        (
            plain(num_attention_heads=None, num_key_value_heads=None, head_dim=8),
            "missing",
            "num_attention_heads",
        ),
    ],
)
def test_sizes_that_do_not_fit(config, key, field):
    refused(config, key, field)


def test_sliding_layers_have_heads_of_their_own():
    name = "XiaomiMiMo__MiMo-V2-Flash"
    told = read_config(published(name)).provenance
    assert told["sliding_window.num_kv_heads"] == "swa_num_key_value_heads"
    assert told["full_attention.num_kv_heads"] == "num_key_value_heads"
    refused(published(name, swa_v_head_dim=None), "missing", "swa_v_head_dim")
    narrow = published(name, swa_head_dim=None, swa_v_head_dim=64)
    assert figures(narrow)[1] == 39 * 8 * (192 + 64) * 2 * 128
    alike = published(name, v_head_dim=None, swa_v_head_dim=None)
    assert figures(alike)[1] == 39 * 8 * (192 + 192) * 2 * 128


def test_step_3_5_says_the_sizes_of_sliding_layers_apart():
    config = {
        "model_type": "step3p5",
        "num_hidden_layers": 4,
        "num_attention_heads": 64,
        "num_attention_groups": 8,
        "head_dim": 128,
        "sliding_window": 512,
        "layer_types": ["full_attention", *["sliding_attention"] * 6],
        "num_nextn_predict_layers": 3,
        "attention_other_setting": {"num_attention_heads": 96, "num_attention_groups": 4, "head_dim": 64},
    }
    assert figures(config) == (8 * 4 * 128, 3 * 4 * ROW * 512, 0)
    assert figures(config, draft_layers=True) == (8 * 4 * 128, 6 * 4 * ROW * 512, 0)


def test_gemma_4_counts_global_heads_only_with_a_shared_projection():
    name = "nvidia__Gemma-4-31B-IT-NVFP4"
    assert figures(published(name, attention_k_eq_v=False))[0] == 10 * 16 * 512 * 2 * 2
    assert read_config(published(name)).kv_format == "fp8"


def test_published_gemma_4_e2b():
    config = {
        "hidden_size": 1536,
        "num_hidden_layers": 35,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "global_head_dim": 512,
        "sliding_window": 512,
        "num_kv_shared_layers": 20,
        "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
    }
    plan = {"model_type": "gemma4", "text_config": config}
    assert figures(plan) == (3 * 1 * 2 * 2 * 512, 12 * 1 * 2 * 2 * 256 * 512, 0)
    refused(
        {"model_type": "gemma4", "text_config": config | {"num_kv_shared_layers": 35}},
        "range",
        "text_config.num_kv_shared_layers",
    )
    odd = ["full_attention"] * 34 + ["sliding_attention"]
    refused(
        {"model_type": "gemma4", "text_config": config | {"layer_types": odd, "num_kv_shared_layers": 1}},
        "contradiction",
        "text_config.num_kv_shared_layers",
    )


# Sizes of single layers.


def open_elm(heads: object) -> dict:
    return {
        "model_type": "openelm",
        "num_transformer_layers": 4,
        "model_dim": 1280,
        "head_dim": 64,
        "num_query_heads": [12, 12, 16, 16],
        "num_kv_heads": heads,
    }


def test_open_elm_lists_heads_per_layer():
    plan = read_config(open_elm([3, 3, 4, 5]))
    assert [layer[0].num_kv_heads for layer in plan.layers] == [3, 3, 4, 5]
    assert plan.provenance["num_kv_heads"] == "num_kv_heads[i]"
    refused(open_elm([3, 3, 0, 5]), "word", "num_kv_heads[2]")
    refused(open_elm([3, 3, 5]), "length", "num_kv_heads")
    assert refusal(open_elm([3, "3", 4, 5])).field == "num_kv_heads[1]"


def test_deci_lm_lists_heads_per_layer_too():
    plan = read_config(of("deci", num_key_value_heads=None, num_key_value_heads_per_layer=[4, 4, 2, 1]))
    assert [layer[0].num_kv_heads for layer in plan.layers] == [4, 4, 2, 1]
    refused(of("deci", num_key_value_heads_per_layer=4), "unread", "num_key_value_heads_per_layer")


def test_sparse_attention_of_unknown_form_is_refused():
    refused(of("minicpm", sparse_config={"window_size": 2048}), "unread", "sparse_config")


NAS = "nvidia__Llama-3_3-Nemotron-Super-49B-v1"


def block(**attention: object) -> dict:
    return published(NAS, num_hidden_layers=1, block_configs=[{"attention": attention}])


def test_searched_blocks():
    assert figures(block(n_heads_in_group=16)) == (4 * 2 * 2 * 128, 0, 0)
    assert figures(block(no_op=True)) == figures(block(replace_with_linear=True)) == (0, 0, 0)
    counted = published(NAS)
    del counted["num_hidden_layers"]
    assert len(read_config(counted).layers) == 80
    refused(block(), "missing", "block_configs[0].attention.n_heads_in_group")
    refused(block(n_heads_in_group=7), "divides", "num_attention_heads")
    refused(
        block(n_heads_in_group=8, window_length=4096), "unread", "block_configs[0].attention.window_length"
    )
    refused(published(NAS, block_configs=[7] * 80), "missing", "block_configs[0].attention")


def test_overrides_of_transformers_5():
    own = {
        "02": {"head_dim": 128, "num_key_value_heads": 2},
        "3": {"v_head_dim": 32, "rope_theta": 1.0},
        "9": {},
    }
    rows = [4 * 256, 4 * 256, 2 * 2 * 2 * 128, 4 * 2 * (64 + 32)]
    assert figures(of("llama", per_layer_config=own))[0] == sum(rows)
    assert figures(of("llama", per_layer_config={}))[0] == 4 * 4 * ROW
    for name in ("x", "-1", "²", "00002"):
        refused(of("llama", per_layer_config={name: {}}), "word", "per_layer_config")
    refused(of("llama", per_layer_config={"2": {}, "02": {}}), "word", "per_layer_config")
    refused(of("llama", per_layer_config={"2": {"state": 4}}), "word", "per_layer_config")
    refused(of("llama", per_layer_config={"2": 7}), "object", "per_layer_config.2")
    assert figures(of("llama", per_layer_config={"2": None}))[0] == 4 * 4 * ROW


# Windows and patterns.


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
        (of("deepseek_v3", layer_types=["sliding_attention"] * 4), "unread", "kv_lora_rank"),
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


# Layers that share, or look elsewhere.


def test_cross_layer_attention():
    config = of("hunyuan", use_cla=True, cla_share_factor=2)
    assert kinds(read_config(config)) == ["full_attention", "", "full_attention", ""]
    assert figures(of("hunyuan", use_cla=False, cla_share_factor=2))[0] == 4 * 4 * ROW
    refused(of("hunyuan", use_cla=True), "missing", "cla_share_factor")


def test_sources_by_layer():
    config = of("hunyuan", kv_source_layers=[0, None, 1, 0])
    assert kinds(read_config(config)) == ["full_attention", "full_attention", "", ""]
    refused(of("hunyuan", kv_source_layers=[0, 0, 1, 0]), "word", "kv_source_layers[2]")
    refused(of("hunyuan", kv_source_layers=[0, 2, 1, 0]), "word", "kv_source_layers[1]")


def test_vision_layers_stand_instead_of_self_attention():
    name = "meta-llama__Llama-3.2-11B-Vision"
    plan = read_config(published(name))
    assert kinds(plan).count("cross_attention") == 8
    assert "cross" in notes(plan)
    for wrong in ([40], [3, 3], ["3"], [-1]):
        error = refusal(published(name, cross_attention_layers=wrong))
        assert error.field.startswith("text_config.cross_attention_layers[")
    by_class = published(name)
    del by_class["text_config"]["cross_attention_layers"]
    assert read_config(by_class) == plan
    assert read_config(by_class).provenance["layer_pattern"] == "every layer alike"


def test_published_whisper():
    config = {
        "model_type": "whisper",
        "is_encoder_decoder": True,
        "d_model": 1280,
        "num_hidden_layers": 32,
        "encoder_layers": 32,
        "decoder_layers": 32,
        "decoder_attention_heads": 20,
        "encoder_attention_heads": 20,
        "max_source_positions": 1500,
        "max_target_positions": 448,
    }
    assert figures(config) == (163_840, 0, 32 * 1500 * 20 * ROW)
    assert read_config(config).context_hint == 448
    shallow = config | {"decoder_layers": 4}
    assert len(read_config(shallow).layers) == 4


def test_decoders_name_their_own_sizes():
    t5 = {"model_type": "t5", "d_kv": 32, "num_layers": 6, "num_decoder_layers": 2, "num_heads": 4}
    assert figures(t5) == (2 * 4 * ROW // 2, 0, 0)
    moonshine = {
        "model_type": "moonshine",
        "hidden_size": 288,
        "decoder_num_hidden_layers": 6,
        "decoder_num_attention_heads": 8,
        "decoder_num_key_value_heads": 4,
    }
    assert figures(moonshine)[0] == 6 * 4 * 2 * 2 * 36
    refused({"model_type": "moonshine", "hidden_size": 288}, "missing", "decoder_layers")
    refused(plain(is_encoder_decoder=True), "unread", "is_encoder_decoder")
    refused({"is_encoder_decoder": True, "text_config": plain()}, "unread", "is_encoder_decoder")


def test_encoders_keep_nothing():
    config = of("modernbert", layer_types=None)
    assert figures(config) == (0, 0, 0)
    assert kinds(read_config(config)) == ["encoder_only_attention"] * 4


# Latents.


def test_a_latent_that_is_switched_off():
    name = "deepseek-ai__deepseek-vl2-tiny"
    config = published(name)
    assert figures(config) == (61_440, 0, 0)
    config["language_config"]["kv_lora_rank"] = 512
    refused(config, "unread", "language_config.use_mla")


def test_layers_listed_as_indexed_or_not():
    words = ["indexed_attention"] * 60 + ["full_attention"]
    config = {**catalogue.entry("deepseek-v3.2").config, "layer_types": words}
    assert kinds(read_config(config))[-2:] == ["mla+index_key", "mla"]


def test_draft_layers_are_counted_when_asked_for():
    assert figures(published("nvidia__DeepSeek-V3.1-NVFP4"), draft_layers=True)[0] == 71_424
    assert figures(published("MiniMaxAI__MiniMax-M2.7"), draft_layers=True)[0] == 65 * 4_096
    assert figures(published("zai-org__GLM-5.1"), draft_layers=True)[0] == 79 * (1_152 + 132)
    assert figures(published("Qwen__Qwen3.5-9B"), draft_layers=True)[0] == 9 * 4_096
    lightning = "nvidia__NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4"
    assert figures(published(lightning), draft_layers=True)[0] == 7 * 1_024
    assert (
        figures(published("nvidia__NVIDIA-Nemotron-3-Super-120B-A12B-FP8"), draft_layers=True)[0] == 9 * 1_024
    )
    assert figures(published("deepseek-ai__DeepSeek-V4-Flash"), draft_layers=True)[1] == 44 * 128 * 1_024
    assert (
        refusal(published("partial/MiniMaxAI__MiniMax-M3"), draft_layers=True).key == "config.contradiction"
    )
    wrong = published(lightning, mtp_layers_block_type=["attention", "x"])
    assert refusal(wrong, draft_layers=True).field == "mtp_layers_block_type[1]"
    letters = published("nvidia__NVIDIA-Nemotron-3-Super-120B-A12B-FP8", mtp_hybrid_override_pattern="*?")
    assert refusal(letters, draft_layers=True).field == "mtp_hybrid_override_pattern[1]"


def test_two_keys_may_agree_on_the_draft_layers():
    config = of("llama", num_nextn_predict_layers=2, num_mtp_modules=1, mtp_transformer_layers=2)
    assert figures(config, draft_layers=True)[0] == 6 * 4 * ROW


def test_draft_layers_of_a_model_without_full_layers_are_like_its_last():
    config = of("mistral", sliding_window=128, num_nextn_predict_layers=1)
    assert figures(config, draft_layers=True) == (0, 5 * 4 * ROW * 128, 0)


V4 = "deepseek-ai__DeepSeek-V4-Flash"


def test_the_words_of_transformers_5_for_v4():
    words = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
    config = published(V4)
    ratios = config.pop("compress_ratios")
    rates = {words[4]: 4, words[128]: 128}
    config |= {"layer_types": [words[ratio] for ratio in ratios], "compress_rates": rates}
    assert read_config(config) == read_config(published(V4))
    refused(config | {"compress_rates": rates | {words[4]: 8}}, "unread", f"compress_rates.{words[4]}")
    refused(published(V4, compress_ratios=[0, 4, 16] + [4] * 40), "word", "compress_ratios[2]")
    refused(published(V4, compress_ratios=None), "missing", "compress_ratios")
    refused(plain(compress_ratios=[0, 4, 4, 4]), "unread", "compress_ratios")


M3 = "partial/MiniMaxAI__MiniMax-M3"


def test_an_index_beside_keys_and_values():
    sparse = published(M3)["sparse_attention_config"]
    off = published(M3, sparse_attention_config=sparse | {"use_sparse_attention": False})
    assert figures(off)[0] == 60 * 2_048
    refused(
        published(M3, sparse_attention_config=sparse | {"sparse_attention_freq": None}),
        "missing",
        "sparse_attention_config.sparse_attention_freq",
    )
    refused(
        published(M3, sparse_attention_config=sparse | {"sparse_attention_freq": [2] * 60}),
        "word",
        "sparse_attention_config.sparse_attention_freq[0]",
    )


def test_every_attention_of_long_cat_is_a_layer():
    plan = read_config(published("partial/meituan-longcat__LongCat-Flash-Chat"))
    assert plan.provenance["layers"] == "derived: 2 · num_layers"
    refused(published("partial/meituan-longcat__LongCat-Flash-Chat", num_layers=600), "range", "num_layers")


def test_mini_cpm_3_says_what_engines_without_its_latent_do():
    config = {"model_type": "minicpm3", "kv_lora_rank": 256, "qk_rope_head_dim": 32, "num_hidden_layers": 62}
    assert figures(config)[0] == 62 * (256 + 32) * 2
    assert "minicpm3" in notes(read_config(config))


# States.

BAMBA = {
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "hidden_size": 4096,
}
BAMBA_STATE = 3 * (128 * 64 + 2 * 128) * 2 + 128 * 64 * 128 * 4


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"mamba_d_head": "auto", "mamba_expand": 2},
        {"layer_types": ["linear_attention", "linear_attention", "full_attention", "linear_attention"]},
        {"layers_block_type": ["mamba2", "mamba", "attention", "mamba"]},
    ],
)
def test_mamba_2_in_several_spellings(changed):
    config = of("bamba", **BAMBA, attn_layer_indices=[2]) | changed
    assert figures(config) == (4 * 2 * 2 * 256, 0, 3 * BAMBA_STATE)


def test_published_zamba_2():
    attention = [6, 11, 17, 23, 29, 35, 41, 47, 53, 59, 65, 71, 77]
    config = {
        "model_type": "zamba2",
        "hidden_size": 3584,
        "kv_channels": 112,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "num_hidden_layers": 81,
        "hybrid_layer_ids": attention,
        "mamba_headdim": 64,
        "mamba_ngroups": 2,
        "state_size": 64,
        "conv_dimension": 4,
        "expansion_factor": 2,
    }
    state = 3 * (112 * 64 + 2 * 2 * 64) * 2 + 112 * 64 * 64 * 4
    assert figures(config) == (13 * 32 * 224 * 2 * 2, 0, 81 * state)
    headless = {**config, "mamba_headdim": None, "n_mamba_heads": 112}
    assert read_config(headless) == read_config(config)
    refused({**config, "mamba_headdim": None}, "missing", "mamba_num_heads")


def test_falcon_h1_does_both_in_every_layer():
    name = "partial/tiiuae__Falcon-H1-Tiny-90M-Instruct"
    refused(published(name, mamba_d_ssm=512), "unread", "mamba_d_ssm")
    quotient = published(name, mamba_d_head=None)
    assert read_config(quotient) == read_config(published(name))


def test_mamba_1_has_an_inner_width():
    mamba = {
        "model_type": "mamba",
        "hidden_size": 2560,
        "num_hidden_layers": 2,
        "state_size": 16,
        "conv_kernel": 4,
    }
    state = 3 * 5120 * 2 + 5120 * 16 * 4
    assert figures(mamba) == figures(mamba | {"intermediate_size": 5120}) == (0, 0, 2 * state)
    refused({**mamba, "model_type": "falcon_mamba"}, "missing", "intermediate_size")


def test_codestral_has_no_attention():
    config = {
        "model_type": "mamba2",
        "num_hidden_layers": 64,
        "num_heads": 128,
        "head_dim": 64,
        "n_groups": 8,
    }
    config |= {"state_size": 128, "conv_kernel": 4, "hidden_size": 4096}
    assert figures(config) == (0, 0, 272_367_616)


def test_kda_flat_and_nested():
    flat = of(
        "bailing_hybrid",
        layer_group_size=3,
        linear_num_heads=32,
        linear_head_dim=128,
        linear_conv_kernel_dim=4,
    )
    assert kinds(read_config(flat)) == ["kda", "kda", "mla", "mla"]
    assert figures(flat)[2] == 2 * (3 * 3 * 32 * 128 * 2 + 32 * 128 * 128 * 4)


KIMI = "moonshotai__Kimi-Linear-48B-A3B-Instruct"


@pytest.mark.parametrize(
    ("changed", "key", "field"),
    [
        ({"kda_layers": [1]}, "length", "linear_attn_config.kda_layers"),
        ({"full_attn_layers": [1, 4]}, "length", "linear_attn_config.kda_layers"),
        ({"kda_layers": [0]}, "word", "linear_attn_config.kda_layers[0]"),
        ({"kda_layers": [28]}, "word", "linear_attn_config.kda_layers[0]"),
        ({"num_heads": None}, "missing", "linear_attn_config.num_heads"),
    ],
)
def test_kimi_linear_counts_from_1(changed, key, field):
    config = published(KIMI)
    config["linear_attn_config"] |= changed
    refused(config, key, field)


def test_kimi_linear_may_list_words_instead():
    config = published(KIMI)
    kda = set(config["linear_attn_config"].pop("kda_layers"))
    del config["linear_attn_config"]["full_attn_layers"]
    config["layer_types"] = ["linear_attention" if n in kda else "full_attention" for n in range(1, 28)]
    assert read_config(config) == read_config(published(KIMI))
    del config["layer_types"]
    refused(config, "missing", "linear_attn_config.full_attn_layers")


def test_lightning_heads_are_the_attention_heads():
    config = of("minimax")
    assert kinds(read_config(config)) == ["full_attention", "linear_attention"] * 2
    assert figures(config)[2] == 2 * 16 * 64 * 64 * 4
    listed = of("minimax_m1", layer_types=["linear_attention"] * 4)
    assert figures(listed)[2] == 4 * 16 * 64 * 64 * 4


def test_recurrent_gemma_by_its_own_words_and_by_those_of_transformers_5():
    name = "google__recurrentgemma-2b"
    cycle = ["linear_attention", "linear_attention", "sliding_attention"] * 9
    listed = published(name, layer_types=cycle[:26], _block_types=None)
    assert read_config(listed) == read_config(published(name))
    without = published(name, _block_types=None)
    del without["_block_types"]
    assert read_config(without) == read_config(published(name))
    refused(published(name, lru_width=0), "range", "lru_width")
    assert read_config(published(name, lru_width=None)) == read_config(published(name))


def test_other_recurrences():
    assert figures(of("jamba"))[0] == 0
    shifted = of("jamba", attn_layer_period=2, attn_layer_offset=0)
    assert kinds(read_config(shifted)) == ["full_attention", "mamba1"] * 2
    refused(of("jamba", attn_layer_period=2, attn_layer_offset=2), "range", "attn_layer_offset")
    refused(of("jamba", attn_layer_period=2, attn_layer_offset=None), "missing", "attn_layer_offset")
    refused(
        published("partial/nvidia__Nemotron-H-8B-Base-8K", hybrid_override_pattern="M-X" + "-" * 49),
        "word",
        "hybrid_override_pattern[2]",
    )
    listless = published("partial/nvidia__Nemotron-H-8B-Base-8K")
    del listless["num_hidden_layers"]
    assert len(read_config(listless).layers) == 52
    refused(published("partial/LiquidAI__LFM2-350M", full_attn_idxs=[2, 99]), "word", "full_attn_idxs[1]")
    refused(published("partial/LiquidAI__LFM2-350M", full_attn_idxs=None), "missing", "layer_types")
    assert read_config({"model_type": "rwkv5", "head_size": 64, "hidden_size": 128, "num_hidden_layers": 1})


def test_declared_formats_are_kept_in_the_plan():
    assert read_config(published("Qwen__Qwen3.5-9B")).state_dtype == "fp32"
    assert read_config(published("Qwen__Qwen3.5-9B", mamba_ssm_dtype="bfloat16")).state_dtype == "bf16"
    assert read_config(published("partial/nvidia__Nemotron-H-8B-Base-8K")).state_dtype == "fp32"
    refused(published("Qwen__Qwen3.5-9B", mamba_ssm_dtype="int3"), "word", "text_config.mamba_ssm_dtype")
    four_bits = {"kv_cache_scheme": {"num_bits": 4, "type": "float"}}
    assert read_config(of("llama", quantization_config=four_bits)).kv_format is None


# Model types that are not known.


def test_an_unknown_model_type_is_read_with_a_warning():
    assert notes(read_config(plain()))["unknown_type"]["value"] == "no_such_model"
    latent = plain(kv_lora_rank=512, qk_rope_head_dim=64)
    assert figures(latent) == (4 * 1_152, 0, 0)
    assert "unknown_type" in notes(read_config(latent))
    sliding = plain(layer_types=["sliding_attention", "full_attention"] * 2, sliding_window=128)
    assert figures(sliding) == (2 * 4 * ROW, 2 * 4 * ROW * 128, 0)
    assert (
        notes(read_config({"model_type": "a_wrapper", "text_config": PLAIN}))["unknown_type"]["value"]
        == "a_wrapper"
    )
    assert notes(read_config(PLAIN))["unknown_type"]["value"] == "–"
    assert "unknown_type" not in notes(read_config(published("xai-org__grok-1", model_type="grok")))


def test_a_known_model_inside_an_unknown_one_is_read():
    plan = read_config({"model_type": "a_wrapper", "text_config": of("llama")})
    assert "unknown_type" not in notes(plan)


def test_a_window_of_an_unknown_model_that_never_binds():
    assert figures(plain(sliding_window=4096, max_position_embeddings=4096)) == (4 * 4 * ROW, 0, 0)


def test_contradicting_heads_of_an_unknown_model():
    refused(plain(multi_query_attention=True, multi_query_group_num=2), "unread", "num_key_value_heads")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"sliding_window": 128}, "sliding_window"),
        ({"latent_dim": 512}, "latent_dim"),
        ({"ssm_state_size": 16}, "ssm_state_size"),
        ({"layer_pattern": "LLG"}, "layer_pattern"),
        ({"attention_types": [1]}, "attention_types"),
        ({"kv_sharing": True}, "kv_sharing"),
        ({"conv_kernel_size": 4}, "conv_kernel_size"),
        ({"index_head_dim": 128}, "index_head_dim"),
        ({"linear_num_value_heads": 4}, "linear_num_value_heads"),
        ({"num_kv_shared_layers": 2}, "num_kv_shared_layers"),
        ({"<i>latent</i>\n": 3}, "<i>latent</i>�"),
    ],
)
def test_what_is_more_than_ordinary_is_refused_by_name(changed, field):
    refused(plain(**changed), "unread", field)
    assert "--architecture" in str(refusal(plain(**changed)))


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (plain(layer_types=["mamba"] * 4, state_size=4), "state_size"),
        (plain(attn_type_list=[0] * 4), "attn_type_list"),
        (plain(block_configs=[{}] * 4), "block_configs"),
    ],
)
def test_recurrent_layers_of_an_unknown_model_are_refused(config, field):
    refused(config, "unread", field)


def test_bidirectional_attention_is_refused():
    refused(of("gemma3_text", use_bidirectional_attention=True), "unread", "use_bidirectional_attention")


def test_keys_that_name_their_mechanism_are_read_with_the_warning():
    gdn = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8}
    gdn |= {"linear_value_head_dim": 8, "linear_conv_kernel_dim": 4}
    words = ["linear_attention", "full_attention"] * 2
    plan = read_config(plain(layer_types=words, **gdn))
    assert kinds(plan) == ["gated_delta_net", "full_attention"] * 2
    assert "unknown_type" in notes(plan)
    kda = {"kda_layers": [1, 2, 3], "full_attn_layers": [4], "num_heads": 4, "head_dim": 8}
    latent = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
    kimi = plain(linear_attn_config=kda | {"short_conv_kernel_size": 4}, mla_use_nope=True, **latent)
    assert kinds(read_config(kimi)) == ["kda", "kda", "kda", "mla"]
    indexed = plain(index_head_dim=128, index_topk=2048, **latent)
    assert figures(indexed)[0] == 4 * (1_152 + 132)


def test_harmless_keys_of_an_unknown_model():
    more = {
        "mlp_layer_types": ["dense"] * 4,
        "index_topk": 4,
        "qkv_bias": True,
        "moe_latent_size": 8,
        "q_lora_rank": 3,
        "sliding_window": None,
    }
    assert figures(plain(**more)) == (4 * 4 * ROW, 0, 0)


# Sources.


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(of("llama")), encoding="utf-8")
    assert read_config(path) == read_config(path.read_bytes()) == read_config(of("llama"))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_config(path) == read_config(of("llama"))


def test_sources_that_are_no_configuration(tmp_path):
    refused(tmp_path / "none.json", "file", "none.json")
    refused(tmp_path, "file", tmp_path.name)
    refused(b'{"model_type": "\xff"}', "utf8", "config.json")
    refused(" " * 1_000_001, "large", "config.json")
    large = tmp_path / "large.json"
    large.write_bytes(b" " * 1_000_001)
    refused(large, "large", "config.json")
    refused({1: 2}, "text", "config.json")


def test_the_families_table_counts_those_without_rules(capsys):
    assert main(["families"]) == 0
    first, *rows = capsys.readouterr().out.splitlines()
    own, known = len(FAMILIES), len(known_types())
    assert first.startswith(f"{known - own} of {known} known model types need no rule")
    assert len(rows) == own + 3
    assert "| `longcat_flash` | `num_hidden_layers` is not used; 2 attentions in a layer |" in rows
