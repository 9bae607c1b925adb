"""What the worker calls: text in, text out. Only importable in Pyodide, for panel.io.pyodide is."""

import json
import random
from typing import Any

from bokeh.core.serialization import Serializer
from bokeh.settings import settings
from panel.io.pyodide import _doc_json, init_doc
from panel.io.state import state as panel_state

from .main import ROOTS, App


class Session:
    """The app, its document, and the events of the document since the page was last told."""

    def __init__(self, query: str, system: str) -> None:
        init_doc()
        settings.simple_ids.set_value(True)  # Panel's are unique in the world, and four times as long
        self.app = App(query, json.loads(system))
        self.forget()
        self.document = panel_state.curdoc
        self.app.add_to(self.document)
        self.events: list[Any] = []
        self.document.on_change(self.events.append)
        self.document.unhold()
        self.events.clear()  # the roots were added before the page knew the document

    def painted(self) -> str:
        """The whole document as JSON; from here on only changes are told."""
        self.app.settle()
        documents, items, roots = _doc_json(self.document)
        self.events.clear()
        return json.dumps(
            {
                "documents": json.loads(documents),
                "items": json.loads(items),
                "roots": dict(zip(ROOTS, json.loads(roots), strict=True)),
            }
        )

    def resume(self, query: str, system: str, shown: str) -> None:
        """Go on after a snapshot: the page shows the default answer and charts in a language and theme."""
        random.seed()  # every page would draw the numbers of the one that was kept
        if json.loads(shown) != self.app.look():
            self.app.change({}, json.loads(shown))
            self.app.settle()
            self.page()
            self.events.clear()
        if query or json.loads(system) != self.app.look():
            self.app.start(query, json.loads(system))

    def change(self, changes: str, system: str) -> None:
        """Apply changes, by field; the page hears of these fields again, whatever becomes of them."""
        given = json.loads(changes)
        self.app.change(given, json.loads(system))
        if "address" in given:
            self.forget()
        for name in given:
            self.told["form"].pop(name, None)
            self.told["pieces"].pop(name, None)

    def settle(self) -> None:
        """Do what the changes have left; `patch` then tells it."""
        self.app.settle()

    def forget(self) -> None:
        """Tell everything anew: the page may show what this session never said."""
        self.told = {"form": {}, "pieces": {}}

    def patch(self) -> str:
        """What happened to the charts since the last time, as one patch; nothing if nothing did."""
        if not self.events:
            return ""
        events, self.events[:] = list(self.events), []
        models = self.document.models
        serializer = Serializer(references=models.synced_references, deferred=False)  # arrays as text, too
        patch = json.dumps({"events": serializer.encode(events)}, allow_nan=False)
        models.flush_synced(lambda model: not serializer.has_ref(model))
        return patch

    def page(self) -> str:
        """The page besides the charts, as JSON; of its controls and pieces only those that changed."""
        page = self.app.page()
        for part, told in self.told.items():
            new = page[part]
            page[part] = {name: shown for name, shown in new.items() if told.get(name) != shown}
            told |= new
        return json.dumps(page)

    def result(self) -> str:
        """The result JSON of the present scenario."""
        return json.dumps(self.app.state.answer.as_json())
