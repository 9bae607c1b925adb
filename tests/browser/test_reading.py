"""Reading on: tabs, formulas, the layer strip, units and shortcuts."""

import pytest
from playwright.sync_api import expect

from calculator.app.readouts import IN_TABS
from calculator.fields import TABS

from .calculator_page import CalculatorPage
from .conftest import watching
from .watched import origin


@pytest.fixture(scope="module")
def reader(browser, site):
    """A live page that may use the clipboard."""
    with watching(browser, origin(site), permissions=["clipboard-read", "clipboard-write"]) as watched:
        yield CalculatorPage(watched.page).open(site)


@pytest.fixture
def page(reader):
    reader.reset()
    return reader


def press(page, *keys):
    for key in keys:
        page.page.keyboard.press(key)


def clipboard(page):
    return page.page.evaluate("() => navigator.clipboard.readText()")


# --- tabs ---


def test_arrow_keys_home_and_end_walk_through_the_tabs(page):
    page.find("#tab-layers").focus()
    for name in (*TABS[1:], TABS[0]):
        press(page, "ArrowRight")
        expect(page.find(f"#tab-{name}")).to_be_focused()
        expect(page.find(f"#panel-{name}")).to_be_visible()
        assert page.find("[role=tabpanel]:visible").count() == 1
    press(page, "End")
    expect(page.find(f"#tab-{TABS[-1]}")).to_be_focused()
    press(page, "Home")
    expect(page.find(f"#tab-{TABS[0]}")).to_be_focused()


def test_a_tab_is_written_when_it_is_opened_and_follows_while_it_is_open(page):
    page.set(num_layers="60")
    page.open_tab("derivation")
    expect(page.find("#derivation")).to_contain_text("69,120 B")  # 60 layers of 1,152
    for name in IN_TABS["derivation"]:
        page.set(num_layers="59")
        expect(page.find(f"#{name}")).to_contain_text("67,968 B")
        expect(page.find("#panel-derivation")).to_have_attribute("aria-busy", "false")


def test_the_chart_leads_to_its_data(page):
    page.find("[data-tab=data]").first.click()
    expect(page.find("#tab-data")).to_be_focused()
    expect(page.find("#curve_data")).to_contain_text("7,027,200,000 B")


# --- formulas ---


@pytest.mark.parametrize(
    ("quantity", "symbols", "numbers", "result"),
    [
        ("bytes_per_token", "L·(R+Dr)·s", "61·(512+64)·2", "70,272 B"),
        ("total_bytes", "b·T", "70,272·100,000", "7,027,200,000 B"),
    ],
)
def test_how_shows_symbols_numbers_and_result_and_gives_them_away(page, quantity, symbols, numbers, result):
    button = page.find(f'[data-how="per_rank.{quantity}"]')
    button.focus()
    press(page, "Enter")
    expect(page.find("#how mtext")).to_have_text(result)
    lines = ["".join(line.split()) for line in page.find("#how .formula math").all_text_contents()]
    assert lines == [symbols, f"={numbers}", "=" + result.replace(" ", "")]
    page.find("#how [data-copy]").first.click()
    expect(page.find("#how [data-copy]").first).to_have_text("Copied")
    assert clipboard(page).endswith(f" = {result}")
    assert clipboard(page).startswith(f"per_rank.{quantity} = ")
    page.find("#how [data-copy]").last.click()
    expect(page.find("#how [data-copy]").last).to_have_text("Copied")
    assert r"\cdot" in clipboard(page)
    press(page, "Escape")
    expect(page.find("#how_dialog")).to_be_hidden()
    expect(button).to_be_focused()


def test_a_formula_can_be_selected(page):
    page.find('[data-how="per_rank.total_bytes"]').click()
    expect(page.find("#how mtext")).to_have_text("7,027,200,000 B")
    chosen = page.page.evaluate(
        "() => { getSelection().selectAllChildren(document.querySelector('#how .formula'));"
        " return String(getSelection()); }"
    )
    assert "7,027,200,000" in chosen
    press(page, "Escape")


def test_the_capacity_in_the_headline_has_a_formula_from_the_engine(page):
    page.set(engine="vllm", model="llama-3.1-8b")
    page.find('[data-how="vllm.whole_requests"]').click()
    expect(page.find("#how .source")).to_contain_text("vLLM")
    expect(page.find("#how mtext")).to_have_text(page.find(".tile .big").last.inner_text().split()[0])
    press(page, "Escape")
    page.set(engine="logical")


# --- the layer strip ---


