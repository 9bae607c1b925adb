"""Latents, their index keys, and draft layers."""

import pytest

from calculator import catalogue
from calculator.hf_config import read_config
from tests.hf_config.reading import ROW, figures, kinds, notes, of, plain, published, refusal, refused


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


def test_counted_draft_layers_are_said_to_be_counted():
    v3 = published("nvidia__DeepSeek-V3.1-NVFP4")
    counted, left_out = read_config(v3, draft_layers=True), read_config(v3)
    assert notes(counted)["mtp_counted"] == notes(left_out)["mtp"]
    assert counted.provenance["layers"] == "derived: num_hidden_layers + num_nextn_predict_layers"
    assert left_out.provenance["layers"] == "num_hidden_layers"


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


def test_sliding_latents_of_dots_3():
    own = {"kv_lora_rank": 256, "qk_rope_head_dim": 64, "index_head_dim": 128, "num_hidden_layers": 5}
    swa = {"swa_kv_lora_rank": 512, "swa_qk_rope_head_dim": 32, "sliding_window_size": 100}
    plan = read_config(of("dots3_note_text") | own | swa)  # full, full, sliding, sliding, sliding
    assert kinds(plan) == ["mla+index_key"] * 2 + ["sliding_window_mla"] * 3
    assert figures(of("dots3_note_text") | own | swa) == (2 * (640 + 132), 3 * (512 + 32) * 2 * 100, 0)
    resaved = {
        "layer_types": ["indexed_attention"] * 2 + ["sliding_attention"] * 3,
        "per_layer_config": {
            str(layer): {"kv_lora_rank": 512, "qk_rope_head_dim": 32} for layer in (2, 3, 4)
        },
        "sliding_window": 100,
    }
    assert read_config(of("dots3_note_text") | own | resaved) == plan
    refused(of("dots3_note_text", use_dsa=False) | own, "unread", "use_dsa")
    unknown = plain(**own, layer_types=["sliding_attention"] * 5, sliding_window=100)
    refused(unknown, "unread", "sliding_window")


def test_letters_say_which_layers_select():
    glm = published("zai-org__GLM-5.1")
    letters = "F" * 3 + "SSSF" * 18 + "SSS"
    listed = [{"F": "full", "S": "shared"}[letter] for letter in letters]
    assert read_config(glm | {"index_topk_pattern": letters}) == read_config(glm | {"indexer_types": listed})
    refused(glm | {"index_topk_pattern": "X" + letters[1:]}, "word", "index_topk_pattern[0]")


def test_the_offset_of_shared_selections_is_two_in_the_class():
    plan = read_config(published("zai-org__GLM-5.1", index_topk_freq=4))
    assert kinds(plan).count("mla+index_key") == 21  # 0, 1, 5, ..., 77


def test_minimax_m3_as_transformers_5_saves_it():
    words = ["full_attention"] * 3 + ["minimax_m3_sparse"] * 57
    saved = published(M3, layer_types=words, sparse_attention_config=None, index_head_dim=128)
    assert read_config(saved | {"model_type": "minimax_m3_vl_text"}) == read_config(published(M3))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("meta-llama__Llama-3.2-11B-Vision", "every layer alike | text_config.cross_attention_layers"),
        ("partial/google__gemma-3n-E4B", "text_config.layer_types | text_config.num_kv_shared_layers"),
        ("partial/MiniMaxAI__MiniMax-M3", "every layer alike | sparse_attention_config"),
    ],
)
def test_every_key_that_decides_about_layers_is_named(name, keys):
    assert read_config(published(name)).provenance["layer_pattern"] == keys
    shared = read_config(of("hunyuan", use_cla=True, cla_share_factor=2))
    assert shared.provenance["layer_pattern"] == "every layer alike | cla_share_factor"
