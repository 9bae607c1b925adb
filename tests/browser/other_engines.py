"""Firefox and WebKit as Debian has them: over WebDriver BiDi, and over Selenium on a virtual screen."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from selenium.webdriver import WebKitGTK
from selenium.webdriver.webkitgtk.options import Options
from selenium.webdriver.webkitgtk.service import Service
from websocket import create_connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from websocket import WebSocket

SECONDS = 120  # for one command, on a machine that may be busy


class Engine(Protocol):
    """One page of one browser."""

    version: str

    def open(self, url: str) -> None:
        """Go there; the page may still be loading afterwards."""

    def evaluate(self, expression: str) -> Any:
        """What JSON can carry of an expression's value, or of what it promises."""

    def press(self, key: str) -> None:
        """Press a key, by WebDriver's code of it."""


class Firefox:
    """WebDriver BiDi without a driver in between: Debian has none."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.ids = itertools.count()
        self.version = self._ask("session.new", capabilities={})["capabilities"]["browserVersion"]
        (tab,) = self._ask("browsingContext.getTree")["contexts"]
        self.tab = tab["context"]

    def open(self, url: str) -> None:
        self._ask("browsingContext.navigate", context=self.tab, url=url, wait="interactive")

    def evaluate(self, expression: str) -> Any:
        text = f"Promise.resolve({expression}).then(JSON.stringify)"
        answer = self._ask(
            "script.evaluate", expression=text, target={"context": self.tab}, awaitPromise=True
        )
        assert answer["type"] == "success", answer
        return json.loads(answer["result"].get("value", "null"))

    def press(self, key: str) -> None:
        strokes = [{"type": stroke, "value": key} for stroke in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": strokes}
        self._ask("input.performActions", context=self.tab, actions=[keyboard])

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        asked = next(self.ids)
        self.socket.send(json.dumps({"id": asked, "method": method, "params": parameters}))
        while (answer := json.loads(self.socket.recv())).get("id") != asked:
            pass
        assert answer["type"] == "success", answer
        return answer["result"]


class WebKit:
    """WebKitGTK's small browser behind its own driver."""

    def __init__(self, driver: WebKitGTK) -> None:
        self.driver = driver
        self.version = driver.capabilities["browserVersion"]
        driver.set_script_timeout(SECONDS)

    def open(self, url: str) -> None:
        self.driver.get(url)

    def evaluate(self, expression: str) -> Any:
        script = "const done = arguments[0]; Promise.resolve({}).then(JSON.stringify).then(done)"
        return json.loads(self.driver.execute_async_script(script.replace("{}", expression)) or "null")

    def press(self, key: str) -> None:
        self.driver.switch_to.active_element.send_keys(key)


@contextmanager
def firefox(executable: str) -> Iterator[Firefox]:
    """A Firefox with a profile of its own, which says there where it listens."""
    with tempfile.TemporaryDirectory(prefix="kv-firefox-", ignore_cleanup_errors=True) as profile:
        said = Path(profile, "WebDriverBiDiServer.json")
        command = [
            executable,
            "--headless",
            "--no-remote",
            "--profile",
            profile,
            "--remote-debugging-port",
            "0",
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + SECONDS
            while not (said.is_file() and said.read_text()):
                assert process.poll() is None, f"{executable} ended with {process.returncode}"
                assert time.monotonic() < deadline, f"{executable} does not listen"
                time.sleep(0.1)
            server = json.loads(said.read_text())
            url = f"ws://{server['ws_host']}:{server['ws_port']}/session"
            socket = create_connection(url, timeout=SECONDS, suppress_origin=True)
            try:
                yield Firefox(socket)
            finally:
                socket.close()
        finally:
            process.terminate()
            process.wait()


@contextmanager
def webkit(driver: str, screen: str) -> Iterator[WebKit]:
    """A WebKit on a virtual screen."""
    with ExitStack() as ending:
        command = [screen, "-displayfd", "1", "-screen", "0", "1440x900x24", "-nolisten", "tcp"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ending.callback(process.wait)
        ending.callback(process.terminate)
        assert process.stdout
        ending.enter_context(process.stdout)
        display = {"DISPLAY": f":{process.stdout.readline().strip()}"}
        service = Service(executable_path=driver, env=os.environ | display)
        browser = WebKitGTK(options=Options(), service=service)
        ending.callback(browser.quit)
        yield WebKit(browser)
