"""What the browser and Python have in memory, as Chromium's inspector sees the page and its worker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Python is in a variable of the worker's module, which no name of the worker's global scope leads to.
SCOPES = "[[Scopes]]"
IN_PYTHON = """function (text) {
  const globals = this.change.__func__.__globals__;
  return globals.get('__builtins__').get('eval')(text, globals);
}"""


class Inspected:
    """A page that is inspected from before it starts its worker."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)
        self.workers: list[str] = []
        self.answers: dict[int, dict[str, Any]] = {}
        self.asked = 0
        self.session.on("Target.attachedToTarget", self._attach)
        self.session.on("Target.receivedMessageFromTarget", lambda event: self._hear(event["message"]))
        attach = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        self.session.send("Target.setAutoAttach", attach)

    def page_bytes(self) -> int:
        """What JavaScript of the page holds, when its garbage is collected."""
        self.session.send("HeapProfiler.collectGarbage")
        return _held(self.session.send("Runtime.getHeapUsage"))

    def worker_bytes(self) -> int:
        """What JavaScript of the worker holds, and with it the whole memory that WebAssembly has claimed."""
        self._ask("HeapProfiler.collectGarbage")
        return _held(self._ask("Runtime.getHeapUsage"))

    def python(self, expression: str) -> Any:
        """The number that Python in the worker has for an expression."""
        call = {"objectId": self._app(), "functionDeclaration": IN_PYTHON, "returnByValue": True}
        return self._ask("Runtime.callFunctionOn", **call, arguments=[{"value": expression}])["result"].get(
            "value"
        )

    def _app(self) -> str:
        """The session of the app (calculator.app.browser), as the inspector names it."""
        self._ask("Debugger.enable")  # only then has a function scopes
        listener = self._ask("Runtime.evaluate", expression="self.onmessage")["result"]["objectId"]
        inner = self._ask("Runtime.getProperties", objectId=listener)["internalProperties"]
        (scopes,) = (one["value"]["objectId"] for one in inner if one["name"] == SCOPES)
        (module, *_) = self._ask("Runtime.getProperties", objectId=scopes, ownProperties=True)["result"]
        variables = self._ask("Runtime.getProperties", objectId=module["value"]["objectId"])["result"]
        self._ask("Debugger.disable")
        return next(one["value"]["objectId"] for one in variables if one["name"] == "session")

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.asked += 1
        message = {"id": self.asked, "method": method, "params": parameters}
        (worker,) = self.workers
        text = {"sessionId": worker, "message": json.dumps(message)}
        self.session.send("Target.sendMessageToTarget", text)
        while self.asked not in self.answers:
            self.page.wait_for_timeout(5)
        answer = self.answers.pop(self.asked)
        assert "exceptionDetails" not in answer.get("result", {}), answer
        return answer["result"]

    def _attach(self, event: dict[str, Any]) -> None:
        if event["targetInfo"]["type"] == "worker":  # and not a service worker
            self.workers.append(event["sessionId"])

    def _hear(self, text: str) -> None:
        message = json.loads(text)
        if "id" in message:
            self.answers[message["id"]] = message


def _held(usage: dict[str, int]) -> int:
    return usage["usedSize"] + usage["embedderHeapUsedSize"] + usage["backingStorageSize"]
