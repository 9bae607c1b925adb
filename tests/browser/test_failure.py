"""A start that fails says which file and offers another try; a start that works shows real progress."""

import re
import threading
from functools import partial
from pathlib import Path

import pytest
from builder.server import Handler, Server
from playwright.sync_api import Error, expect

from .calculator_page import CalculatorPage
from .conftest import serving, watching
from .watched import origin

SLICES = 8
PATIENCE = 60


class Faults:
    """What a server does wrong, by the end of a file's address."""

    def __init__(self):
        self.replaced: dict[str, Path] = {}
        self.slowed = ""
        self.allowed = threading.Semaphore(0)  # slices of the slowed file that may leave


class FaultyHandler(Handler):
    def __init__(self, *args, faults, **settings):
        self.faults = faults
        super().__init__(*args, **settings)

    def translate_path(self, path):
        found = [put for end, put in self.faults.replaced.items() if re.search(end, path)]
        return str(found[0]) if found else super().translate_path(path)

    def copyfile(self, source, outputfile):
        if not (self.faults.slowed and re.search(self.faults.slowed, self.path)):
            super().copyfile(source, outputfile)
            return
        content = source.read()
        size = -(-len(content) // SLICES)
        for start in range(0, len(content), size):
            self.faults.allowed.acquire(timeout=PATIENCE)
            outputfile.write(content[start : start + size])


@pytest.fixture
def faults():
    return Faults()


@pytest.fixture
def faulty(dist, faults):
    """The site behind a server with `faults`."""
    server = Server(("127.0.0.1", 0), partial(FaultyHandler, directory=str(dist), faults=faults))
    with serving(server) as url:
        yield url


@pytest.fixture
def page(browser, faulty):
    with watching(browser, origin(faulty)) as watched:
        watched.announce(".")  # a broken site complains; what it says to the user is what these tests look at
        yield CalculatorPage(watched.page)


def fails(page, name):
    """The page says in words that it could not start, and names the file."""
    page.wait_for("error")
    status = page.find("#status")
    expect(status).to_be_visible()
    expect(status).to_contain_text(re.compile(f"The calculator could not start: .*{name}"))
    expect(page.find("#retry")).to_be_visible()
    # The default answer is in the page and stays readable.
    assert page.number("per_rank.bytes_per_token") == 70_272


PARTS = {
    "packages": r"packages-\w+\.zip",
    "wasm": r"pyodide\.asm\.wasm",
    "standard library": r"stdlib\.zip",
    "pyodide": r"pyodide\.mjs",
    "worker": r"worker\.mjs",
}


@pytest.mark.parametrize("name", PARTS.values(), ids=PARTS)
def test_a_missing_file_is_named(page, faulty, faults, name):
    faults.replaced[name] = Path("/nonexistent/file")
    page.page.goto(faulty)
    fails(page, name)


@pytest.mark.parametrize("part", ["packages", "wasm", "standard library"])
def test_a_truncated_file_is_named(page, faulty, faults, dist, tmp_path, part):
    (whole,) = [path for path in dist.rglob("*") if re.search(PARTS[part], path.name)]
    short = tmp_path / whole.name
    short.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    faults.replaced[PARTS[part]] = short
    page.page.goto(faulty)
    fails(page, PARTS[part])


def test_retry_starts_once_the_file_is_back_and_keeps_what_was_typed(page, faulty, faults):
    faults.replaced[PARTS["worker"]] = Path("/nonexistent/file")
    page.page.goto(faulty)
    fails(page, PARTS["worker"])
    page.box("num_layers").focus()
    page.page.keyboard.press("Control+A")
    page.page.keyboard.type("30")
    page.find("#retry").click()
    fails(page, PARTS["worker"])
    faults.replaced.clear()
    page.find("#retry").focus()
    page.page.keyboard.press("Enter")
    page.wait_for("live")
    expect(page.find("#retry")).to_be_hidden()
    assert page.result()["per_rank"]["bytes_per_token"] == 30 * 1_152
    expect(page.box("num_layers")).to_have_value("30")


def test_a_missing_chart_library_is_named_and_asked_for_again(page, faulty, faults):
    faults.replaced[r"bokeh\.min\.js"] = Path("/nonexistent/file")
    page.page.goto(faulty)
    fails(page, r"bokeh\.min\.js")
    faults.replaced.clear()
    page.find("#retry").click()
    page.wait_for("live")
    assert page.drawn()["bars"]["glyphs"]


def test_a_result_asked_for_after_a_failure_is_refused(page, faulty, faults):
    faults.replaced[PARTS["worker"]] = Path("/nonexistent/file")
    page.page.goto(faulty)
    fails(page, PARTS["worker"])
    with pytest.raises(Error, match=r"worker\.mjs"):
        page.result()


def test_progress_shows_bytes_as_they_come(browser, faulty, faults):
    faults.slowed = PARTS["wasm"]
    with watching(browser, origin(faulty)) as watched:
        page = CalculatorPage(watched.page)
        watched.page.goto(faulty)
        progress = page.find("#progress")

        def loaded():
            return float(progress.get_attribute("value"))

        def grows_beyond(reached):
            page.find(f"#status:not(:text-is('{page.find('#status').inner_text()}'))").wait_for()
            assert loaded() > reached

        expect(page.find("#status")).to_contain_text(re.compile(r"[1-9][\d.]* of \d+\.\d MB"))
        for _ in range(2):
            reached = loaded()
            assert reached < 1
            faults.allowed.release(3)
            grows_beyond(reached)
        faults.allowed.release(SLICES)
