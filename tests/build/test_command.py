"""The command line, its server, and what it finds or makes on the machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from builder import chromium, environment, other_browsers
from builder.console import BuildError
from builder.server import make_server

import build as command

ROOT = Path(__file__).parents[2]


def test_serve_builds_and_answers(tmp_path: Path) -> None:
    arguments = ["serve", "--plain", "--port", "0", "--dist", str(tmp_path / "dist")]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "build.py"), *arguments], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    try:
        found = (re.search(r"Serving (http://127\.0\.0\.1:\d+/)", line) for line in process.stdout)
        address = next(match[1] for match in found if match)
        with urllib.request.urlopen(address) as answer:
            assert b"<html" in answer.read()
    finally:
        process.send_signal(signal.SIGINT)
        process.stdout.close()
        assert process.wait(10) == 130


@pytest.mark.parametrize(("port", "sentence"), [("{taken}", "is taken"), ("70000", "is not a port")])
def test_a_port_that_cannot_be_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], port: str, sentence: str
) -> None:
    with make_server(tmp_path) as server:
        port = port.format(taken=server.server_port)
        assert command.run(["serve", "--port", port, "--dist", str(tmp_path / "dist")]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert sentence in said
    assert not (tmp_path / "dist").exists()


def test_a_taken_default_port_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with make_server(tmp_path) as taken:
        monkeypatch.setattr(command, "DEFAULT_PORT", taken.server_port)
        with command._listen(tmp_path, None) as other:
            assert other.server_port != taken.server_port
    assert f"Port {taken.server_port} is taken" in capsys.readouterr().out


def test_unknown_words_are_for_pytest_alone() -> None:
    assert command.parse(["test", "-k", "laws", "tests/core"]).arguments == ["-k", "laws", "tests/core"]
    with pytest.raises(SystemExit):
        command.parse(["build", "--fast"])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("a.wasm", "application/wasm"),
        ("a.json", "application/json"),
        ("a.zip", "application/zip"),
        ("a.svg", "image/svg+xml"),
    ],
)
def test_the_server_names_types_that_modules_need(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / name).write_bytes(b"{}")
    with make_server(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/sub/{name}") as answer:
            assert answer.headers["Content-Type"] == kind
            assert answer.read() == b"{}"
        server.shutdown()
        thread.join()
    assert capfd.readouterr() == ("", "")


def test_the_environment_is_made_again_only_when_its_lock_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "site/locks/host.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("# nothing\n")
    python = environment.ensure_environment(tmp_path)
    without_venv = tmp_path / "python"
    without_venv.write_text("#!/bin/sh\necho No module named venv\nexit 1\n")
    without_venv.chmod(0o755)
    monkeypatch.setattr(sys, "_base_executable", str(without_venv))
    assert environment.ensure_environment(tmp_path) == python
    lock.write_text("# nothing, said differently\n")
    with pytest.raises(BuildError, match=r"apt-get install python3-venv.*No module named venv"):
        environment.ensure_environment(tmp_path)
    assert not python.exists()


def test_a_remembered_chromium_is_not_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chromium, "_candidates", lambda: pytest.fail("looked for again"))
    known = os.environ.get("KV_CHROMIUM") or shutil.which("chromium") or ""
    (tmp_path / "kv-chromium.json").write_text(json.dumps({"executable": known}))
    assert chromium.find_chromium(tmp_path) == known


def test_chromium_is_sought_in_order_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium, "_downloaded", lambda: True)
    monkeypatch.setattr(chromium, "install", lambda *packages: False)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    tried: list[str] = []

    def starts(executable: str) -> bool:
        tried.append(executable)
        return executable == "/bin/google-chrome"

    monkeypatch.setattr(chromium, "starts", starts)
    assert chromium.find_chromium(tmp_path) == "/bin/google-chrome"
    assert tried == ["", "/bin/chromium", "/bin/chromium-browser", "/bin/google-chrome"]
    assert json.loads((tmp_path / "kv-chromium.json").read_text()) == {"executable": "/bin/google-chrome"}


def test_no_chromium_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium, "_candidates", lambda: iter([("nothing", "/no/such/chromium")]))
    with pytest.raises(BuildError, match="apt-get install chromium"):
        chromium.find_chromium(tmp_path)
    assert not (tmp_path / "kv-chromium.json").exists()


def test_other_browsers_come_from_debian_or_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"firefox-esr", "Xvfb"}
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in there else None)
    asked: list[str] = []

    def install(*packages: str) -> bool:
        asked.extend(packages)
        return False

    monkeypatch.setattr(other_browsers, "install", install)
    with pytest.raises(BuildError, match=r"not here: apt-get install webkit2gtk-driver$"):
        other_browsers.find_others()
    assert asked == ["webkit2gtk-driver"]
    there.add("WebKitWebDriver")
    assert other_browsers.find_others() == {
        "KV_FIREFOX": "/bin/firefox-esr",
        "KV_WEBKIT_DRIVER": "/bin/WebKitWebDriver",
        "KV_SCREEN": "/bin/Xvfb",
    }
    assert asked == ["webkit2gtk-driver"]


def test_all_browsers_is_asked_for_by_its_name() -> None:
    assert command.parse(["test", "--all-browsers", "tests/browser"]).all_browsers
    assert not command.parse(["test", "tests/browser"]).all_browsers
