"""Drives every control once, so that the build sees every module that the app imports."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import catalogue
from ..fields import FIELDS, Choice
from ..footprint import QUANTITIES
from .main import App

if TYPE_CHECKING:
    from .browser import Session

SYSTEM = {"language": "en", "theme": "light"}


def rehearse() -> None:
    """Open, change and show everything; the answers are not looked at."""
    from .browser import Session  # only importable in Pyodide

    session = Session("", json.dumps(SYSTEM))
    session.painted()
    drive(session)


def drive(session: "Session") -> None:
    """Everything that the worker asks of a session, and every control of its app."""
    play(session.app)
    session.change(json.dumps({"num_layers": "7", "how": QUANTITIES[0]}), json.dumps(SYSTEM))
    session.patch()
    session.page()
    session.result()


def play(app: App) -> None:
    """Every sort of model, every option of every choice, a number in every box, something illegal in one."""
    for model in every_sort():
        app.change({"model": model}, SYSTEM)
        app.page()
    for name, item in FIELDS.items():
        for given in item.rule.options if type(item.rule) is Choice else ("2", "none"):
            app.change({name: given}, SYSTEM)
            app.page()


def every_sort() -> Iterable[str]:
    """One model for each set of cache kinds that there is."""
    return {
        frozenset(cache.kind for cache in catalogue.plan(model).caches()): model for model in catalogue.ids()
    }.values()
