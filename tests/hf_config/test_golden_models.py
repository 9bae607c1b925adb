"""The reference models: what other programs computed for published configurations."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from calculator.caches import HiddenState
from calculator.check import check
from calculator.cli import main
from calculator.errors import FieldError
from calculator.golden_models import differences, groups
from calculator.hf_config import read_config
from calculator.model import ModelPlan

CONFIGS = Path(__file__).parent / "configs"
FILE = Path(str(files("calculator") / "golden" / "models.json"))
MODELS = {model["id"]: model for model in json.loads(FILE.read_text(encoding="utf-8"))["models"]}


@pytest.mark.parametrize("name", MODELS)
def test_a_plan_is_that_of_the_reference(name):
    assert list(differences(MODELS[name], CONFIGS)) == []


def written(tmp_path: Path, *models: dict) -> Path:
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"models": models}), encoding="utf-8")
    return path


def changed(name: str, **fields: object) -> dict:
    return {**json.loads(json.dumps(MODELS[name])), **fields}


def test_the_command_counts_models_by_kind(capsys):
    assert main(["check", str(FILE), "--configs", str(CONFIGS)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("config.json models: 108 of 108 cases")


def test_the_command_needs_to_know_where_the_configurations_are(capsys):
    assert main(["check", str(FILE)]) == 2
    assert "--configs" in capsys.readouterr().err
    with pytest.raises(FieldError):
        check(FILE)


FLASH, LLAMA, GPT_OSS = "deepseek-ai__DeepSeek-V4-Flash", "meta-llama__Llama-3.2-1B", "openai__gpt-oss-20b"
VISION = "meta-llama__Llama-3.2-11B-Vision"


def told(tmp_path: Path, model: dict) -> dict[str, tuple[object, object]]:
    report = check(written(tmp_path, model), CONFIGS)
    return {found.field: (found.expected, found.got) for found in report.differences}


@pytest.mark.parametrize("field", ["bytes_per_token", "bounded_bytes_max", "const_bytes", "num_cache_slots"])
def test_a_wrong_figure_is_told(tmp_path, field):
    right = MODELS[GPT_OSS][field]
    assert told(tmp_path, changed(GPT_OSS, **{field: right + 1})) == {field: (right + 1, right)}


def test_a_wrong_total_and_a_wrong_rate_are_told(tmp_path):
    totals = MODELS[LLAMA]["total_bytes"] | {"8192": 1}
    assert told(tmp_path, changed(LLAMA, total_bytes=totals)) == {"total_bytes.8192": (1, 32768 * 8192)}
    assert told(tmp_path, changed(VISION, cross_bytes_per_encoder_token=5)) == {
        "cross_bytes_per_encoder_token": (5, 32768)
    }
    layout = MODELS[FLASH]["fp8_layout"] | {"bytes_per_token": 3850}
    assert told(tmp_path, changed(FLASH, fp8_layout=layout)) == {
        "fp8_layout.bytes_per_token": (3850, MODELS[FLASH]["fp8_layout"]["bytes_per_token"])
    }


def test_a_wrong_group_is_told_field_by_field(tmp_path):
    model = changed(GPT_OSS)
    next(group for group in model["groups"] if group["kind"] == "sliding")["window"] = 129
    assert told(tmp_path, model) == {"groups.sliding.window": (129, 128)}
    model = changed(GPT_OSS)
    next(group for group in model["groups"] if group["kind"] == "sliding")["kind"] = "chunked"
    assert told(tmp_path, model) == {"groups.chunked.kind": ("chunked", "sliding")}


def test_groups_without_a_partner_are_told_whole(tmp_path):
    model = changed(LLAMA)
    model["groups"][0]["layers"] = [0]
    fields = told(tmp_path, model)
    assert fields.keys() == {"groups.full"}
    assert fields["groups.full"][0] is None


def test_a_refusal_is_a_difference(tmp_path):
    fields = told(tmp_path, changed(LLAMA, file="no_such_file.json"))
    assert "no_such_file.json" in str(fields["error"][1])


def worded(config: dict) -> list[dict]:
    return groups(read_config(config))


def test_a_cross_cache_of_fixed_length_is_worded_with_its_bytes():
    whisper = {
        "model_type": "whisper",
        "is_encoder_decoder": True,
        "d_model": 1280,
        "decoder_layers": 32,
        "decoder_attention_heads": 20,
        "max_source_positions": 1500,
    }
    cross = next(group for group in worded(whisper) if group["kind"] == "cross")
    assert cross["const_bytes_per_layer"] == 1500 * 20 * (64 + 64) * 2


def test_states_of_layers_with_and_without_attention_are_one_group():
    zamba = {
        "model_type": "zamba2",
        "hidden_size": 64,
        "num_attention_heads": 2,
        "layers_block_type": ["mamba", "hybrid", "mamba"],
        "num_hidden_layers": 3,
        "mamba_headdim": 64,
    }
    found = {group["kind"]: group["layers"] for group in worded(zamba)}
    assert found == {"mamba2": [0, 1, 2], "full": [1]}


def test_a_kind_that_the_reference_does_not_have_keeps_its_own_name():
    plan = ModelPlan(layers=((HiddenState(num_hidden_states=1, hidden_size=8),),))
    assert groups(plan) == [{"kind": "hidden_state", "layers": [0], "count": 1}]
