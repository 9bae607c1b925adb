"""The Panel app: one state, two charts that follow it, and what the page is told after every change."""

from collections.abc import Mapping

import panel as pn

from .bars import Bars
from .controls import form
from .curves import Curves
from .readouts import model_name, pieces, summary
from .state import State

ROOTS = ("curves", "bars")  # ids of the elements that the document's roots fill, in their order


class App:
    """Everything behind the page. Panel-side only: no js, so that the host's Python can run it too."""

    def __init__(self, query: str, system: Mapping[str, str]) -> None:
        self.state = State()
        self.state.start(query, system)
        self.views = {"curves": Curves(self.state), "bars": Bars(self.state)}

    def servable(self) -> None:
        """Put the charts into the current document, one root each."""
        for name in ROOTS:
            pn.panel(self.views[name]).servable()

    def change(self, given: Mapping[str, str], system: Mapping[str, str]) -> None:
        """Take what was typed or dragged, by field."""
        self.state.change(given, system)

    def page(self) -> dict[str, object]:
        """What the page shows besides the charts."""
        return {
            "address": self.state.scenario.address(),
            "language": self.state.language,
            "theme": self.state.theme,
            "title": model_name(self.state),
            "form": form(self.state),
            "pieces": pieces(self.state),
            "summary": summary(self.state),
        }
