"""The catalogue's files keep their contract."""

import json
import shutil
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path

import pytest

from calculator import catalogue
from calculator.catalogue.writing import as_file, new_entry
from calculator.cli import main
from calculator.errors import ConfigError, FieldError
from calculator.golden_models import plan_differences
from calculator.hf_config import essential, read_config
from calculator.model import ModelPlan

CONFIGS = Path(__file__).parents[1] / "hf_config" / "configs"
GOLDEN = json.loads((files("calculator") / "golden" / "models.json").read_text(encoding="utf-8"))["models"]
# Entries whose values were read in the file of another repository.
READ_AS = {
    "deepseek-v2": "deepseek-ai__DeepSeek-V2-236B",
    "kimi-k2.6": "nvidia__Kimi-K2.6-NVFP4",
    "llama-3.1-8b": "meta-llama__Meta-Llama-3.1-8B",
}


def file_stem(model: str) -> str:
    return READ_AS.get(model, catalogue.entry(model).hub_id.replace("/", "__"))


def published(model: str) -> dict | None:
    """The whole file of an entry, where the test data have it; of a re-release without its quantisation."""
    found = list(CONFIGS.rglob(f"{file_stem(model)}.json"))
    if not found:
        return None
    config = json.loads(found[0].read_text(encoding="utf-8"))
    if catalogue.entry(model).confidence == "re-release":
        config.pop("quantization_config")
    return config


FILES = {model: config for model in catalogue.ids() if (config := published(model))}
BY_STEM = {file_stem(model): model for model in catalogue.ids()}
REFERENCES = {BY_STEM[stem]: model for model in GOLDEN if (stem := Path(model["file"]).stem) in BY_STEM}


def test_there_are_more_than_a_hundred_and_flagships_come_first():
    ids = catalogue.ids()
    assert len(ids) > 100
    assert ids[:5] == ("qwen3.5-397b-a17b", "kimi-k2.6", "deepseek-v3.2", "glm-5.1", "minimax-m2.7")
    assert list(ids[5:]) == sorted(ids[5:])
    assert len({catalogue.entry(model).hub_id for model in ids}) == len(ids)


@pytest.mark.parametrize("model", REFERENCES)
def test_an_entry_gives_the_figures_that_others_computed(model):
    assert list(plan_differences(REFERENCES[model], catalogue.plan(model))) == []


def test_every_published_entry_is_compared_with_its_whole_file_and_most_with_a_reference():
    assert len(REFERENCES) >= 90
    assert set(catalogue.ids()) - FILES.keys() == {"llama-7b"}, "class defaults have no file"


@pytest.mark.parametrize("model", FILES)
def test_an_entry_says_the_same_as_its_whole_file(model):
    entry, whole = catalogue.plan(model), read_config(FILES[model])
    for item in fields(ModelPlan):  # also what does not count when plans are compared
        assert getattr(entry, item.name) == getattr(whole, item.name)


@pytest.mark.parametrize("model", FILES)
def test_an_entry_holds_what_the_command_takes_from_its_whole_file(model):
    assert catalogue.entry(model).config == essential(FILES[model])


@pytest.mark.parametrize("model", catalogue.ids())
def test_entry_is_complete_and_honest(model):
    entry = catalogue.entry(model)
    assert entry.id == model
    assert entry.schema == 1
    assert all([entry.name, entry.maker, entry.source])
    assert "/" in entry.hub_id
    assert entry.revision is None
    assert date.fromisoformat(entry.date)
    assert entry.confidence in catalogue.CONFIDENCES
    assert catalogue.entry(model) is entry


@pytest.mark.parametrize("model", catalogue.ids())
def test_plan_is_read_once(model):
    plan = catalogue.plan(model)
    assert isinstance(plan, ModelPlan)
    assert catalogue.plan(model) is plan


@pytest.mark.parametrize("model", catalogue.ids())
def test_no_computed_figure_is_stored(model):
    stored = json.loads((files(catalogue) / f"{model}.json").read_text(encoding="utf-8"))
    assert set(stored) == {
        "schema",
        "id",
        "name",
        "maker",
        "hub_id",
        "revision",
        "source",
        "date",
        "confidence",
        "config",
    }


@pytest.mark.parametrize(
    ("model", "nearest"),
    [
        ("deepseek v3", "deepseek-v3"),
        ("GLM-5.1", "glm-5.1"),
        ("../catalogue/glm-5.1", "glm-5.1"),
        ("llama3.1-8b", "llama-3.1-8b"),
        ("gpt-9", "gpt2"),
    ],
)
def test_an_unknown_model_names_the_nearest_and_not_all(model, nearest):
    with pytest.raises(FieldError, match=rf"\b{nearest}\b") as caught:
        catalogue.entry(model)
    assert (caught.value.key, caught.value.field, caught.value.value) == ("error.model", "model", model)
    assert len(str(caught.value)) < 200
    with pytest.raises(FieldError):
        catalogue.plan(model)


