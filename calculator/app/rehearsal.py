"""Drives every control once, so that the build sees every module that the app imports."""

from collections.abc import Iterable, Mapping

from .. import catalogue
from ..fields import FIELDS, Choice
from .main import App

SYSTEM = {"language": "en", "theme": "light"}


def rehearse() -> None:
    """Open, change and show everything; the answers are not looked at."""
    from js import Object
    from pyodide.ffi import to_js

    from .browser import Session  # only importable in Pyodide

    def sent(content: Mapping[str, str]) -> object:
        return to_js(content, dict_converter=Object.fromEntries)

    session = Session("", sent(SYSTEM))
    session.painted()
    play(session.app)
    session.change(sent({"num_layers": "7"}), sent(SYSTEM), lambda *_: None)
    session.result()


def play(app: App) -> None:
    """Every sort of model, every option of every choice, a number in every box, something illegal in one."""
    for model in _every_sort():
        app.change({"model": model}, SYSTEM)
        app.page()
    for name, item in FIELDS.items():
        for given in item.rule.options if type(item.rule) is Choice else ("2", "none"):
            app.change({name: given}, SYSTEM)
            app.page()


def _every_sort() -> Iterable[str]:
    """One model for each set of cache kinds that there is."""
    return {
        frozenset(cache.kind for cache in catalogue.plan(model).caches()): model for model in catalogue.ids()
    }.values()
