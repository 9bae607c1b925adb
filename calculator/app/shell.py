"""Writes the page at build time: controls, the default answer, and the words of both languages."""

import json
from collections.abc import Mapping

from ..fields import TABS
from ..locales import LANGUAGES, catalogue, text
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
        "texts": {language: _words(catalogue(language)) for language in LANGUAGES},
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
            tabs=TABS,
            shortcuts=SHORTCUTS,
            option_text=lambda field, option: option_text("en", field, option),
            form=pages["en"]["form"],
            pieces=pages["en"]["pieces"],
            summary=pages["en"]["summary"],
        )
    )


def _words(sentences: Mapping[str, str]) -> dict[str, str]:
    """The sentences that the page itself writes, before and without Python."""
    prefixes = ("shell.", "group.", "field.", "option.", "unit.", "status.", "tab.", "shortcut.")
    return {key: sentence for key, sentence in sentences.items() if key.startswith(prefixes)}


def _inline_json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
