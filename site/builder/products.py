"""The two archives of Python code that the site carries: packages and standard library."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import archive
from .cache import sha256
from .console import BuildError, Progress, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .cache import Cache

HERE = Path(__file__).parent
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json")
LABELS = {
    "rehearse": "rehearsal of the app in Pyodide",
    "compile": "bytecode of what it imports",
    "prove": "rehearsal of the trimmed result",
}
TOOLS = ("__init__.py", "archive.py", "interpreter.py", "trim.mjs")


@dataclass(frozen=True)
class Products:
    """The zip archives, as bytes."""

    packages: bytes
    stdlib: bytes


def plain(sources: Mapping[str, bytes], runtime: Mapping[str, bytes]) -> Products:
    """Both archives as source, with nothing left out: no Node.js, quick to make, slow to start."""
    return Products(archive.pack(sources), runtime["python_stdlib.zip"])


def compiled(sources: Mapping[str, bytes], runtime: Mapping[str, bytes], cache: Cache) -> Products:
    """Both archives as bytecode, with only the modules that a rehearsal of the whole app imports.

    Raises:
        BuildError: the rehearsal fails, before or after trimming; the message names the error.
    """
    tools = {name: (HERE / name).read_bytes() for name in TOOLS}
    inputs = "".join(archive.tree_digest(files) for files in (sources, runtime, tools))
    place = f"products/{sha256(inputs.encode())}"
    known = _read(place, cache)
    if known:
        say("  compiled packages: unchanged, from the cache")
        return known
    made = _run_node(sources, runtime, tools)
    digests = {"packages": sha256(made.packages), "stdlib": sha256(made.stdlib)}
    cache.write(f"{place}/packages.zip", made.packages)
    cache.write(f"{place}/stdlib.zip", made.stdlib)
    # Last: an entry without its digests is not there.
    cache.write(f"{place}/digests.json", json.dumps(digests).encode())
    return made


def _read(place: str, cache: Cache) -> Products | None:
    try:
        digests = json.loads((cache.root / place / "digests.json").read_bytes())
        packages = cache.read(f"{place}/packages.zip", digests["packages"])
        stdlib = cache.read(f"{place}/stdlib.zip", digests["stdlib"])
    except (FileNotFoundError, ValueError, KeyError):
        return None
    return Products(packages, stdlib) if packages and stdlib else None


def node() -> Path:
    """The Node.js that the playwright wheel carries."""
    try:
        import playwright
    except ImportError as error:
        raise BuildError("playwright is missing: delete .venv and start again") from error
    folder = Path(playwright.__file__).parent / "driver"
    found = [path for path in (folder / "node", folder / "node.exe") if path.is_file()]
    if not found:
        raise BuildError("the playwright wheel carries no Node.js for this platform: build with --plain")
    return found[0]


def _run_node(
    sources: Mapping[str, bytes], runtime: Mapping[str, bytes], tools: Mapping[str, bytes]
) -> Products:
    with tempfile.TemporaryDirectory(prefix="kv-cache-build-") as name:
        work = Path(name)
        for folder in ("runtime", "builder"):
            (work / folder).mkdir()
        for file in CORE:
            (work / "runtime" / file).write_bytes(runtime[file])
        for file, data in tools.items():
            (work / "builder" / file).write_bytes(data)
        (work / "sources.zip").write_bytes(archive.pack(sources))
        (work / "stdlib.zip").write_bytes(runtime["python_stdlib.zip"])
        _follow([str(node()), str(work / "builder/trim.mjs"), str(work)], work / "node.log")
        return Products((work / "out/packages.zip").read_bytes(), (work / "out/stdlib.zip").read_bytes())


def _follow(command: list[str], log: Path) -> None:
    """Runs the Node.js step and shows its progress."""
    step, done, progress = "start", "done", None
    with (
        log.open("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout
        for line in process.stdout:
            word, *rest = line.split()
            if word == "step":
                if progress:
                    progress.finish(done)
                step, done = rest[0], "done"
                progress = Progress(LABELS[step])
            elif word == "compiled":
                done = f"{rest[0]} of {rest[1]} files"
            if progress:
                progress.show(done)
        code = process.wait()
        errors.seek(0)
        said = errors.read().strip().splitlines()
    if code:
        raise BuildError(_why(step, said))
    if progress:
        progress.finish(done)


def _why(step: str, said: list[str]) -> str:
    reason = said[-1] if said else "Node.js ended without a word"
    if step == "prove":
        return (
            f"the trimmed site does not run ({reason}): let calculator/app/rehearsal.py import that too, "
            "or name the module in ALWAYS_MODULES of site/builder/interpreter.py"
        )
    return (
        f"the app does not run under Pyodide ({reason}): repair that; "
        "`python3 build.py serve --plain` shows it in a browser"
    )
