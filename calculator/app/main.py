"""The Panel app: one state, two charts that follow it, and what the page is told after every change."""

from collections.abc import Mapping

import panel as pn
from bokeh.document import Document

from .bars import Bars
from .controls import form
from .curves import Curves
from .own import editable, messages
from .readouts import pieces, summary
from .state import State

ROOTS = ("curves", "bars")  # ids of the elements that the document's roots fill, in their order


class App:
    """Everything behind the page. Panel-side only: no js, so that the host's Python can run it too."""

    def __init__(self, query: str, system: Mapping[str, str]) -> None:
        self.state = State()
        self.start(query, system)
        self.views = {"curves": Curves(self.state), "bars": Bars(self.state)}

    def add_to(self, document: Document) -> None:
        """Put the charts into `document`, one root each.

        Not by `servable`: that adds roots for the address and the browser, which the page keeps itself, and
        for which it would have to load all of panel.js.
        """
        for name in ROOTS:
            (figure,) = pn.panel(self.views[name]).get_root(document).children
            figure.stylesheets = []  # the page has its own, and a chart waits for each of them
            document.add_root(figure)

    def start(self, query: str, system: Mapping[str, str]) -> None:
        """Open an address, at the beginning or later."""
        self.how = ""
        self.state.start(query, system)

    def change(self, given: Mapping[str, str], system: Mapping[str, str]) -> None:
        """Take what was typed or dragged, by field, or a whole `address` that the user went back to.

        `how` is the quantity whose formula is asked for: the next page has it.
        """
        fields = dict(given)
        if "address" in fields:
            self.start(fields.pop("address"), system)
        self.how = fields.pop("how", "")
        self.state.change(fields, system)

    def settle(self) -> None:
        """Do what a change has left for when nobody waits."""
        self.views["curves"].annotate()

    def look(self) -> dict[str, str]:
        """The language and theme that everything is written in."""
        return {"language": self.state.language, "theme": self.state.theme}

    def _own(self) -> dict[str, object]:
        """What the tab of one's own model needs beside its piece, while it is open."""
        if self.state.scenario.tab != "own":
            return {}
        told = {"messages": messages(self.state), "layers": editable(self.state)}
        return {"own": told | {"name": self.state.scenario.own_name}}

    def page(self) -> dict[str, object]:
        """What the page shows besides the charts."""
        return {
            "address": self.state.scenario.address(),
            **self.look(),
            "title": self.state.model_name,
            "tab": self.state.scenario.tab,
            "form": form(self.state),
            **self._own(),
            "pieces": pieces(self.state, self.how),
            "summary": summary(self.state),
        }
