"""A Chromium for the tests: Playwright's own, else Debian's, else one that is already on the machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from .console import BuildError, one_sentence, say
from .debian import install, succeeds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# It has no work of its own, and no name resolves: no request to a third party succeeds even by accident.
ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)
# Playwright tries each of its mirrors several times; without a network each try takes this long.
CONNECT_MILLISECONDS = "3000"
LAUNCH = """
import sys
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    playwright.chromium.launch(executable_path=sys.argv[1] or None).close()
"""


def find_chromium(venv: Path) -> str:
    """The executable's path, or "" for the one that Playwright finds by itself. Remembered in .venv.

    Raises:
        BuildError: no source has one that starts.
    """
    memory = venv / "kv-chromium.json"
    with one_sentence():
        if memory.is_file():
            known = str(json.loads(memory.read_text(encoding="utf-8"))["executable"])
            if starts(known):
                return known
        for source, executable in _candidates():
            if starts(executable):
                say(f"  Chromium: {source}")
                memory.write_text(json.dumps({"executable": executable}), encoding="utf-8")
                return executable
    raise BuildError(
        "no Chromium was found for the tests: install one (on Debian: apt-get install chromium), "
        "or let `.venv/bin/playwright install --with-deps chromium` reach the network"
    )


def starts(executable: str) -> bool:
    """Whether Playwright can start this browser."""
    command = [sys.executable, "-c", LAUNCH, executable]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def _candidates() -> Iterator[tuple[str, str]]:
    if _downloaded():
        yield "Playwright's own", ""
    say("  Chromium: asking Debian for its package")
    if install("chromium", "fonts-noto-cjk"):  # the fonts draw the page's Chinese
        yield "Debian's package", shutil.which("chromium") or ""
    for name in NAMES:
        if path := shutil.which(name):
            yield path, path


def _downloaded() -> bool:
    say("  Chromium: asking Playwright for its own")
    limits = {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": CONNECT_MILLISECONDS}
    return succeeds([sys.executable, "-m", "playwright", "install", "chromium"], limits)
