"""The built site behind a server, one browser for all tests, and pages that are watched."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from builder.chromium import ARGUMENTS
from builder.server import Server, make_server
from playwright.sync_api import Browser, expect, sync_playwright

from .calculator_page import CalculatorPage
from .faults import Faults, FaultyHandler
from .watched import Watched, origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import BrowserType

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
expect.set_options(timeout=15_000)  # a busy machine is no failure


@pytest.fixture(scope="session")
def dist() -> Path:
    """The built site, as new as its sources."""
    page = DIST / "index.html"
    if not page.is_file():
        pytest.exit("dist/ is missing: run `python3 build.py build`", returncode=2)
    folders = (ROOT / "calculator", ROOT / "site")
    sources = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
    newest = max((path for path in sources if path.is_file()), key=lambda path: path.stat().st_mtime)
    if newest.stat().st_mtime > page.stat().st_mtime:
        name = newest.relative_to(ROOT)
        pytest.exit(f"dist/ is older than {name}: run `python3 build.py build`", returncode=2)
    return DIST


@contextmanager
def serving(server: Server) -> Iterator[str]:
    """The address of a server that runs in a thread."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="session")
def site(dist: Path) -> Iterator[str]:
    """The address of the built site."""
    with serving(make_server(dist)) as url:
        yield url


def launched(chromium: BrowserType, *flags: str) -> Browser:
    """The Chromium that build.py found, with further `flags`."""
    return chromium.launch(executable_path=os.environ.get("KV_CHROMIUM") or None, args=[*ARGUMENTS, *flags])


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, launched(playwright.chromium) as browser:
        yield browser


@contextmanager
def watching(browser: Browser, *origins: str, **settings: object) -> Iterator[Watched]:
    """A watched page in a browser context of its own, verified at the end."""
    settings = {
        "locale": "en-US",
        "color_scheme": "light",
        "viewport": {"width": 1440, "height": 900},
    } | settings
    context = browser.new_context(**settings)
    try:
        watched = Watched.of(context, *origins)
        yield watched
        watched.verify()
    finally:
        context.close()


@pytest.fixture
def watched(browser: Browser, site: str) -> Iterator[Watched]:
    """A page for one test."""
    with watching(browser, origin(site)) as watched:
        yield watched


@pytest.fixture
def fresh(watched: Watched) -> CalculatorPage:
    """A calculator for one test; the test opens it."""
    return CalculatorPage(watched.page)


@pytest.fixture(scope="session")
def shared(browser: Browser, site: str) -> Iterator[Watched]:
    """The live page of all tests that need no start of their own: a start of Python takes seconds."""
    with watching(browser, origin(site)) as watched:
        CalculatorPage(watched.page).open(site)
        yield watched


@pytest.fixture
def live(shared: Watched) -> Iterator[CalculatorPage]:
    """The shared page in its default state; complaints are charged to the test that caused them."""
    calculator = CalculatorPage(shared.page)
    calculator.reset()
    yield calculator
    shared.verify()


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def faulty(dist: Path, faults: Faults) -> Iterator[str]:
    """The site behind a server with `faults`."""
    server = Server(("127.0.0.1", 0), partial(FaultyHandler, directory=str(dist), faults=faults))
    with serving(server) as url:
        yield url
