"""What the tests of the page share: a browser's preferences, and HTML read strictly."""

from html.parser import HTMLParser
from pathlib import Path

from calculator.app.readouts import pieces
from calculator.app.state import State
from calculator.fields import TABS

SYSTEM = {"language": "en", "theme": "light"}
SITE = Path(__file__).parents[2] / "site"
VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
HOSTILE = "<img src=x onerror=1>"


def opened(query: str = "", **system: str) -> State:
    state = State()
    state.start(query, SYSTEM | system)
    return state


def changed(state: State, **given: str) -> State:
    state.change(given, SYSTEM)
    return state


def all_pieces(state: State) -> dict[str, str]:
    """The pieces of every tab, opened one after the other."""
    made = {}
    for tab in TABS:
        state.change({"tab": tab}, {"language": state.language, "theme": state.theme})
        made |= pieces(state)
    return made


class Page(HTMLParser):
    """Elements as (tag, attributes, all text inside); fails where tags do not match."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self.open: list[tuple[str, dict[str, str], list[str]]] = []
        self.feed(html)
        self.close()
        assert not self.open, f"not closed: {[tag for tag, _, _ in self.open]}"

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"<{tag}> says one attribute twice: {names}"
        element = (tag, {name: given or "" for name, given in attributes}, [])
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1][0] == tag, f"</{tag}> closes <{self.open[-1][0]}>"
        self.open.pop()

    def handle_data(self, data):
        for _, _, text in self.open:
            text.append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str], str]]:
        return [(attributes, "".join(text)) for found, attributes, text in self.elements if found == tag]

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes, _ in self.elements if name in attributes]


def hover_rows(html: str) -> dict[str, str]:
    """What a hover box says, word -> column of the chart's data."""
    page = Page(html)
    return dict(zip([word for _, word in page.all("span")], [name for _, name in page.all("b")], strict=True))
