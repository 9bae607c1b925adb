"""Where a configuration comes from."""

import json

import pytest

from calculator.cli import main
from calculator.hf_config import read_config
from calculator.hf_config.families import FAMILIES, known_types
from tests.hf_config.reading import of, plain, refused


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
    assert len({row for row in rows if row.startswith("| `")}) == len(rows) - 3
    assert all(f"`{name}`" in "\n".join(rows) for name in FAMILIES)
    assert "| `longcat_flash` | `num_hidden_layers` is not used; 2 attentions in a layer |" in rows


@pytest.mark.parametrize(
    ("config", "architecture"),
    [
        (plain(architectures=["LlamaForCausalLM", "Second"]), "LlamaForCausalLM"),
        (plain(), None),
        (plain(architectures=[]), None),
        (plain(architectures=None), None),
        ({"text_config": of("llama", architectures=["Inner"])}, "Inner"),
        ({"architectures": ["Outer"], "text_config": of("llama", architectures=["Inner"])}, "Outer"),
    ],
)
def test_the_model_class_is_kept_in_the_plan(config, architecture):
    plan = read_config(config)
    assert plan.architecture == architecture
    assert ("architecture" in plan.provenance) == (architecture is not None)
    assert not plan.hybrid_swa


def test_a_class_is_a_name_and_its_flag_is_a_flag():
    assert read_config(plain(is_hybrid_swa=True)).hybrid_swa
    refused(plain(architectures=[7]), "text", "architectures")
    refused(plain(is_hybrid_swa="yes"), "flag", "is_hybrid_swa")
