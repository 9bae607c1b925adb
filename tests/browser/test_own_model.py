"""A model of one's own in the page: pasted, opened, fetched, replaced number by number, described by hand."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from calculator import catalogue

from .calculator_page import CalculatorPage
from .conftest import serving, watching
from .watched import origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

LLAMA = json.dumps(catalogue.entry("llama-3.1-8b").config)
HOSTILE = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'
ANSWERS = {
    "open/llama": (200, LLAMA, True),
    "gated/model": (401, "sign in", True),
    "private/model": (403, "no", True),
    "no/model": (404, "nothing", True),
    "broken/model": (500, "", True),
    "login/page": (200, "<!doctype html><title>Sign in</title>", True),
    "torn/json": (200, '{"model_type": ', True),
    "huge/file": (200, '{"x": "' + "x" * 1_100_000 + '"}', True),
    "closed/model": (200, LLAMA, False),  # no CORS header: the browser keeps it from the page
}


class Hub(BaseHTTPRequestHandler):
    """Answers as a model hub does."""

    def do_GET(self) -> None:
        model = "/".join(self.path.split("/")[2:4])
        status, body, readable = ANSWERS.get(model, ANSWERS["no/model"])
        self.send_response(status)
        if readable:
            self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    """The base address of a hub on an origin of its own."""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Hub)) as url:
        yield f"{url}mirror"


@pytest.fixture(scope="module")
def asking(browser: Browser, site: str, hub: str) -> Iterator[CalculatorPage]:
    """A page that may ask the hub too."""
    with watching(browser, origin(site), origin(hub)) as watched:
        watched.announce(r"Failed to load resource|blocked by CORS policy|/mirror/")
        calculator = CalculatorPage(watched.page).open(f"{site}?tab=own")
        calculator.hub = hub
        yield calculator


def fetch(calculator: CalculatorPage, model: str, expected: str) -> None:
    calculator.find("#hub_base").fill(calculator.hub)
    calculator.find("#hub_id").fill(model)
    calculator.find("#hub_fetch").click()
    expect(calculator.find("#hub_message")).to_contain_text(expected)
    calculator.settle()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gated/model", "gated or private (HTTP 401)"),
        ("private/model", "gated or private (HTTP 403)"),
        ("no/model", "HTTP 404"),
        ("broken/model", "answered HTTP 500"),
        ("login/page", "is not JSON"),
        ("huge/file", "larger than 1,000,000 bytes"),
        ("closed/model", "does not allow other pages to read it (CORS)"),
        ("model", "is not a model id"),
        ("<b>/x", "is not a model id"),
    ],
)
def test_an_answer_that_is_no_configuration_is_explained(asking, model, expected):
    before = asking.result()
    fetch(asking, model, expected)
    assert asking.result() == before
    assert asking.find("#hub_message b").count() == 0


def test_without_a_network_the_page_says_so(asking):
    asking.page.context.set_offline(True)
    try:
        fetch(asking, "open/llama", "The browser is offline")
    finally:
        asking.page.context.set_offline(False)


def test_a_base_address_that_is_none_is_refused(asking, hub):
    asking.hub = "ftp://example"
    fetch(asking, "open/llama", "is not a base address")
    asking.hub = hub


def test_a_fetched_configuration_becomes_the_model_and_can_be_changed_by_hand(asking):
    fetch(asking, "open/llama", "was read")
    result = asking.result()
    assert result["scenario"]["own_name"] == "llama"
    assert result["logical"]["bytes_per_token"] == 131_072
    expect(asking.find("#name")).to_have_text("llama")
    # Every number says where it came from, and can be replaced.
    rows = asking.table("own_numbers")
    assert [row[-1] for row in rows] == [
        "num_key_value_heads",
        "derived: hidden_size / num_attention_heads",
        "derived: hidden_size / num_attention_heads",
    ]
    box = asking.find('[data-place="0.0.num_kv_heads"]')
    box.fill("4")
    box.press("Enter")
    assert asking.result()["logical"]["bytes_per_token"] == 65_536
    assert asking.table("own_numbers")[0][-1] == "typed here"
    box = asking.find('[data-place="0.0.num_kv_heads"]')
    box.fill("0")
    box.press("Enter")
    asking.settle()
    expect(asking.find("#message-overrides")).to_contain_text("num_kv_heads of full_attention is 0")
    # The link carries all of it.
    expect(asking.page).to_have_url(re.compile("o=0.0.num_kv_heads=4"))
    address = asking.address()
    assert len(address) < 500
    asking.open(asking.page.url)
    assert asking.result()["logical"]["bytes_per_token"] == 65_536
    assert asking.address() == address


def test_a_torn_file_and_a_refusal_stand_beside_the_input_with_what_to_do(asking):
    text, message = asking.find("#config_text"), asking.find("#message-config")
    fetch(asking, "open/llama", "was read")
    for given, said in (
        ('{"model_type": ', "JSON"),
        (json.dumps({"model_type": "fancy", "hidden_size": 8, "x": HOSTILE}), "num_hidden_layers"),
        (json.dumps({"model_type": HOSTILE, "num_hidden_layers": HOSTILE}), "num_hidden_layers"),
    ):
        text.fill(given)
        expect(message).to_contain_text(said)
        expect(text).to_have_attribute("aria-invalid", "true")
        assert asking.result()["logical"]["bytes_per_token"] == 131_072, "the model before it stays"
    assert asking.frame.evaluate("window.hurt") is None
    assert asking.find("#message-config :is(img, script)").count() == 0


def test_a_refused_model_is_described_by_hand(asking):
    asking.find("#config_text").fill('{"model_type": "fancy"}')
    asking.find("#by_hand").click()
    asking.find("#editor_start").click()
    editor = asking.find("#editor")
    editor.locator("select").first.select_option("gated_delta_net")
    editor.locator("input[type=number]").nth(1).fill("3")
    for size, value in {
        "conv_kernel": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 64,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
    }.items():
        editor.get_by_label(size).fill(str(value))
    editor.get_by_role("button", name="Add layers").click()
    for size, value in {"num_kv_heads": 2, "head_size": 256, "head_size_v": 256}.items():
        editor.get_by_label(size, exact=True).fill(str(value))
    editor.locator("input[type=number]").first.fill("15")
    asking.page.wait_for_timeout(400)
    result = asking.result()
    assert result["logical"]["bytes_per_token"] == 30_720
    assert result["logical"]["constant_bytes"] == 192_061_440
    layers = asking.find("#layers_text")
    expect(layers).to_have_value(lambda_free := layers.input_value())
    layers.fill("2*full_attention(num_kv_heads=1)")
    layers.blur()
    expect(asking.find("#message-layers")).to_contain_text("needs head_size, head_size_v too")
    layers.fill(lambda_free.replace("15*", "2*"))
    layers.blur()
    asking.settle()
    assert asking.result()["logical"]["bytes_per_token"] == 4_096


ADD_AND_MOVE = """() => {
  document.querySelector('#editor [data-act=row]').click();
  const range = document.querySelector('[data-kv-control=context_tokens] input[type=range]');
  range.value = Number(range.value) - 1;
  range.dispatchEvent(new Event('input', { bubbles: true }));
}"""


def test_layers_that_were_added_outlive_the_answer_to_something_else(asking):
    asking.find("#editor_start").click()
    rows = asking.find("#editor .run")
    layers = asking.find("#layers_text")
    before, text = rows.count(), layers.input_value()
    asking.page.evaluate(ADD_AND_MOVE)
    asking.settle()
    expect(rows).to_have_count(before + 1)
    asking.page.wait_for_timeout(400)
    asking.settle()
    expect(rows).to_have_count(before + 1)
    assert layers.input_value().count("full_attention") == text.count("full_attention") + 1


def test_a_file_is_opened_and_a_name_is_text(asking, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(LLAMA, encoding="utf-8")
    asking.find("#config_file").set_input_files(path)
    expect(asking.find("#config_text")).to_have_value(LLAMA)
    asking.find("#own_name").fill(HOSTILE[:50])
    asking.find("#own_name").press("Enter")
    asking.settle()
    expect(asking.find("#name")).to_contain_text("<img")
    assert asking.frame.evaluate("window.hurt") is None
    asking.choose("model", "deepseek-v3")
    assert asking.result()["scenario"]["config"] == ""


def test_a_dropped_file_is_read(asking):
    asking.frame.evaluate(
        """(text) => {
          const given = new DataTransfer();
          given.items.add(new File([text], 'config.json', { type: 'application/json' }));
          document.getElementById('config_drop')
            .dispatchEvent(new DragEvent('drop', { dataTransfer: given, bubbles: true, cancelable: true }));
        }""",
        LLAMA,
    )
    expect(asking.find("#config_text")).to_have_value(LLAMA)
    assert asking.result()["logical"]["bytes_per_token"] == 131_072
