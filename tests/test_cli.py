import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from calculator import Scenario, catalogue, estimate
from calculator.cli import main
from calculator.scenario import FIELDS, VIEW_FIELDS

ROOT = Path(__file__).parents[1]


def printed(capsys, *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys, *arguments: str) -> str:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_the_report_of_deepseek_v3(capsys):
    out = printed(capsys, "estimate", "--model", "deepseek-v3", "--context-tokens", "8192")
    assert (
        "Per rank, bytes per token: 70,272 B = 68.6 KiB\n    L · (R + D_r) · s = 61 · (512 + 64) · 2\n" in out
    )
    assert "Whole model, total bytes: 575,668,224 B = 549 MiB\n    b · T = 70,272 · 8,192" in out


def test_the_report_in_chinese_and_in_decimal_units(capsys):
    out = printed(capsys, "--language", "zh", "estimate", "--units", "GB", "--context-tokens", "100K")
    assert "每个 rank" in out
    assert "7,027,200,000 B = 7.03 GB" in out


def test_a_tp_that_the_engines_refuse_ends_the_report(capsys):
    out = printed(capsys, "estimate", "--model", "llama-3.1-8b", "--tensor-parallel-size", "3")
    assert out.splitlines()[-1].startswith("The engines refuse TP 3")


def test_json_is_that_of_the_library(capsys):
    out = printed(capsys, "estimate", "--model", "qwen3.5-397b-a17b", "--tensor-parallel-size", "2", "--json")
    scenario = Scenario().changed({"model": "qwen3.5-397b-a17b", "tensor_parallel_size": 2})
    assert json.loads(out) == estimate(scenario).as_json()


def test_options_change_the_scenario_of_an_address(capsys):
    address = "?v=1&m=kimi-k2.6&tp=4&t=5"
    out = json.loads(
        printed(capsys, "estimate", "--address", address, "--tensor-parallel-size", "8", "--json")
    )
    assert out["scenario"]["model"] == "kimi-k2.6"
    assert (out["scenario"]["tensor_parallel_size"], out["scenario"]["context_tokens"]) == (8, 5)


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in (*VIEW_FIELDS, "config")])
def test_every_field_has_an_option(capsys, name):
    value = Scenario().value(name)
    out = printed(capsys, "estimate", f"--{name.replace('_', '-')}", str(value), "--json")
    assert json.loads(out)["scenario"][name] == value


def test_a_configuration_is_read_from_its_file(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(catalogue.entry("llama-3.1-8b").config), encoding="utf-8")
    out = json.loads(printed(capsys, "estimate", "--config", str(path), "--own-name", "Mine", "--json"))
    assert out["per_rank"]["bytes_per_token"] == 131_072
    assert (out["scenario"]["model"], out["scenario"]["own_name"]) == (None, "Mine")
    assert "none.json" in refused(capsys, "estimate", "--config", str(tmp_path / "none.json"))


def test_models_are_compared_line_by_line(capsys):
    lines = printed(
        capsys, "compare", "--compared", "this,deepseek-v4-flash,glm-5.1", "--engine", "vllm"
    ).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["This model", "GLM 5.1", "DeepSeek-V4-Flash"]
    assert lines[0].split()[2:6] == ["70,272", "0", "0", "7,029,448,704"]
    assert "vLLM" in lines[2]
    as_json = json.loads(printed(capsys, "compare", "--json"))
    assert [one["model"] for one in as_json["models"]] == list(catalogue.FLAGSHIPS)
    assert printed(capsys, "compare", "--compared", "") == ""


def test_models_are_listed_with_their_sources(capsys):
    lines = printed(capsys, "models").splitlines()
    assert [line.split()[0] for line in lines] == list(catalogue.ids())
    assert all(
        line.endswith(catalogue.entry(name).source) for line, name in zip(lines, catalogue.ids(), strict=True)
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--num-layers", "0"], "Layers: 0 is outside 1 to 1,024."),
        (["--num-layers", "-5"], "Layers: -5 is outside 1 to 1,024."),
        (["--num-layers", ""], "Layers: nothing was entered."),
        (["--num-layers", "1e5"], "Layers: “1e5” is not a whole number."),
        (["--num-layers", "9" * 5000], "Layers: > 2^64 is outside 1 to 1,024."),
        (["--model", "nope"], "Model: “nope” is not in the catalogue. Nearest: "),
        (["--address", "?tp=0"], "Tensor parallel (TP): 0 is outside 1 to 1,024."),
        (["--address", "?v=9"], "Address version: “9”"),
        (["--address", "?zz=9"], "Address: “zz”"),
        (["--architecture", "window", "--num-layers", "4"], "Full-attention layers: 8 is outside 0 to 4."),
        (
            ["--num-layers", "1024", "--num-sequences", "1M", "--context-tokens", "128Mi"],
            "> 2^64 bytes are more than can be counted exactly",  # 1,024 · 1,152 · 2^27 · 10^6
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(capsys, arguments, sentence):
    assert refused(capsys, "estimate", *arguments).startswith(sentence)


def test_bad_input_is_told_in_the_language_asked_for(capsys):
    assert refused(capsys, "--language", "zh", "estimate", "--num-layers", "0").startswith(
        "层数：0 超出 1 到 1,024"
    )


@pytest.mark.parametrize("arguments", [[], ["--help"], ["estimate", "--help"], ["nope"]])
def test_usage_names_every_option_and_command(capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    out, err = capsys.readouterr()
    assert stopped.value.code == (0 if "--help" in arguments else 2)
    assert "estimate" in out + err
    if arguments == ["estimate", "--help"]:
        assert "--kv-lora-rank" in out
        assert "Tensor parallel (TP)" in out


def test_the_package_runs_as_a_command(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["calculator", "estimate", "--json"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("calculator", run_name="__main__")
    assert stopped.value.code == 0
    assert json.loads(capsys.readouterr().out)["per_rank"]["bytes_per_token"] == 70_272


def test_a_process_of_its_own_prints_the_same():
    command = [sys.executable, "-m", "calculator", "estimate", "--context-tokens", "8192", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert json.loads(done.stdout)["per_rank"]["total_bytes"] == 575_668_224


def test_an_engine_is_shown_with_what_it_takes_and_why(capsys):
    assert main(["estimate", "--engine", "vllm", "--model", "deepseek-v3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("vLLM ") for line in lines)
    assert "    the last block, filled up: bytes per token 0 B, total bytes 2,248,704 B" in lines
    assert main(["--language", "zh", "estimate", "--engine", "sglang", "--model", "llama-3.1-8b"]) == 0
    assert "差额的来源" not in capsys.readouterr().out  # pages of one token: there is none


def test_a_reader_that_stops_early_is_no_failure_to_report(monkeypatch, capfd):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(["models"]) == 1
    assert capfd.readouterr().err == ""
