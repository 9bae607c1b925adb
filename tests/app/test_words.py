"""The words: all that something asks for are in the catalogues, and none is there that nothing asks for."""

import re
from itertools import product
from pathlib import Path

import pytest

import calculator
from calculator.allocation.form import Reason
from calculator.app.controls import GROUPS, controls
from calculator.app.readouts import SYMBOLS
from calculator.app.shell import SHORTCUTS
from calculator.caches import KINDS, Growth
from calculator.catalogue import FLAGSHIPS
from calculator.changed import STEPS
from calculator.fields import FIELDS, TABS
from calculator.footprint import QUANTITIES
from calculator.formats import FORMATS
from calculator.locales import LANGUAGES, catalogue
from calculator.reuse import Need
from calculator.serving import OF_ENGINE
from tests.app.page import SITE

PACKAGE = Path(calculator.__file__).parent
TEMPLATES = [SITE / "index.html", *sorted((PACKAGE / "app/templates").iterdir())]
SCRIPTS = sorted(SITE.glob("*.mjs"))
SOURCES = sorted(PACKAGE.rglob("*.py"))
SIDES = ("", ".old", ".new", ".why")
# Words in use are found by their whole key in quotes; these by the parts that make them up.
FAMILIES = {
    "kind.": set(KINDS),
    "format.": set(FORMATS),
    "growth.": {*Growth, "total"},
    "headline.": {*QUANTITIES, "fits"},
    "quantity.": set(QUANTITIES),
    "scope.": {"per_rank", "whole_model"},
    "figure.": {
        name
        for path in (PACKAGE / "allocation").glob("*.py")
        for name in re.findall(r'Figure\(\s*name="(\w+)"', path.read_text("utf-8"))
    },
    "part.": set(Reason),
    "change.": {name + side for steps in STEPS.values() for name in steps for side in SIDES},
    "engine.why.": {engine for engine, settings in OF_ENGINE.items() if settings},
    "reuse.": set(Need),
    "tab.": set(TABS),
    "why.": set(FLAGSHIPS),
    "compare.": {"model", "bytes_per_token", "bounded_bytes", "constant_bytes", "total", "times"},
    "symbol.": set(SYMBOLS),
    "unit.": {"requests", "tokens"},
    "copy.": {"text", "latex"},
    "factors.": {"mha", "gqa", "architecture"},
    "shortcut.": {what for _, what in SHORTCUTS} | {"switch"},
    "chart.x.": set(FIELDS["axes"].rule.options),
    "field.": {
        *FIELDS,
        *(name for kind in KINDS.values() for name, _ in kind.sized()),
        *("latent_width", "version", "address", "bytes"),  # what messages name besides
    },
    **{
        f"option.{control.field}.": set(control.options)
        for control in controls()
        if control.options and control.field != "model"
    },
}
# Keys that something says without their being in quotes anywhere, each with its reason.
OTHERWISE = {
    f"status.{step}"
    for script in SCRIPTS
    for step in re.findall(r"step(?:: |\()'(\w+)'", script.read_text("utf-8"))
}


def quoted():
    """Every catalogue key that stands in quotes in the program, its templates and the page's scripts."""
    found = set()
    for path in SOURCES + TEMPLATES + SCRIPTS:
        content = path.read_text(encoding="utf-8")
        found |= {key for _, key in re.findall(r"""(["'])([a-z_]+(?:\.\w+)+)\1""", content)}
        found |= set(re.findall(r"""\bt\("(\w+)",""", content))
    return found & catalogue("en").keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_that_a_template_asks_for_by_its_key_exists(language):
    written = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES)
    asked = set(re.findall(r"""\b(?:t|word)\(["']([^"']+)["'] ?[,)]""", written))
    assert len(asked) > 80
    assert asked <= catalogue(language).keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_that_a_template_makes_up_exists(language):
    prefixes = {
        prefix for path in TEMPLATES for prefix in re.findall(r't\("([a-z.]+\.)" ~', path.read_text("utf-8"))
    }
    families = FAMILIES | {"group.": {"model", "shape", "deployment", "request", "memory"}}
    assert prefixes <= families.keys()
    for prefix, names in families.items():
        assert {f"{prefix}{name}" for name in names} <= catalogue(language).keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_of_the_scripts_exists(language):
    text = "".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    assert (
        set(re.findall(r"'((?:shell|status|own|hub|compare)\.\w+)'", text)) | OTHERWISE
        <= catalogue(language).keys()
    )


def test_the_page_names_the_groups_that_there_are():
    page = (SITE / "index.html").read_text(encoding="utf-8")
    (named,) = re.findall(r"for group in \(([^)]*)\)", page)
    headed = set(re.findall(r'"(\w+)"', named))
    assert headed <= GROUPS.keys()
    assert all(f"groups.{group}" in page for group in GROUPS.keys() - headed)


def test_no_word_is_there_for_nothing():
    used = quoted() | OTHERWISE
    used |= {f"{prefix}{name}" for prefix, names in FAMILIES.items() for name in names}
    used |= {f"group.{name}" for name in GROUPS}
    assert not catalogue("en").keys() - used


def test_no_option_word_is_there_for_an_option_that_is_not():
    prefixes = [prefix for prefix in FAMILIES if prefix.startswith("option.")]
    words = {key for key in catalogue("en") if key.startswith("option.")}
    assert words == {prefix + name for prefix in prefixes for name in FAMILIES[prefix]}
    assert not any(a != b and a.startswith(b) for a, b in product(prefixes, prefixes))
