"""The ladder of starts: each way is broken by its files or its worker, never by the page's own code."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Error, expect

from .calculator_page import CalculatorPage
from .conftest import launched, watching
from .faults import SLICES
from .watched import origin


@pytest.fixture
def page(browser, faulty):
    with watching(browser, origin(faulty)) as watched:
        watched.announce(".")  # a broken site complains; what it says to the user is what these tests look at
        calculator = CalculatorPage(watched.page)
        calculator.requests = watched.requests
        yield calculator


def fails(page, name):
    """The page says in words that it could not start, and names the file."""
    page.wait_for("error")
    status = page.find("#status")
    expect(status).to_be_visible()
    expect(status).to_contain_text(re.compile(f"The calculator could not start: .*{name}"))
    expect(page.find("#retry")).to_be_visible()
    # The default answer is in the page and stays readable.
    assert page.number("per_rank.bytes_per_token") == 70_272


RESUME = {
    "snapshot": r"snapshot-\w+\.zst",
    "extension module": r"extension-0-\w+\.wasm\.gz",
    "wasm": r"pyodide-\w+\.asm\.wasm\.gz",
    "script": r"pyodide-\w+\.asm\.mjs",
    "painted charts": r"charts-en-light-\w+\.json",
}
PLAIN = {
    "packages": r"packages-\w+\.zip",
    "wasm": r"pyodide\.asm\.wasm$",
    "standard library": r"stdlib\.zip",
}
BOTH = {"pyodide": r"pyodide\.mjs", "worker": r"worker\.mjs"}
BOKEH = r"bokeh\.min\.js"
NOWHERE = Path("/nonexistent/file")


def served(dist, name):
    (found,) = [path for path in dist.rglob("*") if re.search(name, path.name)]
    return found


def falls_back(page):
    """The page tells that it starts the slower way, gets live, and gives the right numbers."""
    page.wait_for("live")
    assert any("packages-" in url for url in page.requests)
    assert page.result()["per_rank"]["bytes_per_token"] == 70_272
    page.type("num_layers", "60")
    assert page.number("per_rank.bytes_per_token") == 60 * 1_152
    assert page.drawn()["bars"]["glyphs"]


def starts_plainly(page, url):
    """The page takes the second way; `falls_back` follows one to its end, and all are alike from here."""
    with page.page.context.expect_event("request", lambda request: "packages-" in request.url):
        page.page.goto(url)
    page.wait_for("fallback")


@pytest.mark.parametrize("name", RESUME.values(), ids=RESUME)
def test_without_a_file_of_the_snapshot_the_page_starts_plainly(page, faulty, faults, name):
    faults.replaced[name] = NOWHERE
    starts_plainly(page, faulty)


def truncated(data):
    return data[: len(data) // 2]


def altered(data):
    return data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]


@pytest.mark.parametrize("damage", [truncated, altered])
@pytest.mark.parametrize("part", ["snapshot", "wasm", "extension module"])
def test_a_damaged_file_of_the_snapshot_is_not_used(page, faulty, faults, dist, tmp_path, part, damage):
    whole = served(dist, RESUME[part])
    (tmp_path / whole.name).write_bytes(damage(whole.read_bytes()))
    faults.replaced[RESUME[part]] = tmp_path / whole.name
    starts_plainly(page, faulty)


def test_a_stale_snapshot_is_not_used(page, faulty, faults, dist, tmp_path):
    """A cache between us and the user gives an older page's snapshot, which is whole in itself."""
    stale = tmp_path / "stale.zst"
    stale.write_bytes(served(dist, RESUME["extension module"]).read_bytes())
    faults.replaced[RESUME["snapshot"]] = stale
    page.page.goto(faulty)
    falls_back(page)


def test_without_decompression_the_page_starts_plainly(page, faulty, faults, dist, tmp_path):
    old = tmp_path / "worker.mjs"  # in a browser that lacks it
    old.write_text(
        "delete self.DecompressionStream;\n" + served(dist, r"^worker\.mjs").read_text(encoding="utf-8")
    )
    faults.replaced[BOTH["worker"]] = old
    page.page.goto(faulty)
    falls_back(page)


@pytest.mark.parametrize("name", [*PLAIN.values(), *BOTH.values()], ids=[*PLAIN, *BOTH])
def test_when_both_ways_fail_the_file_is_named(page, faulty, faults, name):
    faults.replaced[RESUME["snapshot"]] = NOWHERE
    faults.replaced[name] = NOWHERE
    page.page.goto(faulty)
    fails(page, name.removesuffix("$"))


def kill(page):
    (worker,) = page.page.workers
    worker.evaluate("() => self.close()")


def test_a_worker_that_ends_is_replaced_and_keeps_the_scenario(page, faulty):
    page.page.goto(f"{faulty}?v=1&m=deepseek-v3&tp=2")
    page.wait_for("live")
    page.type("num_layers", "40")
    kill(page)
    page.wait_for("loading")
    page.slide("context_tokens", 8_192)
    page.wait_for("live")
    result = page.result()
    assert result["scenario"]["num_layers"] == 40
    assert result["scenario"]["tensor_parallel_size"] == 2
    assert result["scenario"]["context_tokens"] == 8_192
    assert page.number("per_rank.bytes_per_token") == 40 * 1_152
    assert "8,192 tokens" in page.line("total")


