import json
from functools import cache
from importlib.resources import files

import pytest

from calculator.check import check
from calculator.engines.vllm import VERSIONS
from calculator.engines.vllm.cases import RUNNERS
from calculator.errors import FieldError

FILES = {version: files("calculator") / "golden" / f"vllm-{version}.json" for version in VERSIONS}
CONTENT = {version: json.loads(file.read_text(encoding="utf-8")) for version, file in FILES.items()}


@cache
def report(version):
    return check(FILES[version])


@pytest.mark.parametrize(
    ("version", "case"),
    [(version, case["id"]) for version, content in CONTENT.items() for case in content["cases"]],
)
def test_the_engine_says_the_same(version, case):
    assert [found for found in report(version).differences if found.case == case] == []


def test_every_kind_of_case_is_known():
    assert set(RUNNERS) == {kind for content in CONTENT.values() for kind in content["glossary"]["kind"]}


@pytest.mark.parametrize("kind", sorted(RUNNERS))
def test_every_runner_takes_a_version(kind):
    cases = [case for content in CONTENT.values() for case in content["cases"]]
    given = next(case["input"] for case in cases if case["kind"] == kind)
    with pytest.raises(FieldError, match=VERSIONS[0]):
        RUNNERS[kind](given, "0.1")
