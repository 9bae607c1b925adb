"""The page as the build writes it: well formed, named in both languages, and within its own policy."""

import json
import re
from itertools import pairwise

import pytest

from calculator.app.controls import controls
from calculator.app.main import App
from calculator.app.readouts import pieces
from calculator.app.shell import _inline_json, answers, render
from calculator.app.state import OWN_FIELDS
from calculator.caches import KINDS
from calculator.catalogue import ids as catalogue_ids
from calculator.fields import FIELDS
from calculator.locales import LANGUAGES, catalogue
from tests.app.page import HOSTILE, SITE, Page, opened

PARTS = {
    "app": "app-0123456789/",
    "runtime": "runtime-0123456789/",
    "packages": {"url": "packages-0123456789.zip", "bytes": 1},
    "stdlib": {"url": "runtime-0123456789/stdlib.zip", "bytes": 2},
    "wasm": {"url": "runtime-0123456789/pyodide.asm.wasm", "bytes": 3},
}


@pytest.fixture(scope="module")
def html():
    return render((SITE / "index.html").read_text(encoding="utf-8"), PARTS)


@pytest.fixture(scope="module")
def page(html):
    assert html.startswith("<!doctype html>")
    return Page(html)


@pytest.fixture(scope="module")
def data(page):
    (written,) = [text for attributes, text in page.all("script") if attributes.get("id") == "site"]
    return json.loads(written)


def test_nothing_of_the_template_is_left(html):
    assert not re.search(r"{{|{%|{#|}}|%}", re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))


def test_ids_are_unique_and_what_refers_to_one_finds_it(page):
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    referring = (
        page.attributes("for") + page.attributes("aria-describedby") + page.attributes("aria-labelledby")
    )
    referring += [target[1:] for target in page.attributes("href") if target.startswith("#")]
    assert referring
    assert {name for names in referring for name in names.split()} <= set(ids)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_that_the_page_changes_exists_and_is_in_the_page(page, data, language):
    keys = set(page.attributes("data-text") + page.attributes("data-name") + page.attributes("data-unit"))
    assert len(keys) > 60
    assert keys <= catalogue(language).keys()
    assert keys <= data["texts"][language].keys()


def test_the_words_before_any_change_are_those_of_the_page_language(page):
    english = catalogue("en")
    assert [attributes["lang"] for attributes, _ in page.all("html")] == ["en"]
    for _, attributes, text in page.elements:
        if "data-text" in attributes:
            assert "".join(text) == english[attributes["data-text"]]
        if "data-name" in attributes:
            assert attributes["aria-label"] == english[attributes["data-name"]]


def test_every_control_is_there_once_with_its_hook_and_a_place_for_its_message(page):
    fields = [control.field for control in controls()]
    assert sorted(page.attributes("data-kv-control")) == sorted(fields)
    messages = {attributes["id"] for attributes, _ in page.all("p") if attributes.get("class") == "message"}
    assert messages == {f"message-{field}" for field in (*fields, *OWN_FIELDS)}
    boxes = {
        attributes["id"]: attributes
        for attributes, _ in page.all("input") + page.all("select")
        if "id" in attributes
    }
    for field in fields:
        assert boxes[f"box-{field}"]["aria-describedby"] == f"message-{field}"


def test_every_input_has_a_name(page):
    labelled = {attributes["for"] for attributes, text in page.all("label") if text.strip()}
    inputs = page.all("input") + page.all("select")
    assert len(inputs) > 50
    for attributes, _ in inputs:
        assert attributes.get("id") in labelled or attributes.get("aria-label"), attributes
    for attributes, text in page.all("button") + page.all("summary"):
        assert text.strip() or attributes.get("aria-label")
    for _, attributes, _ in page.elements:
        if attributes.get("role") in {"img", "region"}:
            assert attributes["aria-label"]


def test_the_sliders_have_their_stops_and_stand_where_the_default_is(page):
    by_field = {control.field: control for control in controls() if control.stops}
    found = 0
    for attributes, _ in page.all("input"):
        if "data-stops" in attributes:
            found += 1
            field = attributes["data-name"].removeprefix("field.")
            assert tuple(json.loads(attributes["data-stops"])) == by_field[field].stops
            assert 0 <= int(attributes["value"]) <= int(attributes["max"]) < len(by_field[field].stops)
    assert found == len(by_field)


def test_lists_show_the_default(page):
    chosen = {attributes["value"] for attributes, _ in page.all("option") if "selected" in attributes}
    assert {"mla", "bf16", "GiB", "log", "auto"} <= chosen
    assert len([1 for attributes, _ in page.all("option") if "selected" in attributes]) == len(
        page.all("select")
    )


def test_the_picker_shows_the_default_and_knows_every_model(page, data):
    (box,) = [attributes for attributes, _ in page.all("input") if attributes.get("id") == "box-model"]
    assert (box["role"], box["value"]) == ("combobox", "DeepSeek-V3")
    assert {model["id"] for model in data["models"]} == set(FIELDS["model"].rule.options)
    makers = [model["maker"] for model in data["models"]]
    assert len([1 for before, after in pairwise(makers) if before != after]) == len(set(makers)) - 1
    assert {kind for model in data["models"] for kind in model["kinds"]} <= data["kinds"].keys()


