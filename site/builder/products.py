"""What Node.js makes for the site: two archives of Python code, and the memory snapshot of the app."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
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
TRIMMING, SNAPSHOT = "node.mjs", "snapshot.mjs"
TOOLS = ("__init__.py", "archive.py", "interpreter.py", TRIMMING, SNAPSHOT, "../memory.mjs")
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
    """The zip archives as bytes, and what snapshot.mjs wrote, by file name; nothing in a plain build."""

    packages: bytes
    stdlib: bytes
    snapshot: dict[str, bytes] = field(default_factory=dict)


def plain(
    packages: Mapping[str, bytes], calculator: Mapping[str, bytes], runtime: Mapping[str, bytes]
) -> Products:
    """Both archives as source, with nothing left out: no Node.js, quick to make, slow to start."""
    return Products(archive.pack({**packages, **calculator}), runtime[STDLIB])


def compiled(
    packages: Mapping[str, bytes],
    calculator: Mapping[str, bytes],
    runtime: Mapping[str, bytes],
    panel_url: str,
    cache: Cache,
) -> Products:
    """Both archives as bytecode, with only the modules that a rehearsal imports, and a snapshot of the app.

    `panel_url` is where the page finds Panel's style sheets: the documents in the snapshot name them.

    Bytecode of the standard library and of the packages is kept in the cache by itself, so that a change in
    the calculator costs only the rehearsals.

    Raises:
        BuildError: the rehearsal fails, before or after trimming; the message names the error.
    """
    core = {name: runtime[name] for name in CORE}
    source = runtime[STDLIB]
    stdlib = _made("bytecode", "the standard library", archive.unpack(source), source, core, cache)[
        "code.zip"
    ]
    libraries = _made("bytecode", "the packages", packages, stdlib, core, cache)["code.zip"]
    code = archive.unpack(libraries) | dict(calculator)
    made = _made("trim", "the site", code, stdlib, core, cache)
    trimmed = archive.unpack(made["code.zip"])
    snapshot = _made("snapshot", "the site", trimmed, made["stdlib.zip"], core, cache, panel_url)
    return Products(made["code.zip"], made["stdlib.zip"], snapshot)


def texts(code: Mapping[str, bytes]) -> bytes:
    """JSON of the calculator's files that are not code: what a session reads after it was brought back."""
    own = {name: data for name, data in code.items() if name.startswith("calculator/")}
    return json.dumps(
        {name: data.decode() for name, data in sorted(own.items()) if not name.endswith((".py", ".pyc"))},
        ensure_ascii=False,
    ).encode()


def _made(
    task: str,
    what: str,
    code: Mapping[str, bytes],
    stdlib: bytes,
    core: Mapping[str, bytes],
    cache: Cache,
    panel_url: str = "",
) -> dict[str, bytes]:
    """The files that a task of Node.js makes of this code, kept by the hash of all its inputs."""
    tools = {Path(name).name: (HERE / name).read_bytes() for name in TOOLS}
    inputs = [task, panel_url, sha256(stdlib), *(archive.tree_digest(files) for files in (code, core, tools))]
    place = f"products/{sha256(' '.join(inputs).encode())}"
    if known := _read(place, cache):
        return known
    command = [SNAPSHOT, panel_url] if task == "snapshot" else [TRIMMING, task]
    made = _run_node(command, what, code, stdlib, core, tools)
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


def _run_node(
    command: list[str],
    what: str,
    code: Mapping[str, bytes],
    stdlib: bytes,
    core: Mapping[str, bytes],
    tools: Mapping[str, bytes],
) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="kv-cache-build-") as name:
        work = Path(name)
        for folder, files in (("runtime", core), ("builder", tools)):
            (work / folder).mkdir()
            for file, data in files.items():
                (work / folder / file).write_bytes(data)
        (work / "stdlib.zip").write_bytes(stdlib)
        (work / "code.zip").write_bytes(archive.pack(code, level=1))
        (work / "files.json").write_bytes(texts(code))
        script, *words = command
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
            "import nothing late, and read no files but the calculator's own"
        )
    if step == "rehearse":
        return (
            f"the app does not run under Pyodide ({reason}): repair that; "
            "`python3 build.py serve --plain` shows it in a browser"
        )
    return f"Pyodide under Node.js failed ({reason}): delete the cache's folder products/ and start again"
