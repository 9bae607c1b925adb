"""One script of many modules: each file costs a request, and a page of twenty waits for the last of them.

A module becomes a function that returns what it exports, after the modules that it imports. Only what our own
modules use is understood: imports at the beginning of lines, and exports that are declarations.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .console import BuildError

if TYPE_CHECKING:
    from collections.abc import Mapping

IMPORT = re.compile(r"^import (\* as \w+|\{ [^}]+ \}) from '\./([\w.-]+)';$", re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async function|function|class|const) (\w+))", re.MULTILINE)
OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundled(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same files, with each module inside those that import it.

    Raises:
        BuildError: modules import each other in a circle, or in a way that is not understood.
    """
    modules = {name: data.decode() for name, data in files.items() if name.endswith(".mjs")}
    inner = {imported for text in modules.values() for _, imported in IMPORT.findall(text)}
    entries = {name: _bundle(modules, name).encode() for name in modules if name not in inner}
    return {name: data for name, data in files.items() if name not in modules} | entries


def _bundle(modules: Mapping[str, str], entry: str) -> str:
    """The text of one module with all that it needs before it."""
    order: list[str] = []

    def put(name: str, asking: tuple[str, ...]) -> None:
        if name in asking:
            raise BuildError(f"site/{name} imports itself by way of {', '.join(asking)}")
        if name not in order:
            for _, imported in IMPORT.findall(modules[name]):
                put(imported, (*asking, name))
            order.append(name)

    put(entry, ())
    inner = [_wrapped(name, modules[name]) for name in order[:-1]]
    return "\n".join([*inner, _plain(entry, modules[entry])])


def _wrapped(name: str, text: str) -> str:
    exported = ", ".join(declared for _, declared in EXPORT.findall(text))
    body = _plain(name, EXPORT.sub(r"\1", text))
    return f"const {_constant(name)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _plain(name: str, text: str) -> str:
    """The text of a module, in which imports are constants."""

    def constant(found: re.Match[str]) -> str:
        bound = found[1].removeprefix("* as ").replace(" as ", ": ")
        return f"const {bound} = {_constant(found[2])};"

    text = IMPORT.sub(constant, text)
    if other := OTHER.search(EXPORT.sub("", text)):
        raise BuildError(f"site/{name}: `{other[0]}` is more than site/builder/bundle.py understands")
    return text


def _constant(name: str) -> str:
    return f"${name.removesuffix('.mjs').replace('-', '_')}"
