"""BokehJS without the models that no chart of the page uses: half of the script need not be read and run.

The script is a list of modules, functions on lines of their own, which name each other by number, and a table
with the names of most. A module that nothing needs becomes an empty one. The indexes of models name all of
them: what only an index names is not needed, and is undefined there, which BokehJS passes over.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from .console import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterable

START, END = "\n([\n", "\n], 0, "
MODULE = re.compile(r"\n(?=function _\()")
FORM = re.compile(r"function _\((\w+)")  # the parameter that asks for another module
NOTHING = "function _(){},"
ICONS = "styles/icons.css"  # of tool buttons, which the page does not have
NO_STYLE = "function _(a,b,exports,module){module();exports.default=''},"


def trimmed(script: bytes, documents: Iterable[str]) -> bytes:
    """The script with what these documents (JSON of a page's charts) need.

    Raises:
        BuildError: the script has another form than that of Bokeh 3.9, or lacks a model.
    """
    text = script.decode()
    start, end = text.find(START) + len(START), text.rfind(END)
    if end < start or not text.count(START) == text.count(END) == 1:
        raise BuildError("bokeh.min.js is no list of modules: see site/builder/bokeh.py")
    numbers: dict[str, int] = json.JSONDecoder().raw_decode(text, end + len(END))[0]
    names = {number: name for name, number in numbers.items()}
    modules = MODULE.split(text[start:end])
    needed = _needed(modules, names, {model for document in documents for model in _models(document)})

    def kept(number: int, module: str) -> str:
        if number not in needed:
            return NOTHING
        return NO_STYLE if names.get(number) == ICONS else module

    written = "\n".join(kept(number, module) for number, module in enumerate(modules))
    return (text[:start] + written.rstrip(",") + text[end:]).encode()


def _models(document: str) -> set[str]:
    """The names of the models in a document's JSON."""
    found: set[str] = set()

    def see(part: dict[str, object]) -> None:
        if part.get("type") == "object":
            found.add(str(part["name"]))

    json.loads(document, object_hook=see)
    return found


def _needed(modules: list[str], names: dict[int, str], models: set[str]) -> set[int]:
    """The numbers of the modules that define the models, of the entry, and of all that these ask for."""
    asked = [_asked(module) & set(range(len(modules))) for module in modules]
    indexes = {number for number, name in names.items() if re.fullmatch(r"models/(main|(\w+/)*index)", name)}
    todo = [0]
    for model in models:
        defining = [number for number, module in enumerate(modules) if f'.__name__="{model}"' in module]
        if not defining:
            raise BuildError(f"bokeh.min.js lacks the model {model}: it needs another bundle of BokehJS")
        todo += defining
    needed: set[int] = set()
    while todo:
        number = todo.pop()
        if number not in needed:
            needed.add(number)
            todo += asked[number] & indexes if number in indexes else asked[number]
    return needed


def _asked(module: str) -> set[int]:
    """The numbers by which a module asks for others; a number too many does no harm."""
    form = FORM.match(module)
    if not form:
        return set()
    calls = re.findall(rf"(?<![\w$.]){re.escape(form[1])}\((\d+)\)", module)
    return {int(number) for number in calls}
