"""Recurrent layers in every spelling."""

import pytest

from calculator.hf_config import read_config
from tests.hf_config.reading import ROW, figures, kinds, of, plain, published, refused

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


def test_bailing_takes_the_sizes_of_its_recurrence_from_attention():
    latent = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "layer_group_size": 2}
    plan = read_config(of("bailing_hybrid", head_dim=128, short_conv_kernel_size=4, **latent))
    assert kinds(plan) == ["kda", "mla"] * 2
    flat = {"linear_conv_kernel_dim": 4, "linear_num_heads": 16, "linear_head_dim": 128}
    assert plan == read_config(of("bailing_hybrid", head_dim=64, **flat, **latent))


def test_a_list_without_recurrent_layers_needs_none_of_their_sizes():
    dense = of("granitemoehybrid", layer_types=["attention"] * 4, mamba_n_heads=48, mamba_d_state=128)
    assert figures(dense) == (4 * 4 * ROW, 0, 0)
    refused(plain(layer_types=["attention"] * 4, mamba_n_heads=48), "unread", "mamba_n_heads")


def test_lightning_beside_a_latent():
    latent = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "layer_group_size": 2}
    ling = of("bailing_hybrid", head_dim=128, group_norm_size=4, **latent)
    assert kinds(read_config(ling)) == ["linear_attention", "mla"] * 2
    assert figures(ling) == (2 * 1_152, 0, 2 * 16 * 128 * 128 * 4)
