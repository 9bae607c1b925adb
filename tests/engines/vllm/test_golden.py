import json
from importlib.resources import files

import pytest

from calculator.check import check
from calculator.engines.vllm import VERSIONS
from calculator.engines.vllm.cases import RUNNERS
from calculator.errors import FieldError

FILE = files("calculator") / "golden" / "vllm-0.22.0.json"
CONTENT = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def report():
    return check(FILE)


@pytest.mark.parametrize("case", [case["id"] for case in CONTENT["cases"]])
def test_the_engine_says_the_same(report, case):
    assert [found for found in report.differences if found.case == case] == []


def test_every_kind_of_case_is_known():
    assert set(RUNNERS) == set(CONTENT["glossary"]["kind"])


@pytest.mark.parametrize("kind", sorted(RUNNERS))
def test_every_runner_takes_a_version(kind):
    given = next(case["input"] for case in CONTENT["cases"] if case["kind"] == kind)
    with pytest.raises(FieldError, match=VERSIONS[0]):
        RUNNERS[kind](given, "0.1")
