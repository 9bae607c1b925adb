"""No third party, a strict policy, any sub-path, any frame."""

import re
from urllib.parse import urlsplit

import pytest
from builder.server import make_server
from playwright.sync_api import expect

from .calculator_page import CalculatorPage
from .conftest import serving, watching
from .watched import origin

HOST = """<!doctype html><html lang="en"><title>A host page</title><link rel="icon" href="data:,">
<h1>Host</h1><iframe title="Calculator" src="{src}" width="1200" height="900"></iframe></html>"""


@pytest.fixture(scope="module")
def parent(dist, tmp_path_factory):
    """A plain file server whose /a/b/ is the site and whose /host.html embeds it."""
    folder = tmp_path_factory.mktemp("parent")
    (folder / "a").mkdir()
    (folder / "a/b").symlink_to(dist, target_is_directory=True)
    (folder / "host.html").write_text(HOST.format(src="a/b/?m=llama-3.1-8b"), encoding="utf-8")
    with serving(make_server(folder)) as url:
        yield url


@pytest.fixture(scope="module")
def stranger(site, tmp_path_factory):
    """A server of another origin whose page embeds the site."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "host.html").write_text(HOST.format(src=f"{site}?m=llama-3.1-8b"), encoding="utf-8")
    with serving(make_server(folder)) as url:
        yield url


def use_embedded(watched, url):
    """Open a host page and use the calculator in its frame."""
    watched.page.goto(url)
    frame = watched.page.query_selector("iframe").content_frame()
    page = CalculatorPage(watched.page, frame)
    page.wait_for("live")
    assert page.number("per_rank.bytes_per_token") == 2 * 32 * 8 * 128 * 2
    pages = watched.page.evaluate("() => history.length")
    page.slide("tensor_parallel_size", 8)
    page.type("num_layers", "16")
    assert page.number("per_rank.bytes_per_token") == 2 * 16 * 1 * 128 * 2
    assert page.result()["scenario"]["tensor_parallel_size"] == 8
    frame.wait_for_url(re.compile("tp=8"))
    assert watched.page.evaluate("() => history.length") == pages
    assert watched.page.url == url


def test_it_works_from_a_sub_path_in_a_frame_of_the_same_origin(browser, parent):
    with watching(browser, origin(parent)) as watched:
        use_embedded(watched, f"{parent}host.html")
        paths = {urlsplit(url).path for url in watched.requests if not url.startswith(("data:", "blob:"))}
        assert {path for path in paths if not path.startswith("/a/b/")} == {"/host.html"}
        # Those of the worker are among them.
        assert any(path.endswith(".wasm.gz") for path in paths)
        assert any(re.search(r"snapshot-\w+\.zst$", path) for path in paths)


def test_it_works_in_a_frame_of_another_origin(browser, stranger, site):
    with watching(browser, origin(stranger), origin(site)) as watched:
        use_embedded(watched, f"{stranger}host.html")


def test_the_policy_allows_only_own_scripts_and_no_eval(dist):
    page = (dist / "index.html").read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = {name: values for name, *values in map(str.split, policy.split(";"))}
    assert rules["default-src"] == ["'none'"]
    for name in ("script-src", "worker-src"):
        assert rules[name] == ["'self'"]
    assert rules["connect-src"] == ["'self'", "https:", "http:"], "a hub or a mirror, when the user asks"
    assert "unsafe-eval" not in policy


def test_the_page_has_no_inline_script_or_handler(dist):
    page = (dist / "index.html").read_text(encoding="utf-8")
    for attributes, content in re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL):
        assert content == "" or 'type="application/json"' in attributes
    assert not re.findall(r"<[^>]+\son\w+\s*=", page)
    assert "javascript:" not in page
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)


def test_the_page_refuses_eval(fresh, watched, site):
    watched.announce("Content Security Policy")
    fresh.page.goto(site)
    # From a timer: the debugger's own evaluation is exempt.
    tried = """() => new Promise((resolve) => setTimeout(() => {
      try { resolve(new Function('return "ran"')()); } catch (error) { resolve(error.name); }
    }))"""
    assert fresh.page.evaluate(tried) == "EvalError"


def test_a_host_page_gets_the_user_timing_marks(fresh, site):
    live = fresh.open(site)
    marks = live.page.evaluate("() => performance.getEntriesByType('mark').map(({ name }) => name)")
    first = [mark for number, mark in enumerate(marks) if mark not in marks[:number]]
    assert [mark for mark in first if mark != "kv-updated"] == ["kv-answer", "kv-painted", "kv-live"]
    last = "() => performance.getEntriesByName('kv-updated').map(({ startTime }) => startTime)"
    before = live.page.evaluate(last)
    live.type("num_layers", "60")
    expect(live.find("html")).to_have_attribute("data-kv-state", "live")
    live.page.evaluate("() => new Promise(requestAnimationFrame)")
    (after,) = live.page.evaluate(last)  # the page keeps no more of them
    assert [after] > before
