"""Who may import whom: data flows one way, and the core stands on nothing but Python."""

import ast
import subprocess
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

import calculator

PACKAGE = Path(calculator.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
CORE = [source for source in SOURCES if source.relative_to(PACKAGE).parts[0] != "app"]
LEVELS = (
    {"locales"},
    {"errors"},
    {"explain", "units"},
    {"notation"},
    {"formats", "parallel", "packing"},
    {"caches"},
    {"model"},
    {"layer_text"},
    {"overrides"},
    {"shape", "hf_config"},
    {"catalogue"},
    {"own"},
    {"footprint"},
    {"factors"},
    {"engines"},
    {"serving"},
    {"fields"},
    {"scenario", "transfer", "reuse", "golden_models"},
    {"allocation", "outline"},
    {"changed", "check", "comparison", "engine_view", "estimate"},
    {"cli"},
    {"__init__", "__main__", "app"},
)
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}
HEAVY = ("panel", "bokeh", "param", "numpy", "pandas", "PIL", "js", "pyodide")

each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
each_core_source = pytest.mark.parametrize("source", CORE, ids=lambda path: str(path.relative_to(PACKAGE)))


def imported(source: Path) -> set[str]:
    """Full names of the modules that a file imports, at its top or inside a function."""
    package = ".".join(("calculator", *source.relative_to(PACKAGE).parts[:-1]))
    names = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            names |= (
                {f"{origin}.{alias.name}" for alias in node.names} if origin == "calculator" else {origin}
            )
    return names


def part(source: Path) -> str:
    """The module or package right under calculator/ that a file is or belongs to."""
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


@each_source
def test_every_part_has_its_place_in_the_order(source):
    assert part(source) in LEVEL


@each_source
def test_a_part_imports_only_parts_below_it(source):
    own = part(source)
    others = {name.split(".")[1] for name in imported(source) if name.startswith("calculator.")} - {own}
    if own in ("__init__", "app"):  # the package's own names may stand for the modules that they come from
        others &= LEVEL.keys()
    assert all(LEVEL[other] < LEVEL[own] for other in others), (own, others)


@each_core_source
def test_the_core_imports_only_itself_and_the_standard_library(source):
    outside = {name.split(".")[0] for name in imported(source)} - {"calculator"}
    assert outside <= sys.stdlib_module_names
    assert not any(name.startswith("calculator.app") for name in imported(source))


def test_the_search_for_imports_sees_relative_and_nested_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    folder = tmp_path / "caches"
    folder.mkdir()
    example = folder / "example.py"
    example.write_text(
        "from .. import catalogue\nfrom ..errors import E\nfrom .base import B\ndef f(): import numpy.linalg"
    )
    assert imported(example) == {
        "calculator.catalogue",
        "calculator.errors",
        "calculator.caches.base",
        "numpy.linalg",
    }


def test_the_core_works_where_nothing_else_is_installed():
    program = f"""
import sys
sys.modules.update(dict.fromkeys({HEAVY!r}))  # importing one of these now fails
from calculator import Scenario, comparison, estimate
print(estimate(Scenario()).per_rank.bytes_per_token.value, len(comparison(Scenario())))
strangers = {{name.split(".")[0] for name in sys.modules if sys.modules[name]}} - sys.stdlib_module_names
print(*sorted(strangers - {{"calculator", "__main__"}}))
"""
    command = [sys.executable, "-S", "-c", program]  # -S: no installed packages at all
    done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.split() == ["70272", "5"]


def test_a_blocked_package_really_cannot_be_imported():
    program = f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r})); import numpy"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)
    assert "ModuleNotFoundError" in done.stderr