def test_the_editor_knows_the_sizes_and_bounds_of_every_kind(data):
    assert data["kinds"].keys() == KINDS.keys()
    for name, sizes in data["kinds"].items():
        assert {size["name"]: (size["lowest"], size["highest"]) for size in sizes} == dict(
            KINDS[name].sized()
        )
        assert all(size["lowest"] <= size["start"] <= size["highest"] for size in sizes)


def test_the_default_answer_is_readable_before_any_script(html):
    for name, piece in pieces(opened()).items():
        assert re.search(rf'id="{name}"[^>]*>{re.escape(piece)}</', html), name
    assert "70,272 B" in html


def test_the_page_starts_loading_in_the_light(page):
    ((attributes, _),) = page.all("html")
    assert attributes.pop("data-kv-build") == "", "the build writes it"
    assert attributes == {"lang": "en", "data-kv-state": "loading", "data-theme": "light"}


# --- the inline data ---


def test_what_starts_first_has_the_addresses_of_the_parts_and_the_model_of_the_page(page):
    (written,) = [text for attributes, text in page.all("script") if attributes.get("id") == "start"]
    start = json.loads(written)
    parts = {name: part for name, part in PARTS.items() if name != "app"}
    assert start == parts | {"worker": f"{PARTS['app']}worker.mjs", "model": "deepseek-v3"}


def test_the_inline_data_have_both_languages(data):
    assert data["texts"].keys() == data["pages"].keys() == set(LANGUAGES)
    for language in LANGUAGES:
        first = data["pages"][language]
        assert first["language"] == language
        stills = {name: first["pieces"].pop(name) for name in ("curves", "bars")}
        assert first["pieces"] == pieces(opened(language=language))
        assert all("still" in still for still in stills.values())


def test_the_answers_of_the_catalogue_are_those_of_their_addresses(data):
    written = answers()
    assert written.keys() == {f"{model}-{lang}.json" for model in catalogue_ids() for lang in LANGUAGES}
    for name in ("qwen3.5-397b-a17b-zh", "deepseek-v3-en", "whisper-large-v3-en"):
        model, _, language = name.rpartition("-")
        answer, first = json.loads(written[f"{name}.json"]), data["pages"][language]
        page = App(f"m={model}", {"language": language, "theme": "light"}).page()
        for part in ("pieces", "form"):
            merged = first[part] | answer[part]
            assert {key: merged[key] for key in page[part]} == page[part]
        assert {key: answer[key] for key in page if key not in ("pieces", "form")} == {
            key: page[key] for key in page if key not in ("pieces", "form")
        }


def test_the_page_has_the_words_that_its_scripts_ask_for(data):
    scripts = "".join(path.read_text(encoding="utf-8") for path in SITE.glob("*.mjs"))
    keys = set(re.findall(r"'((?:shell|status)\.[a-z_]+)'", scripts))
    keys |= {f"status.{step}" for step in re.findall(r"step: '(\w+)'", scripts)}
    assert len(keys) > 5
    for language in LANGUAGES:
        assert keys <= data["texts"][language].keys()


def test_inline_data_cannot_end_their_script():
    written = _inline_json({"</script>": "<!--<script>" + HOSTILE})
    assert "<" not in written
    assert json.loads(written) == {"</script>": "<!--<script>" + HOSTILE}


def test_the_inline_data_of_the_page_have_no_markup_of_their_own(html):
    inside = html.partition('id="site">')[2].partition("</script>")[0]
    assert "<" not in inside
    json.loads(inside)


# --- the policy ---


def test_the_policy_allows_scripts_of_this_origin_only_and_no_eval(page):
    (content,) = [
        a["content"] for a, _ in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    ]
    policy = {words.split()[0]: words.split()[1:] for words in content.split(";")}
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == ["'self'"]
    assert policy["worker-src"] == ["'self'"]
    # A hub or its mirror is asked for a configuration, at the address that the user types: any, then.
    assert policy["connect-src"] == ["'self'", "https:", "http:"]
    assert policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert "unsafe-eval" not in content
    assert "unsafe-inline" not in " ".join(policy["script-src"])


def test_the_policy_stands_before_anything_that_loads(html):
    policy = html.index("Content-Security-Policy")
    assert policy < min(html.index(start) for start in ("<script", "<link", "<style"))


def test_the_page_has_no_script_or_handler_of_its_own(page):
    for attributes, text in page.all("script"):
        if "src" not in attributes:
            assert attributes["type"] == "application/json"
        else:
            assert not text.strip()
    for _, attributes, _ in page.elements:
        assert not any(name.startswith("on") for name in attributes)
        assert not any(value.strip().lower().startswith("javascript:") for value in attributes.values())


def test_every_address_is_relative_so_that_the_site_works_from_any_path(html, page):
    loaded = page.attributes("src") + [a["href"] for a, _ in page.all("link") + page.all("a")]
    assert len(loaded) >= 5
    for address in loaded:
        assert re.match(r"(#|[a-z]|$)", address), address  # the page itself has none
        assert ":" not in address
    assert "://" not in html
    assert not page.all("base") + page.all("iframe") + page.all("object")
