"""The cases that the engine's own code answered."""

import json
from pathlib import Path

import pytest

import calculator
from calculator import check
from calculator.engines.sglang import VERSIONS
from calculator.engines.sglang.cases import RUNNERS

GOLDEN = Path(calculator.__file__).parent / "golden"
FILES = {version: GOLDEN / f"sglang-{version}.json" for version in VERSIONS}
CASES = [
    pytest.param(case, version, id=case["id"])
    for version, file in FILES.items()
    for case in json.loads(file.read_text(encoding="utf-8"))["cases"]
]


@pytest.mark.parametrize(("case", "version"), CASES)
def test_the_engine_gave_the_same(case, version):
    assert not list(check._differences(case, RUNNERS, version))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_kind_of_the_glossary_has_a_runner(version):
    glossary = json.loads(FILES[version].read_text(encoding="utf-8"))["glossary"]
    assert glossary["kind"].keys() == RUNNERS.keys()
