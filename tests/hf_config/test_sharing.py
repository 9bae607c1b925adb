"""Layers that read another one's cache, or that of an encoder."""

import pytest

from calculator.hf_config import read_config
from tests.hf_config.reading import ROW, figures, kinds, notes, of, plain, published, refusal, refused


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
    told = "every layer alike | class default of mllama_text_model"
    assert read_config(by_class).provenance["layer_pattern"] == told


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
    refused({"model_type": "bart", "decoder_layers": None}, "missing", "decoder_layers")
    refused(plain(is_encoder_decoder=True), "unread", "is_encoder_decoder")
    refused({"is_encoder_decoder": True, "text_config": plain()}, "unread", "is_encoder_decoder")


def test_a_decoder_may_have_the_plain_names():
    config = of("moonshine_streaming", encoder_config={"num_hidden_layers": 9}, is_encoder_decoder=True)
    assert figures(config)[0] == 4 * 4 * ROW


def test_the_depth_of_the_class_comes_before_that_of_the_encoder():
    switch = {"model_type": "switch_transformers", "num_layers": 3, "num_heads": 4, "d_kv": 64}
    assert len(read_config(switch).layers) == 12  # num_decoder_layers of the class
    assert len(read_config(switch | {"model_type": "t5"}).layers) == 3  # whose class has none


def test_an_encoder_used_as_a_decoder_keeps_everything():
    assert figures(of("bert", is_decoder=True))[0] == 4 * 4 * ROW


@pytest.mark.parametrize(
    "config",
    [
        of("gemma3_text", use_bidirectional_attention=True, layer_types=["sliding_attention"] * 4),
        of("gemma4_text", use_bidirectional_attention="all"),
        of("qwen2", is_causal=False, sliding_window=128),
    ],
)
def test_embedding_models_keep_nothing(config):
    assert figures(config) == (0, 0, 0)
    assert kinds(read_config(config)) == ["encoder_only_attention"] * 4
    assert read_config(config).provenance["layer_pattern"] in config


def test_encoders_keep_nothing():
    config = of("modernbert", layer_types=None)
    assert figures(config) == (0, 0, 0)
    assert kinds(read_config(config)) == ["encoder_only_attention"] * 4
