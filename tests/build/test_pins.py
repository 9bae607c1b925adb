"""Lock files and pins: exact versions, hashes, and no registry's address."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from builder.runtime import read_pins
from builder.wheels import read_lock

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "site/locks"


def test_every_locked_package_has_hashes_and_no_lock_names_a_host() -> None:
    for lock in LOCKS.glob("*.lock"):
        text = re.sub(r"(?m)^#.*\n", "", lock.read_text()).replace("\\\n", " ")
        assert "://" not in text, lock
        assert not re.search(r"--(extra-)?index-url|--find-links", text), lock
        for line in text.splitlines():
            assert re.fullmatch(r"[\w.-]+==\S+( ;[^-]+)?( +--hash=sha256:[0-9a-f]{64})+", line), line


def test_the_browser_lock_holds_the_packages_that_pyproject_names() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    for group in ("browser", "bench"):
        named = {re.split(r"\W=", name)[0].split("==")[0].replace("_", "-") for name in groups[group]}
        assert {wanted.name for wanted in read_lock(LOCKS / f"{group}.lock")} == named


def test_host_and_browser_run_the_same_panel() -> None:
    host = (LOCKS / "host.lock").read_text()
    for wanted in read_lock(LOCKS / "browser.lock"):
        if wanted.name in ("panel", "bokeh", "param"):
            assert f"\n{wanted} \\\n" in host


def test_the_only_address_in_the_pins_is_the_official_cdn() -> None:
    text = (ROOT / "site/runtime.json").read_text()
    assert re.findall(r"\w+://([^/]+)/", text) == ["cdn.jsdelivr.net"]
    pins = read_pins(ROOT / "site/runtime.json")
    assert f"/v{pins.version}/" in pins.cdn
    for digest in (pins.carrier.sha256, *pins.files.values()):
        assert re.fullmatch(r"[0-9a-f]{64}", digest)
    assert json.loads(text)["python"] == "3.14"
