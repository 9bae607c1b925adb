"""The part of a build that runs inside Pyodide: bytecode by that interpreter, of what is needed."""

from __future__ import annotations

import importlib.util
import marshal
from types import CodeType
from typing import TYPE_CHECKING

from . import archive

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

# Of a .pyc that is never checked against a source: magic number, flag, no hash.
HEADER = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
# Imported later than a rehearsal under Node.js shows: by the browser's side, or on an error's path.
ALWAYS = ("calculator", "panel.io", "pyodide", "_pyodide")
ALWAYS_MODULES = ("encodings.ascii", "encodings.utf_8_sig", "tarfile", "tempfile", "traceback", "zipfile")


def pick(files: dict[str, bytes], imported: Collection[str]) -> dict[str, bytes]:
    """The files of these modules and of the always-kept ones, and every file that is not a module."""
    modules = {*imported, *ALWAYS_MODULES}
    return {name: data for name, data in files.items() if _is_kept(name, modules)}


def _is_kept(name: str, modules: set[str]) -> bool:
    if not name.endswith((".py", ".pyc", ".so")):
        return True
    *folders, base = name.split("/")
    stem = base.split(".")[0]
    module = ".".join(folders if stem == "__init__" else [*folders, stem])
    return module in modules or any(module == kept or module.startswith(f"{kept}.") for kept in ALWAYS)


def compile_files(files: dict[str, bytes], compiled: Callable[[int, int], object]) -> dict[str, bytes]:
    """The same files with each `.py` as bytecode where its source was. `compiled` is told (done, of)."""
    result = {}
    for done, name in enumerate(sorted(files), 1):
        if name.endswith(".py"):
            code = compile(files[name], name, "exec", dont_inherit=True, optimize=2)
            result[f"{name}c"] = HEADER + marshal.dumps(_bare(code))
        else:
            result[name] = files[name]
        compiled(done, len(files))
    return result


def _bare(code: CodeType) -> CodeType:
    """The code without its tables of line numbers, a tenth of it: without sources nobody reads them."""
    inner = (_bare(part) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=tuple(inner))


def build(
    source: Path, target: Path, imported: Collection[str] | None, compiled: Callable[[int, int], object]
) -> None:
    """Writes the archive `source` as bytecode to `target`; of the modules only the imported ones, if told."""
    files = archive.unpack(source.read_bytes())
    if imported is None:
        # Not shipped but read again by the next step.
        packed = archive.pack(compile_files(files, compiled), level=1)
    else:
        packed = archive.pack(compile_files(pick(files, imported), compiled))
    target.write_bytes(packed)
