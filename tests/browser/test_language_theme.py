"""Language and theme: by the system, a switch or the address; words, page and charts alike."""

import re

import pytest
from playwright.sync_api import expect

from calculator import catalogue
from calculator.app.theme import THEMES
from calculator.fields import TABS
from calculator.locales import text

from .calculator_page import CalculatorPage
from .conftest import watching
from .watched import origin

# The same in both languages: numbers with units, dtypes, the languages' names, what engines call things.
SAME = re.compile(
    r"([\d\W]*(B|KiB|MiB|GiB|Ki|Mi))*[\d\W]*"
    r"|(\w+\.)?[a-z]+(_[a-z]+)+"  # fields of a configuration
    r"|BF16|FP16|FP32|NVFP4|MXFP8|GiB|GB|TP|Mamba-2|English|中文"
    r"|vLLM|SGLang|none|align|all|flashmla_kv|flashmla_sparse|fa3|tilelang|aiter|trtllm"
    r"|(groups|per_rank)\.[\w.]+|vLLM [\d.]+ [\w.]+; SGLang [\d.]+ [\w.]+"
)
TEXTS = """() => {
  const texts = [], closed = '[role=tabpanel][hidden]';
  const wordless = `script, style, noscript, code, kbd, math, #live, ${closed}`;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim(), parent = walk.currentNode.parentElement;
    if (text && !parent.closest(wordless)) texts.push(text);
  }
  for (const element of document.querySelectorAll('[aria-label]')) {
    if (!element.closest(closed)) texts.push(element.ariaLabel);
  }
  for (const element of document.querySelectorAll('[data-unit]')) texts.push(element.ariaValueText);
  return texts;
}"""


def rgb(colour):
    return "rgb({}, {}, {})".format(*(int(colour[at : at + 2], 16) for at in (1, 3, 5)))


def wears(page, name):
    """Page and charts have the colours of a theme."""
    theme = THEMES[name]
    expect(page.find("html")).to_have_attribute("data-theme", name)
    expect(page.find("html")).to_have_css("background-color", rgb(theme.page))
    expect(page.find("body")).to_have_css("color", rgb(theme.ink))
    page.settle()
    drawn = page.drawn()
    lines = {
        glyph["field"]["y"]: glyph["colour"] for glyph in drawn["curves"]["glyphs"] if glyph["type"] == "Line"
    }
    assert lines["linear"] == theme.linear
    assert lines["total"] == theme.ink
    assert drawn["curves"]["tick_colour"] == theme.muted
    (bars,) = [glyph for glyph in drawn["bars"]["glyphs"] if glyph["type"] == "HBar"]
    assert bars["data"]["colour"][:3] == [theme.linear, theme.bounded, theme.constant]
    assert {glyph["ink"] for glyph in drawn["bars"]["glyphs"] if glyph["type"] == "Text"} == {theme.ink}


def texts_of_all_tabs(page):
    found = []
    for tab in TABS:
        page.open_tab(tab)
        found += page.page.evaluate(TEXTS)
    return found


def test_every_visible_word_changes_with_the_language(fresh, site):
    live = fresh.open(site)
    live.set(model="gemma-3-27b", tensor_parallel_size="32")
    english = texts_of_all_tabs(live)
    axis = live.drawn()["curves"]["x_label"]
    live.choose("language", "zh")
    expect(live.find("html")).to_have_attribute("lang", "zh")
    chinese = texts_of_all_tabs(live)
    assert len(english) == len(chinese)
    names = [catalogue.entry(model).name for model in catalogue.ids()]
    same = {one for one, other in zip(english, chinese, strict=True) if one == other}
    measured = re.compile(f"({'|'.join(map(re.escape, names))}): ")  # a line of the comparison
    assert {one for one in same if one not in names and not SAME.fullmatch(measured.sub("", one))} == set()
    assert live.drawn()["curves"]["x_label"] not in {axis, ""}
    assert live.page.title().endswith(text("zh", "shell.title"))
    live.choose("language", "en")
    assert texts_of_all_tabs(live) == english


def test_slider_values_are_said_with_their_unit_in_both_languages(live):
    for language in ("en", "zh"):
        live.choose("language", language)
        for field, unit in {
            "num_layers": "layers",
            "kv_lora_rank": "elements",
            "context_tokens": "tokens",
        }.items():
            words = f"{live.box(field).input_value()} {text(language, f'unit.{unit}')}"
            expect(live.slider(field)).to_have_attribute("aria-valuetext", words)


def test_a_chinese_browser_shows_chinese_from_the_first_paint(browser, site):
    with watching(browser, origin(site), locale="zh-CN") as watched:
        page = CalculatorPage(watched.page)
        watched.page.goto(site, wait_until="domcontentloaded")
        expect(page.find("html")).to_have_attribute("lang", "zh")
        assert page.find("html").get_attribute("data-kv-state") in ("loading", "painted")
        expect(page.find("h1")).to_have_text(text("zh", "shell.title"))
        expect(page.find(".tile h2").first).to_have_text(text("zh", "headline.bytes_per_token"))
        expect(page.value("per_rank.bytes_per_token")).to_have_text("70,272 B")
        page.wait_for("live")
        expect(page.find(".tile h2").first).to_have_text(text("zh", "headline.bytes_per_token"))
        expect(page.box("language")).to_have_value("auto")
        assert "lang" not in page.address()


@pytest.mark.parametrize(
    ("locale", "scheme", "query", "language", "theme"),
    [
        ("en-US", "light", "", "en", "light"),
        ("zh-CN", "dark", "", "zh", "dark"),
        ("zh-CN", "dark", "?lang=en&theme=light", "en", "light"),
        ("en-US", "light", "?lang=zh&theme=dark", "zh", "dark"),
        ("en-US", "dark", "?lang=xx&theme=pink", "en", "dark"),
    ],
)
def test_the_first_paint_follows_the_address_then_the_system(
    browser, site, locale, scheme, query, language, theme
):
    with watching(browser, origin(site), locale=locale, color_scheme=scheme) as watched:
        page = CalculatorPage(watched.page)
        watched.page.goto(site + query, wait_until="domcontentloaded")
        expect(page.find("html")).to_have_attribute("lang", language)
        expect(page.find("html")).to_have_attribute("data-theme", theme)
        expect(page.find("html")).to_have_css("background-color", rgb(THEMES[theme].page))
        expect(page.find("h1")).to_have_text(text(language, "shell.title"))


def test_the_theme_follows_the_system_until_it_is_chosen(live):
    wears(live, "light")
    try:
        live.page.emulate_media(color_scheme="dark")
        wears(live, "dark")
        live.choose("theme", "light")
        wears(live, "light")
        live.page.emulate_media(color_scheme="light")
        live.choose("theme", "dark")
        wears(live, "dark")
        expect(live.page).to_have_url(re.compile("theme=dark"))
        live.choose("theme", "auto")
        wears(live, "light")
    finally:
        live.page.emulate_media(color_scheme="light")
