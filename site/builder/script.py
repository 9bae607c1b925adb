"""Pyodide's script as the first way to start reads it: the same program, in a form that V8 reads quicker."""

from __future__ import annotations

from .console import BuildError

CHANGES = {
    # In parentheses the one function that holds everything is compiled at once, not skimmed first.
    "async function _createPyodideModule(": "export default (async function _createPyodideModule(",
    "export default _createPyodideModule;": ");",
    # The modules that give functions of JavaScript to WebAssembly are the same for the same signature.
    "var convertJsFunctionToWasm=": "var modulesBySignature={};var convertJsFunctionToWasm=",
    "var module=new WebAssembly.Module(bytes);var instance": (
        "var module=modulesBySignature[sig]??=new WebAssembly.Module(bytes);var instance"
    ),
}


def quicker(script: bytes) -> bytes:
    """pyodide.asm.mjs with these changes.

    Raises:
        BuildError: it has another form than that of the pinned Pyodide.
    """
    text = script.decode()
    for old, new in CHANGES.items():
        if (times := text.count(old)) != 1:
            raise BuildError(f"pyodide.asm.mjs has {times} times `{old}`: see site/builder/script.py")
        text = text.replace(old, new)
    return text.encode()
