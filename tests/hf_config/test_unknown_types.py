"""Model types that are not known: the ordinary is read with a warning, the rest refused by name."""

import pytest

from calculator.hf_config import read_config
from tests.hf_config.reading import PLAIN, ROW, figures, kinds, notes, of, plain, published, refusal, refused


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
        ({"n_recurrent_loops": 2}, "n_recurrent_loops"),
        ({"loop_num": 2}, "loop_num"),
        ({"decay_low_rank_dim": 64}, "decay_low_rank_dim"),
        ({"expand_v": 2}, "expand_v"),
        ({"attn_mode": "chunk"}, "attn_mode"),
        ({"encoder_hidden_size": 768}, "encoder_hidden_size"),
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


def test_bidirectional_attention_of_an_unknown_model_is_refused():
    refused(plain(use_bidirectional_attention=True), "unread", "use_bidirectional_attention")
    refused(plain(is_causal=False), "unread", "is_causal")
    nested = {"text_config": of("gemma", use_bidirectional_attention=True)}
    refused(nested, "unread", "text_config.use_bidirectional_attention")
    assert figures(nested | {"model_type": "paligemma"}) == (4 * 4 * 2 * 2 * 256, 0, 0)


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


@pytest.mark.parametrize(
    ("own", "field"),
    [
        ({"attention_hidden_size": 2560, "head_size": 64}, "head_size"),  # as RWKV-6 files have it
        ({"head_dim": 64, "decay_low_rank_dim": 64}, "decay_low_rank_dim"),  # RWKV-7
    ],
)
def test_another_mechanism_is_named_before_a_number_that_it_does_not_need(own, field):
    recurrent = {"model_type": "no_such_model", "hidden_size": 2560, "num_hidden_layers": 32, **own}
    refused(recurrent, "unread", field)


def test_a_number_is_missing_where_nothing_else_is_said():
    refused(
        {"model_type": "no_such_model", "hidden_size": 256, "num_hidden_layers": 2, "head_dim": 64},
        "missing",
        "num_attention_heads",
    )
