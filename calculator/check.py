"""Runs files of engine cases and says where we differ from the engine.

A file holds `note` (which engine and version made it) and `cases`: `{id, kind, input, expected}`. Every field
of `expected` must come out equal; doubles, which two engines' pools use, within 1e-9. A file of reference
models holds `models` instead: their configurations must give their groups and bytes.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .engines import sglang, vllm
from .engines.sglang import cases as sglang_cases
from .engines.sglang.parameters import PARAMETERS as SGLANG_PARAMETERS
from .engines.vllm import cases as vllm_cases
from .engines.vllm.parameters import PARAMETERS as VLLM_PARAMETERS
from .errors import CalculatorError, FieldError
from .golden_models import differences as model_differences

Runner = Callable[[Mapping[str, Any], str], Mapping[str, Any]]  # input, version -> fields

# Versions, runners by the kind of case, and the names that an input may hold.
ENGINES: Mapping[str, tuple[tuple[str, ...], Mapping[str, Runner], frozenset[str]]] = {
    "vLLM": (vllm.VERSIONS, vllm_cases.RUNNERS, VLLM_PARAMETERS),
    "SGLang": (sglang.VERSIONS, sglang_cases.RUNNERS, SGLANG_PARAMETERS),
}
NAMED = "specs"  # its keys are names that a case gives

SHAPES = (
    {"note", "cases"},
    {"models"},
)  # what a file has when it holds engine cases, and when reference models


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One field of one case that came out otherwise."""

    case: str
    field: str
    expected: object
    got: object


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a file's cases came to: how many of each kind, how many of them failed, and where."""

    engine: str
    version: str
    cases: Counter[str]
    failed: Counter[str]
    differences: tuple[Difference, ...]


def check(path: Path, configs: Path | None = None) -> Report:
    """Run all cases of a file; `configs` is the folder of the configurations that a file of models names.

    Raises:
        FieldError: the file is not one of cases, or of an engine or version that is not known.
    """
    content = _read(path)
    if "models" in content:
        return _check_models(path, content["models"], configs)
    engine, version = _engine(path, content["note"])
    _, runners, parameters = ENGINES[engine]
    cases: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    differences: list[Difference] = []
    for case in content["cases"]:
        found = [*_unknown(case, parameters), *_differences(case, runners, version)]
        cases[case["kind"]] += 1
        failed[case["kind"]] += bool(found)
        differences += found
    return Report(engine=engine, version=version, cases=cases, failed=failed, differences=tuple(differences))


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FieldError("error.cases", field="file", value=str(path), reason=str(error)) from error
    if not isinstance(content, dict) or not any(keys <= content.keys() for keys in SHAPES):
        raise FieldError("error.cases", field="file", value=str(path), reason="no note and cases")
    return content


def _check_models(path: Path, models: list[Mapping[str, Any]], configs: Path | None) -> Report:
    if configs is None:
        raise FieldError(
            "error.cases", field="file", value=str(path), reason="name its configurations with --configs"
        )
    cases: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    differences: list[Difference] = []
    for model in models:
        found = list(_model_differences(model, configs))
        cases[model["kind"]] += 1
        failed[model["kind"]] += bool(found)
        differences += found
    return Report(
        engine="config.json", version="models", cases=cases, failed=failed, differences=tuple(differences)
    )


def _model_differences(model: Mapping[str, Any], configs: Path) -> Iterator[Difference]:
    try:
        for field, expected, got in model_differences(model, configs):
            yield Difference(case=model["id"], field=field, expected=expected, got=got)
    except CalculatorError as error:
        yield Difference(case=model["id"], field="error", expected="a plan", got=error.message("en"))


def _engine(path: Path, note: Mapping[str, str]) -> tuple[str, str]:
    engine = note.get("engine", "")
    version = re.match(r"[\d.]+", note.get("source_version", ""))
    if engine not in ENGINES or version is None or version[0] not in ENGINES[engine][0]:
        known = "; ".join(f"{name} {', '.join(versions)}" for name, (versions, *_) in ENGINES.items())
        given = f"{engine} {note.get('source_version', '')}"
        raise FieldError("error.engine", field=str(path), value=given, known=known)
    return engine, version[0]


def _unknown(case: Mapping[str, Any], parameters: frozenset[str]) -> Iterator[Difference]:
    """Parameters that no runner looks at: without them an answer would only look right."""
    for name in dict.fromkeys(_names(case["input"])):
        if name not in parameters:
            yield Difference(case=case["id"], field=name, expected="a known parameter", got="not known here")


def _names(given: object) -> Iterator[str]:
    """All names of an input, at any depth."""
    if isinstance(given, Mapping):
        for name, value in given.items():
            yield name
            named = name == NAMED and isinstance(value, Mapping)
            yield from _names(list(value.values()) if named else value)
    elif isinstance(given, list):
        for value in given:
            yield from _names(value)


def _differences(
    case: Mapping[str, Any], runners: Mapping[str, Runner], version: str
) -> Iterator[Difference]:
    kind = case["kind"]
    if kind not in runners:
        yield Difference(case=case["id"], field="kind", expected=kind, got="not known here")
        return
    try:
        got = runners[kind](case["input"], version)
    except CalculatorError as error:
        yield Difference(case=case["id"], field="error", expected=case["expected"], got=error.message("en"))
        return
    except Exception as error:  # noqa: BLE001 - an input that cannot be read must not hide the other cases
        yield Difference(case=case["id"], field="input", expected=case["expected"], got=repr(error))
        return
    for field, expected in case["expected"].items():
        if field not in got:
            yield Difference(case=case["id"], field=field, expected=expected, got="not computed")
        elif not _equal(expected, got[field]):
            yield Difference(case=case["id"], field=field, expected=expected, got=got[field])


def _equal(expected: object, got: object) -> bool:
    if isinstance(expected, float) and isinstance(got, float):
        return math.isclose(expected, got, rel_tol=1e-9)
    if isinstance(expected, list) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(map(_equal, expected, got))
    if isinstance(expected, dict) and isinstance(got, Mapping):
        return expected.keys() == got.keys() and all(_equal(expected[key], got[key]) for key in expected)
    return type(expected) is type(got) and expected == got
