"""The part of a build that runs inside Pyodide: bytecode of what was imported, by that interpreter."""

from __future__ import annotations

import itertools
import py_compile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from . import archive

if TYPE_CHECKING:
    from collections.abc import Callable

# Imported later than a rehearsal under Node.js shows: by the browser's side, or on an error's path.
ALWAYS = ("calculator", "panel.io", "pyodide", "_pyodide")
ALWAYS_MODULES = ("encodings.ascii", "encodings.utf_8_sig", "tarfile", "tempfile", "traceback", "zipfile")


def pick(files: dict[str, bytes], modules: set[str]) -> dict[str, bytes]:
    """The files of these modules and of the always-kept packages, and every file that is not a module."""
    return {name: data for name, data in files.items() if _is_kept(name, modules)}


def _is_kept(name: str, modules: set[str]) -> bool:
    if not name.endswith((".py", ".so")):
        return True
    folder, _, base = name.rpartition("/")
    stem = base.split(".")[0]
    module = ".".join([*folder.split("/"), *([stem] if stem != "__init__" else [])]).lstrip(".")
    return module in modules or any(module == kept or module.startswith(f"{kept}.") for kept in ALWAYS)


def compile_files(files: dict[str, bytes], compiled: Callable[[], object]) -> dict[str, bytes]:
    """The same files with each `.py` as bytecode where its source was; tells of each file that is done."""
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "source.py"), Path(folder, "target.pyc")
        for name in sorted(files):
            if name.endswith(".py"):
                source.write_bytes(files[name])
                py_compile.compile(
                    str(source),
                    str(target),
                    dfile=name,
                    doraise=True,
                    optimize=2,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
                result[f"{name}c"] = target.read_bytes()
            else:
                result[name] = files[name]
            compiled()
    return result


def build(work: Path, imported: list[str], compiled: Callable[[int, int], object]) -> None:
    """Turns work/sources.zip and work/stdlib.zip into work/out/packages.zip and work/out/stdlib.zip.

    Of the modules only those that were imported are kept. `compiled` is told (files done, files in all).
    """
    modules = {*imported, *ALWAYS_MODULES}
    parts = {
        "packages.zip": pick(archive.unpack((work / "sources.zip").read_bytes()), modules),
        "stdlib.zip": pick(archive.unpack((work / "stdlib.zip").read_bytes()), modules),
    }
    total = sum(len(files) for files in parts.values())
    count = itertools.count(1)
    for name, files in parts.items():
        packed = archive.pack(compile_files(files, lambda: compiled(next(count), total)))
        (work / "out" / name).write_bytes(packed)
