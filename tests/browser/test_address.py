"""The address is the whole state: it follows the controls, reopens the same, and carries nothing but text."""

import re
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import expect

from calculator.scenario import FIELDS

from .calculator_page import TAB_OF, CalculatorPage
from .conftest import watching
from .watched import origin

MARKUP = (
    """"'><img src=/stolen onerror=alert(1)><script>alert(2)</script><b id="injected">${7*7}{{7*7}}</b>"""
)
INJECTED = "#injected, img, main script, header script"


def test_the_address_names_the_model_and_what_differs(live):
    live.set(model="gemma-3-27b", num_layers="60", tensor_parallel_size="4", context_tokens="8192")
    expect(live.page).to_have_url(re.compile(r"\?v=1&m=gemma-3-27b&L=60&tp=4&t=8192$"))
    live.reset()
    expect(live.page).to_have_url(re.compile(r"\?v=1&m=deepseek-v3$"))


def test_history_does_not_grow_while_a_slider_moves(live):
    live.slide("num_layers", 128)  # what was chosen before has its entry now
    before = live.page.evaluate("() => history.length")
    live.slide("num_layers", 3)
    expect(live.page).to_have_url(re.compile("L=3$"))
    assert live.page.evaluate("() => history.length") == before


def test_a_reopened_address_gives_the_same_answer(live, fresh):
    live.set(
        model="qwen3.5-397b-a17b", num_global_layers="12", tensor_parallel_size="2", kv_cache_dtype="fp8"
    )
    live.set(state_dtype="bf16", context_tokens="32768", num_sequences="3", compare_tokens="8192")
    live.set(units="GB", axes="linear", language="zh", theme="dark")
    expect(live.page).to_have_url(re.compile("theme=dark"))
    fresh.open(live.page.url)
    assert fresh.result() == live.result()
    assert fresh.address() == live.address()
    assert fresh.drawn() == live.drawn()
    for field in live.fields():
        assert fresh.box(field).input_value() == live.box(field).input_value(), field
    assert fresh.find("#headline").text_content() == live.find("#headline").text_content()
    for name in TAB_OF:
        assert fresh.piece(name).text_content() == live.piece(name).text_content()


def test_what_an_address_has_wrong_is_said_beside_its_field(fresh, site):
    huge = "1" + "0" * 30
    wrong = {
        "L": "0",
        "r": "-1",
        "rope": "1.5",
        "t": "abc",
        "tp": "",
        "n": huge,
        "f": "int3",
        "colour": "blue",
    }
    fresh.open(f"{site}?{urlencode(wrong)}")
    for key, text in wrong.items():
        if key == "colour":
            continue
        field = next(name for name, item in FIELDS.items() if item.key == key)
        expect(fresh.message(field)).not_to_be_empty()
        expect(fresh.box(field)).to_have_attribute("aria-invalid", "true")
        if key != "f":  # a list can show only its options
            expect(fresh.box(field)).to_have_value(text)
    expect(fresh.message("num_layers")).to_contain_text("1 to 1,024")
    expect(fresh.message("tensor_parallel_size")).to_contain_text("1 to 1,024")
    expect(fresh.find("#notices")).to_contain_text("colour")
    fresh.type("num_layers", "61")
    fresh.type("kv_lora_rank", "512")
    fresh.type("qk_rope_head_dim", "64")
    fresh.type("tensor_parallel_size", "1")
    fresh.type("context_tokens", "8192")
    fresh.type("num_sequences", "1")
    assert fresh.number("per_rank.total_bytes") == 70_272 * 8_192


def test_markup_in_address_and_boxes_is_only_text(browser, site):
    keys = ["v", *(item.key for item in FIELDS.values()), MARKUP]
    with watching(browser, origin(site)) as watched:
        page = CalculatorPage(watched.page).open(f"{site}?{urlencode(dict.fromkeys(keys, MARKUP))}")
        expect(page.message("num_layers")).to_contain_text(MARKUP)
        expect(page.find("#notices")).to_contain_text(MARKUP)
        expect(page.box("num_layers")).to_have_value(MARKUP)
        assert page.find(INJECTED).count() == 0
        for field in page.fields():
            if page.box(field).evaluate("(box) => box.tagName") == "INPUT":
                page.paste(field, MARKUP)
                expect(page.message(field)).to_contain_text(MARKUP)
        assert page.find(INJECTED).count() == 0
        page.choose("language", "zh")
        assert page.find(INJECTED).count() == 0
        assert "/stolen" not in {urlsplit(url).path for url in watched.requests}
        # No dialog, no refused script: `watching` has seen every complaint.
