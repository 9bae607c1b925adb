"""The README's table, commands and figures are those of the code."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from calculator import Scenario, estimate
from calculator.check import check
from calculator.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["address", "families"])
def test_tables_are_what_the_commands_print(command, capsys):
    marks = rf"<!-- written by: python -m calculator {command} -->\n(.*?)<!-- end -->"
    written = re.search(marks, README, re.DOTALL)
    main([command])
    assert written is not None
    assert written[1] == capsys.readouterr().out


def test_engine_table_counts_the_cases_that_are_shipped():
    for engine, version in re.findall(r"\| (vLLM|SGLang) \| ([\d.]+) \|", README):
        report = check(files("calculator") / "golden" / f"{engine.lower()}-{version}.json")
        assert report.differences == ()
        assert f"| {engine} | {version} | {report.cases.total()} cases" in README


def test_shown_command_line_prints_what_is_shown(capsys):
    shown = re.search(r"\$ python -m calculator (.*)\n(.*\n.*)\n…", README)
    assert shown is not None
    main(shown[1].split())
    assert shown[2] in capsys.readouterr().out


def test_shown_library_call_gives_the_figure_beside_it():
    answer = estimate(Scenario().changed({"model": "kimi-k2.6", "context_tokens": "100K"}))
    assert f"answer.per_rank.total_bytes.value  # {answer.per_rank.total_bytes.value}\n" in README
    assert f"answer.per_rank.total_bytes.symbols  # '{answer.per_rank.total_bytes.symbols}'\n" in README


def test_both_commands_stand_as_they_are_typed():
    assert "\npython3 build.py serve " in README
    assert "\npython3 build.py test " in README