def test_the_strip_says_what_a_layer_stores_by_key_and_by_mouse(page):
    page.set(model="gemma-3-27b")
    strip = page.find("#layer")
    expect(strip).to_have_attribute("max", "61")
    strip.focus()
    press(page, "Home")
    expect(strip).to_have_attribute("aria-valuetext", "Layer 0: Sliding window, K and V, bounded, 8,192 B")
    press(page, *["ArrowRight"] * 5)
    expect(page.find("#layer_said")).to_have_text("Layer 5: Full attention, K and V, linear, 8,192 B")
    press(page, "Tab")
    expect(page.find("#layer_said")).to_be_hidden()
    box = strip.bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 11.5 / 62, box["y"] + box["height"] / 2)
    expect(page.find("#layer_said")).to_contain_text("Layer 11: Full attention")
    page.page.mouse.move(0, 0)
    expect(page.find("#layer_said")).to_be_hidden()


def test_the_strip_has_one_cell_for_each_layer(page):
    page.set(model="gemma-3-27b")
    layers = page.find("#strip i").evaluate_all("(runs) => runs.map(({ dataset }) => Number(dataset.layers))")
    assert sum(layers) == 62
    widths = page.find("#strip i").evaluate_all("(runs) => runs.map((run) => run.offsetWidth)")
    for count, width in zip(layers, widths, strict=True):
        assert width / count == pytest.approx(sum(widths) / 62, abs=1)


# --- units and counts ---


def test_units_change_everywhere_at_once_and_are_always_written(page):
    page.set(model="gemma-3-27b")
    page.open_tab("ranks")
    page.choose("units", "GB")
    shown = [page.find(place).inner_text() for place in ("#headline", "#panel-ranks", "#brief")]
    (amounts,) = [glyph["data"]["amount"] for glyph in page.drawn()["bars"]["glyphs"][-1:]]
    ticks = [words for _, words in page.drawn()["curves"]["y_ticks"]]
    for words in (*shown, *amounts, *ticks):
        assert "iB" not in words
        assert "B" in words
    page.choose("units", "GiB")
    assert "GiB" in page.find("#headline").inner_text()


@pytest.mark.parametrize(
    ("typed", "shown"), [("100K", "100,000"), ("128Ki", "131,072"), ("131072", "131,072")]
)
def test_a_token_count_is_shown_in_full_however_it_was_typed(page, typed, shown):
    page.type("context_tokens", typed)
    press(page, "Tab")
    expect(page.box("context_tokens")).to_have_value(shown)
    expect(page.find(".tile h2").nth(3)).to_contain_text(shown)


# --- shortcuts ---


def test_the_shortcuts_are_listed_and_work(page):
    page.find("h1").click()
    press(page, "?")
    expect(page.find("#shortcuts")).to_be_visible()
    press(page, "Escape")
    press(page, "2")
    expect(page.find(f"#tab-{TABS[1]}")).to_have_attribute("aria-selected", "true")
    press(page, "u")
    expect(page.box("units")).to_have_value("GB")
    press(page, "u")
    expect(page.box("units")).to_have_value("GiB")
    press(page, "c")
    expect(page.find("#status")).to_have_text("Link copied")
    press(page, "m")
    expect(page.box("model")).to_be_focused()


def test_letters_typed_into_a_box_are_no_shortcuts(page):
    page.type("num_layers", "u2?")
    expect(page.box("units")).to_have_value("GiB")
    expect(page.find("#tab-layers")).to_have_attribute("aria-selected", "true")
    expect(page.find("#shortcuts")).to_be_hidden()
    page.type("num_layers", "61")


def test_single_keys_can_be_switched_off(page):
    page.find("#help").click()
    page.find("#single_keys").uncheck()
    press(page, "Escape")
    page.find("h1").click()
    press(page, "2", "?")
    expect(page.find("#tab-layers")).to_have_attribute("aria-selected", "true")
    expect(page.find("#shortcuts")).to_be_hidden()
    page.find("#help").click()
    page.find("#single_keys").check()
    press(page, "Escape")


def test_a_slider_is_moved_by_page_keys_and_to_its_ends(page):
    slider = page.slider("num_layers")
    slider.focus()
    positions = []
    for key in ("Home", "PageUp", "ArrowUp", "PageDown", "End"):
        press(page, key)
        positions.append(int(slider.input_value()))
    first, leapt, stepped, back, last = positions
    assert (first, last) == (0, 127)
    assert leapt > 5
    assert stepped == leapt + 1
    assert back < leapt
    expect(slider).to_have_attribute("aria-valuetext", "128 layers")


def test_the_skip_link_leads_to_the_answers(page):
    page.page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    page.find(".skip").focus()
    press(page, "Enter")
    expect(page.find("#answers")).to_be_focused()
