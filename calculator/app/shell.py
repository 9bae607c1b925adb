"""Writes the page at build time: controls, the default answer, and the words of both languages."""

import json
from collections.abc import Mapping

from .. import catalogue
from ..fields import TABS
from ..locales import LANGUAGES, text
from ..locales import catalogue as sentences
from .controls import GROUPS, option_text
from .main import App
from .readouts import templates
from .theme import variables

SYSTEM = {"language": "en", "theme": "light"}
SHORTCUTS = (  # keys as they are called on every keyboard, and what they do
    ("?", "help"),
    ("m", "model"),
    ("u", "units"),
    ("c", "copy"),
    (f"1 – {len(TABS)}", "tab"),
    ("← → ↑ ↓", "step"),
    ("PageUp PageDown", "leap"),
    ("Home End", "ends"),
    ("Esc", "close"),
)


def render(template: str, site: Mapping[str, object]) -> str:
    """The text of index.html. `site` says where the build put the parts of the page, by relative address."""
    pages = {language: App("", {**SYSTEM, "language": language}).page() for language in LANGUAGES}
    data = {
        **site,
        "texts": {language: _words(sentences(language)) for language in LANGUAGES},
        "pages": pages,
    }
    return (
        templates()
        .from_string(template)
        .render(
            site=site,
            variables=variables(),
            data=_inline_json(data),
            t=lambda key: text("en", key),
            groups=GROUPS,
            makers=_makers(),
            tabs=TABS,
            shortcuts=SHORTCUTS,
            option_text=lambda field, option: option_text("en", field, option),
            form=pages["en"]["form"],
            pieces=pages["en"]["pieces"],
            summary=pages["en"]["summary"],
        )
    )


def _makers() -> dict[str, list[catalogue.Entry]]:
    """The models by maker, both in the order of the alphabet."""
    entries = sorted(map(catalogue.entry, catalogue.ids()), key=lambda entry: entry.name.casefold())
    makers = sorted({entry.maker for entry in entries}, key=str.casefold)
    return {maker: [entry for entry in entries if entry.maker == maker] for maker in makers}


def _words(written: Mapping[str, str]) -> dict[str, str]:
    """The sentences that the page itself writes, before and without Python."""
    prefixes = ("shell.", "group.", "field.", "option.", "unit.", "status.", "tab.", "shortcut.")
    return {key: sentence for key, sentence in written.items() if key.startswith(prefixes)}


def _inline_json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
