"""The app behind the page, as the worker uses it."""

import ast
import json
from pathlib import Path

import pytest
from bokeh.document import Document
from bokeh.models import Plot

import calculator.app
from calculator.app.main import ROOTS, App
from calculator.app.rehearsal import play
from calculator.fields import FIELDS
from calculator.scenario import open_address
from tests.app.page import SITE, SYSTEM

APP = Path(calculator.app.__file__).parent


def test_the_document_has_one_root_for_each_element_that_the_page_keeps_for_one():
    app, document = App("", SYSTEM), Document()
    app.add_to(document)
    assert len(document.roots) == len(ROOTS)
    page = (SITE / "index.html").read_text(encoding="utf-8")
    for name, root in zip(ROOTS, document.roots, strict=True):
        assert f'class="chart" id="{name}"' in page
        (figure,) = root.select({"type": Plot})
        assert figure is app.views[name].figure


@pytest.mark.parametrize("query", ["", "m=llama-7b&t=4096&lang=zh&theme=dark", "a=window&L=48&g=8&tp=2&u=GB"])
def test_the_address_of_the_page_opens_the_same_page(query):
    first = App(query, SYSTEM).page()
    again = App(str(first["address"]), SYSTEM).page()
    assert first == again
    assert not open_address(str(first["address"])).problems


def test_the_page_is_plain_json():
    page = App("", SYSTEM).page()
    assert json.loads(json.dumps(page)) == page
    assert page.keys() == {"address", "language", "theme", "title", "tab", "form", "pieces", "summary"}
    assert (page["address"], page["language"], page["theme"]) == ("v=1&m=deepseek-v3", "en", "light")


def test_a_change_shows_in_the_page_and_in_both_charts():
    app = App("", SYSTEM)
    top = list(app.views["curves"].points.data["total_text"])
    lengths = list(app.views["bars"].rows.data["exact"])
    app.change({"num_layers": "7", "compare_tokens": "5"}, SYSTEM)
    app.settle()
    page = app.page()
    assert page["address"] == "v=1&m=deepseek-v3&L=7&ct=5"
    assert page["title"] == "custom, from DeepSeek-V3"
    assert app.views["curves"].points.data["total_text"] != top
    assert app.views["bars"].rows.data["exact"] != lengths


def test_an_address_that_the_user_goes_back_to_replaces_everything():
    app, other = App("", SYSTEM), App("m=gemma-3-27b&t=8192&tab=ranks", SYSTEM)
    app.change({"num_layers": "none"}, SYSTEM)
    app.change({"address": other.page()["address"]}, SYSTEM)
    assert app.page() == other.page()
    assert app.views["curves"].points.data["total"] == other.views["curves"].points.data["total"]


def test_what_was_changed_after_going_back_is_taken_too():
    app = App("", SYSTEM)
    app.change({"address": "m=gemma-3-27b", "context_tokens": "8192"}, SYSTEM)
    assert app.page()["address"] == "v=1&m=gemma-3-27b&t=8192"


def test_a_refused_change_alters_the_form_only():
    app = App("", SYSTEM)
    before = app.page()
    app.change({"num_layers": "none"}, SYSTEM)
    after = app.page()
    assert {name for name in before if before[name] != after[name]} == {"form"}
    changed = {name for name in before["form"] if before["form"][name] != after["form"][name]}
    assert changed == {"num_layers"}


def test_a_chart_is_not_sent_again_for_what_it_does_not_show():
    app, document = App("", SYSTEM), Document()
    app.add_to(document)
    events = []
    document.on_change(events.append)
    app.change({"num_layers": "7"}, SYSTEM)
    bars = set(app.views["bars"].figure.references())
    assert events
    assert not [event for event in events if event.model in bars]


def test_a_change_of_theme_moves_nothing():
    app, document = App("", SYSTEM), Document()
    app.add_to(document)
    events = []
    document.on_change(events.append)
    app.change({"theme": "dark"}, SYSTEM)
    attributes = {event.attr for event in events}
    assert attributes
    assert not any(
        event.attr == "y_range" or event.attr in {"start", "end", "height", "ticks"} for event in events
    )


def test_the_rehearsal_of_the_build_drives_every_control_and_ends_in_a_good_page():
    app = App("", SYSTEM)
    seen = set()
    change = app.change
    app.change = lambda given, system: (seen.update(given), change(given, system))
    play(app)
    assert seen == FIELDS.keys()
    assert json.dumps(app.page())


def test_only_the_browsers_side_imports_js_and_pyodide_at_its_top():
    for source in APP.glob("*.py"):
        tree = ast.parse(source.read_text(encoding="utf-8"))
        names = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
        names |= {
            str(node.module) for node in tree.body if isinstance(node, ast.ImportFrom) and not node.level
        }
        foreign = {name for name in names if {"js", "pyodide"} & set(name.split("."))}
        assert bool(foreign) == (source.name == "browser.py")