def test_retry_starts_once_the_file_is_back_and_keeps_what_was_typed(page, faulty, faults):
    faults.replaced[BOTH["worker"]] = NOWHERE
    page.page.goto(faulty)
    fails(page, BOTH["worker"])
    page.box("num_layers").focus()
    page.page.keyboard.press("Control+A")
    page.page.keyboard.type("30")
    page.find("#retry").click()
    fails(page, BOTH["worker"])
    faults.replaced.clear()
    page.find("#retry").focus()
    page.page.keyboard.press("Enter")
    page.wait_for("live")
    expect(page.find("#retry")).to_be_hidden()
    assert page.result()["per_rank"]["bytes_per_token"] == 30 * 1_152
    expect(page.box("num_layers")).to_have_value("30")


@pytest.mark.parametrize("link", ["", "?m=gemma-3-27b"])
def test_retry_takes_the_first_way_when_that_is_whole_again(page, faulty, faults, link):
    for lost in (BOKEH, PLAIN["packages"]):
        faults.replaced[lost] = NOWHERE
    page.page.goto(faulty + link)
    page.wait_for("error")
    del faults.replaced[BOKEH]
    page.find("#retry").click()
    page.wait_for("live")
    assert page.drawn()["bars"]["glyphs"]


def test_a_missing_chart_library_is_named_and_asked_for_again(page, faulty, faults):
    faults.replaced[BOKEH] = NOWHERE
    page.page.goto(faulty)
    fails(page, BOKEH)
    faults.replaced.clear()
    page.find("#retry").click()
    page.wait_for("live")
    assert page.drawn()["bars"]["glyphs"]


@pytest.mark.parametrize("lost", [r"boot\.mjs", r"first-paint\.js"])
def test_a_page_without_its_scripts_says_so_after_a_while(page, faulty, faults, lost):
    faults.replaced[lost] = NOWHERE
    page.page.goto(faulty)
    notice = page.find("#unscripted")
    expect(notice).to_be_hidden()
    page.page.evaluate("() => document.getAnimations().forEach((animation) => animation.finish())")
    expect(notice).to_be_visible()
    expect(notice).to_contain_text("scripts of this page have not come")
    faults.replaced.clear()
    notice.get_by_role("link", name="Reload").click()
    page.wait_for("live")
    expect(notice).to_have_count(0)


def minutes_pass(page, name):
    """The page's clock goes on by minutes until the page waits no longer for this file, and says so."""
    with page.page.expect_console_message(lambda told: "no word" in told.text) as told:
        until(page, "fallback")
    assert re.search(f"{name}.*: no word for 60 s", told.value.text)


def until(page, state):
    for _ in range(120):
        page.page.clock.fast_forward(60_000)
        page.page.wait_for_timeout(500)
        if page.find("html").get_attribute("data-kv-state") == state:
            return
    raise AssertionError(page.find("#status").text_content())


@pytest.mark.parametrize("part", ["snapshot", "painted charts"])
def test_a_file_that_never_ends_is_named_after_a_minute(page, faulty, faults, part):
    page.page.clock.install()
    faults.slowed = RESUME[part]
    page.page.goto(faulty)
    expect(page.find("#status")).to_contain_text("MB")
    if part == "snapshot":
        page.wait_for("painted")
    minutes_pass(page, RESUME[part])
    falls_back(page)
    faults.allowed.release(SLICES)


def test_a_chart_library_that_never_ends_is_named_after_two_minutes(page, faulty, faults):
    page.page.clock.install()
    faults.slowed = BOKEH
    with page.page.context.expect_event("requestfinished", lambda one: re.search("/charts-", one.url)):
        page.page.goto(faulty, wait_until="commit")
    minutes_pass(page, BOKEH)
    until(page, "error")
    fails(page, f"{BOKEH}: no word for 60 s")
    faults.slowed = ""
    page.find("#retry").click()
    page.wait_for("live")
    assert page.drawn()["bars"]["glyphs"]
    faults.allowed.release(2 * SLICES)


@pytest.mark.parametrize("megabytes", [25, 38])  # less than Python begins with, and less than it grows to
def test_a_browser_that_refuses_memory_is_told_about(browser, site, megabytes):
    """V8 itself gives WebAssembly no more than this."""
    flag = f"--js-flags=--wasm-max-mem-pages={megabytes * 16}"
    with launched(browser.browser_type, flag) as mean, watching(mean, origin(site)) as watched:
        watched.announce(".")
        page = CalculatorPage(watched.page)
        watched.page.goto(site)
        fails(page, "emory")


def test_a_result_asked_for_after_a_failure_is_refused(page, faulty, faults):
    faults.replaced[BOTH["worker"]] = NOWHERE
    page.page.goto(faulty)
    fails(page, BOTH["worker"])
    with pytest.raises(Error, match=r"worker\.mjs"):
        page.result()


def test_progress_shows_bytes_as_they_come(browser, faulty, faults):
    faults.slowed = RESUME["snapshot"]
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
