"""What the worker calls. The one file that may import js and pyodide."""

import json
from collections.abc import Callable
from typing import Any

from js import JSON, Map, Object
from panel.io.pyodide import _doc_json, _process_document_events, init_doc
from panel.io.state import state as panel_state
from pyodide.ffi import JsProxy, to_js

from .main import ROOTS, App


class Session:
    """The app, its document, and the events of the document since the page was last told."""

    def __init__(self, query: str, system: JsProxy) -> None:
        init_doc()
        self.app = App(query, system.to_py())
        self.document = panel_state.curdoc
        self.app.add_to(self.document)
        self.events: list[Any] = []

    def painted(self) -> str:
        """The whole document and page, as JSON; from here on only changes are told."""
        documents, items, roots = _doc_json(self.document)
        self.document.on_change(self.events.append)
        self.document.unhold()
        self.events.clear()  # the roots were added before the page knew the document
        return json.dumps(
            {
                "documents": json.loads(documents),
                "items": json.loads(items),
                "roots": dict(zip(ROOTS, json.loads(roots), strict=True)),
                "page": self.app.page(),
            }
        )

    def change(self, given: JsProxy, system: JsProxy, send: Callable[[object, object], None]) -> str:
        """Apply changes, send one patch for all that they did to the charts, return the page as JSON."""
        self.app.change(given.to_py(), system.to_py())
        if self.events:
            events, self.events[:] = list(self.events), []
            patch, buffers = _process_document_events(self.document, events)
            send(
                JSON.parse(json.dumps(patch)),  # to_js would make None undefined, which Bokeh refuses
                Map.new(Object.entries(to_js(buffers, dict_converter=Object.fromEntries))),
            )
        return json.dumps(self.app.page())

    def result(self) -> str:
        """The result JSON of the present scenario."""
        return json.dumps(self.app.state.answer.as_json())
