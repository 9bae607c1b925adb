"""dist/: what goes where, the content hashes in the addresses, and the swap that never leaves half a site."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from . import archive, bokeh, offline, products, script, sources
from .bundle import bundled
from .cache import Cache, sha256
from .console import BuildError, one_sentence, say, table
from .runtime import fetch_runtime, read_pins
from .wheels import fetch_wheels, read_lock

if TYPE_CHECKING:
    from collections.abc import Mapping

Part = dict[str, object]  # a file: its address, its length, its SHA-256
ROOT = Path(__file__).resolve().parents[2]
NEEDED = (
    "site/index.html",
    "site/sw.js",
    "site/runtime.json",
    "site/locks/browser.lock",
    "calculator/app/shell.py",
    "calculator/app/browser.py",
    "calculator/app/rehearsal.py",
)


def build(
    dist: Path, *, plain: bool = False, root: Path = ROOT, cache: Cache | None = None
) -> dict[str, int]:
    """Builds the whole site into `dist` and returns the size of every file, by its name in dist/.

    Raises:
        BuildError: with one sentence; an earlier `dist` is then as it was.
    """
    from calculator.app.shell import answers, render

    with one_sentence():
        cache = cache or Cache.of_user()
        _validate(root, dist)
        say(f"Site into {dist} ({'plain' if plain else 'compiled'})")
        pins = read_pins(root / "site/runtime.json")
        wheels = fetch_wheels(read_lock(root / "site/locks/browser.lock"), cache)
        runtime = fetch_runtime(pins, cache)
        lock = {"info": pins.lock_info, "packages": {}}
        runtime["pyodide-lock.json"] = json.dumps(lock, sort_keys=True).encode()
        packages, calculator = _packages(wheels, runtime), sources.calculator_files(root)
        files: dict[str, bytes] = {".nojekyll": b""}
        app = bundled(sources.app_files(root, wheels))
        if plain:
            addresses = _put_runtime(files, runtime, products.plain(packages, calculator, runtime))
        else:
            made = products.compiled(packages, calculator, runtime, cache)
            kept = products.snapshot(made, runtime, cache)
            addresses = _put_runtime(files, runtime, made) | _put_snapshot(files, runtime, made, kept)
            documents = json.loads(kept["documents.json"])
            app["bokeh.min.js"] = bokeh.trimmed(app["bokeh.min.js"], documents.values())
        addresses |= {
            "app": _put_folder(files, "app", app),
            "answers": _put_folder(files, "answers", answers()),
        }
        template = (root / "site/index.html").read_text(encoding="utf-8")
        files["index.html"] = render(template, addresses).encode()
        files["sw.js"] = (root / "site/sw.js").read_bytes()
        offline.stamp(files, offline.visited(files, addresses))
        _swap(files, dist)
        _print_sizes(files)
    return {name: len(data) for name, data in sorted(files.items())}


def _validate(root: Path, dist: Path) -> None:
    for name in NEEDED:
        if not (root / name).is_file():
            raise BuildError(f"{name} is missing: this is not a whole checkout of the repository")
    if dist.exists() and not (dist / ".nojekyll").is_file() and (not dist.is_dir() or any(dist.iterdir())):
        raise BuildError(f"{dist} is there and is not a site built by build.py: name another --dist")


def _packages(wheels: list[Path], runtime: Mapping[str, bytes]) -> dict[str, bytes]:
    """What the browser imports beside the calculator and the standard library."""
    files: dict[str, bytes] = {}
    for wheel in wheels:
        files |= sources.package_files(wheel)
    for name, data in runtime.items():
        if name.endswith(".whl"):
            files |= sources.package_files(io.BytesIO(data))
    return files


def _put_runtime(
    files: dict[str, bytes], runtime: Mapping[str, bytes], made: products.Products
) -> dict[str, object]:
    """Puts Python and its code into `files`; what the page must know of it."""
    core = {name: runtime[name] for name in products.CORE} | {"stdlib.zip": made.stdlib}
    url = _put_folder(files, "runtime", core)
    return {
        "runtime": url,
        "packages": _put(files, "packages.zip", made.packages),
        "stdlib": _part(f"{url}stdlib.zip", made.stdlib),
        "wasm": _part(f"{url}pyodide.asm.wasm", core["pyodide.asm.wasm"]),
    }


def _put_snapshot(
    files: dict[str, bytes],
    runtime: Mapping[str, bytes],
    made: products.Products,
    kept: Mapping[str, bytes],
) -> dict[str, object]:
    """Puts the memory snapshot and all that it needs into `files`; what the page must know of it."""
    manifest = json.loads(kept["manifest.json"])

    def packed(name: str, data: bytes) -> Part:
        return _put(files, f"{name}.gz", gzip.compress(data, 9, mtime=0))

    documents = json.loads(kept["documents.json"])
    extensions = zip(manifest["extensions"], products.libraries(made).values(), strict=True)
    return {
        "resume": {
            "lock": json.loads(runtime["pyodide-lock.json"]),
            "snapshot": _put(files, "snapshot.zst", kept["snapshot.zst"]) | manifest["snapshot"],
            "extensions": [
                {"path": path} | packed(f"extension-{at}.wasm", data)
                for at, (path, data) in enumerate(extensions)
            ],
            "script": _put(files, "pyodide.asm.mjs", script.quicker(runtime["pyodide.asm.mjs"])),
            "wasm": packed("pyodide.asm.wasm", runtime["pyodide.asm.wasm"]),
        },
        "documents": {
            look: _put(files, f"charts-{look}.json", document.encode())["url"]
            for look, document in documents.items()
        },
    }


def _put_folder(files: dict[str, bytes], name: str, content: Mapping[str, bytes]) -> str:
    """Puts a folder into `files` under its hash, and says where it is."""
    url = f"{name}-{archive.tree_digest(content)[:10]}/"
    files |= {f"{url}{inner}": data for inner, data in content.items()}
    return url


def _put(files: dict[str, bytes], name: str, data: bytes) -> Part:
    """Puts a file into `files` under its hash, and says what the page must know of it."""
    stem, dot, suffix = name.partition(".")
    url = f"{stem}-{sha256(data)[:10]}{dot}{suffix}"
    files[url] = data
    return _part(url, data)


def _part(url: str, data: bytes) -> Part:
    return {"url": url, "bytes": len(data), "sha256": sha256(data)}


def _swap(files: Mapping[str, bytes], dist: Path) -> None:
    """Writes a complete site beside `dist`, then puts it in its place; a failure leaves the old one."""
    dist.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".dist-", dir=dist.parent) as name:
        new, old = Path(name, "new"), Path(name, "old")
        for file, data in files.items():
            path = new / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if dist.exists():
            dist.rename(old)
        try:
            new.rename(dist)
        except BaseException:
            if old.exists():
                old.rename(dist)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _print_sizes(files: Mapping[str, bytes]) -> None:
    rows: dict[str, tuple[int, int]] = {}
    for name, data in files.items():
        folder = name.partition("/")[0]
        part = f"{folder}/" if folder.startswith("answers-") else name
        raw, packed = rows.get(part, (0, 0))
        rows[part] = (raw + len(data), packed + len(gzip.compress(data, 6, mtime=0)))
    say(table([(part, *sizes) for part, sizes in sorted(rows.items())]))