@pytest.mark.parametrize("model", ["", "?" * 100_000])
def test_nonsense_gets_a_suggestion_too_and_at_once(model):
    with pytest.raises(FieldError) as caught:
        catalogue.entry(model)
    assert len(caught.value.values["nearest"].split(", ")) == 3


def test_importing_the_package_reads_no_entry():
    program = """
import calculator
from calculator import catalogue
print(catalogue.entry.cache_info().misses, len(catalogue.ids()), catalogue.entry.cache_info().misses)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    at_import, known, after = map(int, done.stdout.split())
    assert (at_import, after) == (0, 0)
    assert known > 100


# --- a new entry, as a contributor makes one ---

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 2,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "vision_config": {"num_attention_heads": 16, "patch_size": 14},
    "vocab_size": 32000,
}
ENOUGH = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 2,
    "num_key_value_heads": 8,
}


def test_one_command_writes_the_file_of_an_entry(tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert main(["entry", str(config), "--hub-id", "meta-llama/Llama_9", "--source", "its own page"]) == 0
    written = capsys.readouterr().out
    assert json.loads(written) == {
        "schema": 1,
        "id": "llama-9",
        "name": "Llama_9",
        "maker": "Meta",
        "hub_id": "meta-llama/Llama_9",
        "revision": None,
        "source": "its own page",
        "date": datetime.now(UTC).date().isoformat(),
        "confidence": "exact",
        "config": ENOUGH,
    }
    assert written == as_file(json.loads(written)) + "\n"


def test_a_new_file_is_all_that_a_new_model_needs(tmp_path):
    """As a contributor: the printed entry, put into the folder, is listed, chosen and estimated."""
    folder = tmp_path / "calculator"
    shutil.copytree(Path(catalogue.__file__).parents[1], folder)
    made = new_entry(LLAMA, hub_id="new-lab/New-1", source="its own page")
    (folder / "catalogue" / "new-1.json").write_text(as_file(made), encoding="utf-8")
    for command, answer in (
        (["models"], "new-lab/New-1"),
        (["estimate", "--model", "new-1"], "Per rank, bytes per token: 8,192 B"),
    ):
        asked = [sys.executable, "-m", "calculator", *command]
        done = subprocess.run(asked, cwd=tmp_path, capture_output=True, encoding="utf-8", check=True)
        assert answer in done.stdout


def test_what_is_known_of_a_model_can_be_said():
    made = new_entry(
        LLAMA,
        hub_id="lab/x",
        source="s",
        confidence="trimmed",
        date="2026-01-02",
        id="y",
        name="Y",
        maker="Z",
    )
    told = {name: made[name] for name in ("id", "name", "maker", "date", "confidence")}
    assert told == {"id": "y", "name": "Y", "maker": "Z", "date": "2026-01-02", "confidence": "trimmed"}
    assert new_entry(LLAMA, hub_id="lab/x", source="s")["maker"] == "lab"


@pytest.mark.parametrize(
    ("field", "value"),
    [("hub_id", "model"), ("hub_id", "a/b/c"), ("id", "../x"), ("id", "Über"), ("confidence", "sure")],
)
def test_a_wrong_word_is_refused_by_the_name_of_its_field(field, value):
    with pytest.raises(FieldError) as caught:
        new_entry(LLAMA, **{"hub_id": "lab/x", "source": "s"} | {field: value})
    assert (caught.value.field, caught.value.value) == (field, value)


def test_a_configuration_that_the_importer_refuses_makes_no_entry():
    with pytest.raises(ConfigError, match="num_hidden_layers"):
        new_entry(LLAMA | {"num_hidden_layers": 0}, hub_id="lab/x", source="s")


def test_lists_stand_on_one_line_and_objects_on_several():
    assert as_file({"a": [1, 2], "b": {"c": {}, "d": "é"}}) == (
        '{\n  "a": [1, 2],\n  "b": {\n    "c": {},\n    "d": "é"\n  }\n}'
    )


# --- what is essential ---


def test_objects_within_lists_are_slimmed_too():
    blocks = [{"attention": {"n_heads_in_group": 8, "window": None}, "ffn": {"ffn_mult": 2.5}}] * 2
    config = LLAMA | {"model_type": "nemotron-nas", "block_configs": blocks}
    assert essential(config)["block_configs"] == [{"attention": {"n_heads_in_group": 8}}] * 2


def test_a_key_that_only_draft_layers_need_stays():
    config = {**LLAMA, "num_nextn_predict_layers": 1}
    assert essential(config)["num_nextn_predict_layers"] == 1


def test_thousands_of_keys_that_say_nothing_are_dropped_quickly():
    config = {f"unknown_{number}": number for number in range(5_000)} | ENOUGH
    assert essential(config) == ENOUGH
