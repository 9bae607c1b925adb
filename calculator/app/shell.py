"""Writes the page at build time: controls, the default answer, and the words of both languages."""

import json
from collections.abc import Mapping
from typing import Any

from .. import catalogue
from ..fields import TABS
from ..locales import LANGUAGES, text
from ..locales import catalogue as sentences
from ..outline import figures
from . import stills
from .controls import GROUPS, option_text
from .main import App
from .own import kinds
from .readouts import templates
from .theme import variables

SYSTEM = {"language": "en", "theme": "light"}
# What first-paint.js and the worker that it starts need of the site, before all else.
START = ("answers", "documents", "runtime", "packages", "stdlib", "wasm", "resume")
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
    start = {name: site[name] for name in START if name in site}
    start |= {"worker": f"{site['app']}worker.mjs", "model": App("", SYSTEM).state.scenario.model}
    pages = {language: _page(App("", {**SYSTEM, "language": language})) for language in LANGUAGES}
    data = {
        "language": SYSTEM["language"],
        "texts": {language: _words(sentences(language)) for language in LANGUAGES},
        "pages": pages,
        "models": _models(),
        "kinds": kinds(),
    }
    return (
        templates()
        .from_string(template)
        .render(
            site=site,
            variables=variables(),
            start=_inline_json(start),
            data=_inline_json(data),
            t=lambda key: text("en", key),
            text=text,
            languages=LANGUAGES,
            groups=GROUPS,
            tabs=TABS,
            shortcuts=SHORTCUTS,
            option_text=lambda field, option: option_text("en", field, option),
            form=pages["en"]["form"],
            pieces=pages["en"]["pieces"],
            summary=pages["en"]["summary"],
        )
    )


def answers() -> dict[str, bytes]:
    """JSON for every model of the catalogue, by file name: where its page differs from the first page."""
    files = {}
    for language in LANGUAGES:
        app = App("", {**SYSTEM, "language": language})
        first = _page(app)
        for model in catalogue.ids():
            app.change({"model": model}, {**SYSTEM, "language": language})
            page = _page(app)
            for part in ("pieces", "form"):
                page[part] = {name: new for name, new in page[part].items() if new != first[part].get(name)}
            files[f"{model}-{language}.json"] = json.dumps(page, ensure_ascii=False).encode()
    return files


def _page(app: App) -> dict[str, Any]:
    """What the page shows at first, with pictures of the charts as two more pieces."""
    page: dict[str, Any] = app.page()
    page["pieces"] |= {"curves": stills.curves(app.views["curves"]), "bars": stills.bars(app.views["bars"])}
    return page


def _models() -> list[dict[str, object]]:
    """What the picker finds models by, grouped by maker: the flagships' makers first."""
    entries = [catalogue.entry(name) for name in catalogue.ids()]
    makers = list(dict.fromkeys(entry.maker for entry in entries))
    return [
        {
            "id": entry.id,
            "name": entry.name,
            "maker": entry.maker,
            "hub_id": entry.hub_id,
            "kinds": list(dict.fromkeys(cache.kind for cache in plan.caches())),
            "layers": len(plan.layers),
            "rate": float(figures(plan)["bytes_per_token"]),
        }
        for entry in sorted(entries, key=lambda entry: makers.index(entry.maker))
        for plan in [catalogue.plan(entry.id)]
    ]


def _words(written: Mapping[str, str]) -> dict[str, str]:
    """The sentences that the page itself writes, before and without Python."""
    prefixes = ("shell.", "group.", "field.", "option.", "unit.", "status.", "tab.", "shortcut.")
    prefixes += ("kind.", "own.", "hub.", "compare.", "layers.kind", "config.layers")
    return {key: sentence for key, sentence in written.items() if key.startswith(prefixes)}


def _inline_json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
