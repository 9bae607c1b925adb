"""The picker of models, and the tab that compares them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from playwright.sync_api import expect

from calculator import catalogue

TWENTY = catalogue.ids()[::6][:20]


def boxes(locator) -> list[dict[str, float]]:
    return locator.evaluate_all(
        "(found) => found.map((one) => one.getBoundingClientRect()).filter(({ width }) => width)"
        ".map(({ left, top, right, bottom }) => ({ left, top, right, bottom }))"
    )


@pytest.mark.parametrize(
    ("wanted", "first", "fits"),
    [
        ("glm-5.1", "GLM 5.1", lambda found: len(found) == 1),
        ("moonshot", "Kimi K2.6", lambda found: all("Kimi" in name for name in found)),
        ("mamba2 56b", "Nemotron-H-56B-Base-8K", lambda found: len(found) == 1),
        ("mla < 70", "Kimi K2.6", lambda found: "GLM 5.1" not in found and len(found) > 5),
        ("no such model", None, lambda found: found == []),
    ],
)
def test_a_model_is_found_by_name_maker_kind_and_size(live, wanted, first, fits):
    box = live.box("model")
    box.click()
    live.page.keyboard.insert_text(wanted)
    found = live.find("#box-model-list [role=option]").evaluate_all(
        "(all) => all.map(({ dataset }) => dataset.label)"
    )
    assert fits(found)
    assert (found[0] if found else None) == first
    expect(box).to_have_attribute("aria-expanded", "true")
    live.page.keyboard.press("Escape")
    expect(box).to_have_value("DeepSeek-V3")
    expect(box).to_have_attribute("aria-expanded", "false")


def test_a_model_is_chosen_with_the_keyboard_and_with_a_click(live):
    live.box("model").focus()
    live.page.keyboard.press("ArrowDown")
    live.page.keyboard.press("Enter")
    assert live.result()["scenario"]["model"] == catalogue.ids()[0]
    live.box("model").click()
    live.page.keyboard.insert_text("gpt-oss")
    live.find("#box-model-list [role=option]").first.click()
    assert live.result()["scenario"]["model"] == "gpt-oss-20b"
    expect(live.box("model")).to_have_value("gpt-oss-20b")


def test_twenty_models_stand_apart_and_one_comes_forward(live, site):
    live.open(f"{site}?tab=compare&x={','.join(TWENTY)}")
    names = live.find(".lines.wide text:not(.axis text)")
    found = sorted(boxes(names), key=lambda box: box["top"])
    assert len(found) == 20
    # Rows of a SVG text are a little taller than its letters: they may touch, not cover each other.
    assert all(below["top"] - above["top"] > 11 for above, below in pairwise(found))
    chart = boxes(live.find(".lines.wide"))[0]
    assert all(box["right"] <= chart["right"] and box["bottom"] <= chart["bottom"] for box in found)
    names.nth(4).hover()
    shown = live.find(".lines.wide .line")
    shown.first.evaluate(
        "(line) => Promise.all(line.ownerSVGElement.getAnimations({ subtree: true }).map((a) => a.finished))"
    )
    dimmed = shown.evaluate_all("(all) => all.map((line) => Number(getComputedStyle(line).opacity))")
    assert max(dimmed) == 1
    assert sorted(dimmed)[:19] == [pytest.approx(0.18)] * 19
    bars = live.drawn()["bars"]
    assert {len(set(glyph["data"]["name"])) for glyph in bars["glyphs"]} == {20}
    live.find("#compare_default").click()
    live.open_tab("layers")


def test_the_table_is_sorted_and_models_come_and_go(live):
    live.find("#tab-compare").click()
    live.settle()
    by_size = [row[0] for row in live.table("compared_models")]
    assert by_size[0] == "Qwen3.5-397B-A17B"
    live.find('#compared_models [data-sort="1"]').first.click()
    live.find('#compared_models [data-sort="1"]').first.click()
    assert [row[0] for row in live.table("compared_models")] == by_size[::-1]
    expect(live.find('#compared_models th[aria-sort="descending"]')).to_have_count(1)
    live.find("#compare_box").click()
    live.page.keyboard.insert_text("llama-3.1-8b")
    live.page.keyboard.press("Enter")
    live.settle()
    assert "Llama-3.1-8B" in [row[0] for row in live.table("compared_models")]
    live.find("#compare_pin").click()
    live.settle()
    assert "DeepSeek-V3" in [row[0] for row in live.table("compared_models")]
    live.find('#compared_models [aria-label="Take Llama-3.1-8B out of the comparison"]').click()
    live.settle()
    live.find('#compared_models [aria-label="Take DeepSeek-V3 out of the comparison"]').click()
    live.settle()
    assert sorted(row[0] for row in live.table("compared_models")) == sorted(by_size)
    assert "pins" not in live.address()
    live.find("#compare_default").click()
    live.open_tab("layers")


def test_the_curves_show_what_is_held(live):
    live.set(model="llama-4-scout-17b-16e")
    bound = live.line("bounded")
    live.set(growth="held")
    held = live.line("bounded")
    assert max(held.values()) <= max(bound.values()) + 1e-9
    heights = list(held.values())
    drops = [before - after for before, after in pairwise(heights) if after < before]
    assert len(drops) > 20, "a saw-tooth"
    live.set(growth="bound")
