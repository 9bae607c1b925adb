"""KV heads and their widths, of all layers or of single ones."""

import pytest

from calculator.hf_config import read_config
from tests.hf_config.reading import ROW, figures, of, plain, published, refusal, refused


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
