"""The README's table, commands and figures are those of the code."""

import re
from pathlib import Path

from calculator import Scenario, estimate
from calculator.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_address_table_is_what_the_command_prints(capsys):
    marks = r"<!-- written by: python -m calculator address -->\n(.*)<!-- end -->"
    written = re.search(marks, README, re.DOTALL)
    main(["address"])
    assert written is not None
    assert written[1] == capsys.readouterr().out


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
