"""The cases that the engine's own code answered."""

import json
from pathlib import Path

import pytest

import calculator
from calculator import check
from calculator.engines.sglang.cases import RUNNERS

FILE = Path(calculator.__file__).parent / "golden" / "sglang-0.5.13.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_engine_gave_the_same(case):
    assert not list(check._differences(case, RUNNERS, "0.5.13"))


def test_every_kind_of_the_glossary_has_a_runner():
    glossary = json.loads(FILE.read_text(encoding="utf-8"))["glossary"]
    assert glossary["kind"].keys() == RUNNERS.keys()
