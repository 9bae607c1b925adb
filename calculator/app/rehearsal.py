"""Drives every control once, so that the build sees every module that the app imports."""

from .. import catalogue
from ..fields import FIELDS, Choice
from .main import App

SYSTEM = {"language": "en", "theme": "light"}


def rehearse() -> None:
    """Open, change and show everything; the answers are not looked at."""
    from .browser import Session  # only importable in Pyodide

    from js import Object

    session = Session("", Object.fromEntries([["language", "en"], ["theme", "light"]]))
    session.painted()
    play(session.app)
    session.change(
        Object.fromEntries([["num_layers", "7"]]),
        Object.fromEntries([["language", "en"], ["theme", "light"]]),
        lambda patch, buffers: None,
    )
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
