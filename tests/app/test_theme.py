"""The colours: readable in both themes (WCAG 2.2, 1.4.3 and 1.4.11), and all of them in the style sheet."""

import re
from dataclasses import asdict, fields

import pytest

from calculator.app.lines import COLOURS
from calculator.app.theme import DASHES, HATCHES, THEMES, Theme, variables
from tests.app.page import SITE

every_theme = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
GROWTH = ("linear", "bounded", "constant")
TEXT = [(ink, ground) for ink in ("ink", "muted", "error", "accent") for ground in ("card", "page")]


def channels(colour):
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def hexadecimal(parts):
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def luminance(colour):
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels(colour)
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def mixed(share, one, other):
    """`share` of one colour on another, as color-mix() does it."""
    pairs = zip(channels(one), channels(other), strict=True)
    return hexadecimal([share * a + (1 - share) * b for a, b in pairs])


def test_contrast_is_computed_as_the_guideline_says():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert mixed(0.5, "#000000", "#ffffff") == "#808080"


@every_theme
@pytest.mark.parametrize(("ink", "ground"), TEXT)
def test_text_has_a_contrast_of_4_5(theme, ink, ground):
    assert contrast(getattr(theme, ink), getattr(theme, ground)) >= 4.5


@every_theme
@pytest.mark.parametrize("ink", ["ink", "muted"])
def test_text_in_the_chosen_row_has_a_contrast_of_4_5(theme, ink):
    share = re.search(r"\.chosen td {[^}]*var\(--accent\) (\d+)%", (SITE / "style.css").read_text("utf-8"))
    assert contrast(getattr(theme, ink), mixed(int(share[1]) / 100, theme.accent, theme.card)) >= 4.5


@every_theme
@pytest.mark.parametrize("colour", [*GROWTH, *(f"line_{name}" for name in COLOURS), "accent", "error"])
def test_lines_bars_and_borders_have_a_contrast_of_3(theme, colour):
    assert contrast(getattr(theme, colour), theme.card) >= 3


@every_theme
def test_boxes_are_seen_on_a_card(theme):
    assert min(contrast(theme.edge, ground) for ground in (theme.card, theme.page)) >= 3


@every_theme
def test_colours_are_written_out(theme):
    for name, colour in asdict(theme).items():
        assert re.fullmatch(r"#[0-9a-f]{6}", colour), name
    assert len({getattr(theme, name) for name in GROWTH}) == 3


def test_the_style_sheet_declares_every_colour_of_every_theme():
    for name, theme in THEMES.items():
        (block,) = re.findall(rf':root\[data-theme="{name}"\] {{(.*?)}}', variables())
        declared = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
        assert declared == {key.replace("_", "-"): colour for key, colour in asdict(theme).items()}
        assert f"color-scheme: {name};" in block


def test_the_style_sheet_uses_only_colours_that_are_declared():
    style = (SITE / "style.css").read_text(encoding="utf-8")
    used = set(re.findall(r"var\(--([a-z-]+)\)", style))
    own = set(re.findall(r"--([a-z-]+):", style)) | {"at", "layers", "share"}  # or of an element
    assert used <= {item.name.replace("_", "-") for item in fields(Theme)} | own
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*})", style)  # no colour beside them


def test_the_page_has_the_themes_of_its_script():
    script = (SITE / "first-paint.js").read_text(encoding="utf-8")
    assert all(f"'{name}'" in script for name in THEMES)


def test_every_way_of_growing_has_a_line_and_a_hatch_of_its_own():
    assert set(GROWTH) <= DASHES.keys()
    assert len({DASHES[name] for name in GROWTH}) == len({HATCHES[name] for name in GROWTH}) == 3
