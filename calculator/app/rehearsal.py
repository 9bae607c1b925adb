"""Drives every control once, so that the build sees every module that the app imports."""

from collections.abc import Mapping

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
    """Every option of every choice, a number in every box, and something illegal in one."""
    for model in catalogue.ids():
        app.change({"model": model}, SYSTEM)
        app.page()
    for name, item in FIELDS.items():
        for given in item.rule.options if isinstance(item.rule, Choice) else ("2", "none"):
            app.change({name: given}, SYSTEM)
            app.page()
