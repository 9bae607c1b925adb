"""What Node.js makes for the site: two archives of Python code, and the memory snapshot of the app."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import archive
from .cache import sha256
from .console import BuildError, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .cache import Cache

HERE = Path(__file__).parent
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json")
STDLIB = "python_stdlib.zip"
TOOLS = {
    "node.mjs": ("__init__.py", "archive.py", "interpreter.py", "node.mjs"),
    "snapshot.mjs": ("snapshot.mjs", "../memory.mjs"),
}
LABELS = {
    "bytecode": "bytecode of {what}",
    "rehearse": "rehearsal of the app in Pyodide",
    "trim": "{what} with only what it imports",
    "prove": "rehearsal of the trimmed result",
    "snapshot": "snapshot of the app's memory",
    "resume": "rehearsal of the app brought back from it",
    "compress": "compression of the snapshot",
}


@dataclass(frozen=True)
class Products:
    """The zip archives as bytes, and the names of the modules in them; none if nothing was left out."""

    packages: bytes
    stdlib: bytes
    modules: bytes = b""


def plain(
    packages: Mapping[str, bytes], calculator: Mapping[str, bytes], runtime: Mapping[str, bytes]
) -> Products:
    """Both archives as source, with nothing left out: no Node.js, quick to make, slow to start."""
    return Products(archive.pack({**packages, **calculator}), runtime[STDLIB])


def compiled(
    packages: Mapping[str, bytes],
    calculator: Mapping[str, bytes],
    runtime: Mapping[str, bytes],
    cache: Cache,
) -> Products:
    """Both archives as bytecode, with only the modules that a rehearsal of the whole app imports.

    Bytecode of the standard library and of the packages is kept in the cache by itself, so that a change in
    the calculator costs only the rehearsals.

    Raises:
        BuildError: the rehearsal fails, before or after trimming; the message names the error.
    """
    core = _core(runtime)

    def made(task: str, what: str, code: Mapping[str, bytes], stdlib: bytes) -> dict[str, bytes]:
        files = {**core, "stdlib.zip": stdlib, "code.zip": archive.pack(code, level=1)}
        return _made(["node.mjs", task], what, files, cache)

    source = runtime[STDLIB]
    stdlib = made("bytecode", "the standard library", archive.unpack(source), source)["code.zip"]
    libraries = made("bytecode", "the packages", packages, stdlib)["code.zip"]
    site = made("trim", "the site", archive.unpack(libraries) | dict(calculator), stdlib)
    return Products(site["code.zip"], site["stdlib.zip"], site["modules.json"])


def snapshot(made: Products, runtime: Mapping[str, bytes], cache: Cache) -> dict[str, bytes]:
    """What snapshot.mjs writes, by file name: the memory of a Python that has the app open.

    Raises:
        BuildError: the app cannot be kept, or does not go on afterwards; the message names the error.
    """
    extensions = libraries(made)
    files = {
        **_core(runtime),
        "stdlib.zip": made.stdlib,
        "code.zip": made.packages,
        "modules.json": made.modules,
        "libraries.json": json.dumps(list(extensions)).encode(),
        **{f"libraries/{at}": data for at, data in enumerate(extensions.values())},
    }
    return _made(["snapshot.mjs"], "the site", files, cache)


def libraries(made: Products) -> dict[str, bytes]:
    """The extension modules in the order in which Python's memory has them."""
    code = archive.unpack(made.packages)
    return {name: code[name] for name in sorted(code) if name.endswith(".so")}


def _core(runtime: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"runtime/{name}": runtime[name] for name in CORE}


def _made(command: list[str], what: str, files: Mapping[str, bytes], cache: Cache) -> dict[str, bytes]:
    """The files that Node.js makes of these, kept by the hash of everything that goes in."""
    files = {
        **files,
        **{f"builder/{Path(name).name}": (HERE / name).read_bytes() for name in TOOLS[command[0]]},
    }
    place = f"products/{sha256(' '.join([*command, archive.tree_digest(files)]).encode())}"
    if known := _read(place, cache):
        return known
    made = _run_node(command, what, files)
    for name, data in made.items():
        cache.write(f"{place}/{name}", data)
    # Last: an entry without its digests is not there.
    digests = {name: sha256(data) for name, data in made.items()}
    cache.write(f"{place}/digests.json", json.dumps(digests).encode())
    return made


def _read(place: str, cache: Cache) -> dict[str, bytes] | None:
    try:
        digests = json.loads((cache.root / place / "digests.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    known = {name: cache.read(f"{place}/{name}", digest) for name, digest in digests.items()}
    whole = {name: data for name, data in known.items() if data is not None}
    return whole if len(whole) == len(known) else None


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


def _run_node(command: list[str], what: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    script, *words = command
    with tempfile.TemporaryDirectory(prefix="kv-cache-build-") as name:
        work = Path(name)
        for file, data in files.items():
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            (work / file).write_bytes(data)
        _follow([str(node()), str(work / "builder" / script), str(work), *words], what, work / "node.log")
        return {path.name: path.read_bytes() for path in sorted((work / "out").iterdir())}


def _follow(command: list[str], what: str, log: Path) -> None:
    """Runs Node.js and shows its progress."""
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
                progress = Progress(LABELS[step].format(what=what))
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
    if step in ("snapshot", "resume"):
        return (
            f"the app cannot be kept and brought back ({reason}): it may hold nothing from JavaScript, "
            "import nothing late, and read no files"
        )
    if step == "rehearse":
        return (
            f"the app does not run under Pyodide ({reason}): repair that; "
            "`python3 build.py serve --plain` shows it in a browser"
        )
    return f"Pyodide under Node.js failed ({reason}): delete the cache's folder products/ and start again"
