"""`check` finds what is wrong, says it in a line, and is not stopped by a case that it cannot read."""

import json
from importlib.resources import files

import pytest

from calculator.check import check
from calculator.cli import main
from calculator.errors import FieldError

NOTE = {"engine": "vLLM", "source_version": "0.22.0 (release wheel)"}
RIGHT = {
    "id": "heads",
    "kind": "num_kv_heads",
    "input": {"total_num_kv_heads": 32, "tensor_parallel_size": 8, "use_mla": False},
    "expected": {"num_kv_heads": 4},
}


def written(tmp_path, *cases, note=NOTE):
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"note": note, "cases": cases}), encoding="utf-8")
    return path


def test_right_cases_are_counted_by_kind(tmp_path):
    report = check(written(tmp_path, RIGHT, RIGHT | {"id": "again"}))
    assert (report.engine, report.version) == ("vLLM", "0.22.0")
    assert report.cases == {"num_kv_heads": 2}
    assert report.differences == ()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"expected": {"num_kv_heads": 5}}, "num_kv_heads"),
        ({"expected": {"num_kv_heads": 4.0}}, "num_kv_heads"),
        ({"expected": {"num_kv_heads": 4, "more": 1}}, "more"),
        ({"kind": "unheard_of"}, "kind"),
        ({"input": {**RIGHT["input"], "num_shards": 2}}, "num_shards"),
        ({"input": {**RIGHT["input"], "specs": {"a": {"colour": 1}}}}, "colour"),
        ({"input": {**RIGHT["input"], "group_specs": [{"colour": 1}]}}, "colour"),
        ({"input": {}}, "input"),
        ({"kind": "pp_indices", "input": {"num_hidden_layers": 1, "pipeline_parallel_size": 0}}, "error"),
    ],
)
def test_each_fault_is_one_difference(tmp_path, change, field):
    (found,) = check(written(tmp_path, RIGHT, RIGHT | {"id": "wrong"} | change)).differences
    assert (found.case, found.field) == ("wrong", field)


def test_nested_values_are_compared_whole(tmp_path):
    split = {
        "id": "split",
        "kind": "pp_indices",
        "input": {"num_hidden_layers": 61, "pipeline_parallel_size": 4},
    }
    right = split | {"expected": {"layers_per_stage": [15, 15, 16, 15]}}
    wrong = split | {"expected": {"layers_per_stage": [15, 15, 15, 16]}}
    assert check(written(tmp_path, right)).differences == ()
    assert len(check(written(tmp_path, wrong)).differences) == 1


@pytest.mark.parametrize(
    "note",
    [
        {"engine": "other", "source_version": "1.0"},
        {"engine": "vLLM", "source_version": "0.1.0"},
        {"engine": "vLLM", "source_version": "new"},
        {"engine": "vLLM"},
    ],
)
def test_an_engine_or_version_that_is_not_known_is_named(tmp_path, note):
    with pytest.raises(FieldError, match=r"0\.22\.0"):
        check(written(tmp_path, RIGHT, note=note))


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json"])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FieldError, match=r"other\.json"):
        check(path)


def test_models_need_their_configurations():
    with pytest.raises(FieldError, match="--configs"):
        check(files("calculator") / "golden" / "models.json")


def test_the_command_prints_a_line_for_each_difference_and_fails(tmp_path, capsys):
    wrong = RIGHT | {"id": "wrong", "expected": {"num_kv_heads": 5}}
    assert main(["check", str(written(tmp_path, RIGHT, wrong))]) == 1
    printed = capsys.readouterr().out
    assert "wrong: num_kv_heads: expected 5, got 4\n" in printed
    assert "1 of 2" in printed


def test_the_command_succeeds_on_the_shipped_cases(capsys):
    for name, total in (("vllm-0.22.0", 168), ("sglang-0.5.13", 85)):
        assert main(["check", str(files("calculator") / "golden" / f"{name}.json")]) == 0
        assert f"{total} of {total} cases" in capsys.readouterr().out
