"""Makes the site that the bench compares ours with: the same app, started as Pyodide's own guide says.

The page's worker loads the untouched runtime, then micropip, then wheels of source code, all from one folder.
Where the stock flow leaves a choice it gets the quicker one: no resolving of dependencies, wheels without
what no page runs, and of BokehJS only the file that our page draws with. Pillow is there because Bokeh
requires it; the app does not import it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder import archive, sources
from builder.cache import Cache, sha256
from builder.runtime import fetch_runtime, read_pins
from builder.wheels import fetch_wheels, read_lock

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).resolve().parent / "stock"
# `panel convert` serves these two as wheels of its own, without the scripts and styles of a server; they are
# installed by address, as the app is. Everything else is in the lock file, as in the official distribution.
BY_ADDRESS = ("bokeh", "panel")
WHEEL = b"Wheel-Version: 1.0\nGenerator: tests/bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def make_site(target: Path) -> None:
    """Writes the stock site into `target`.

    Raises:
        BuildError: the runtime or a wheel cannot be had.
    """
    cache = Cache.of_user()
    pins = read_pins(ROOT / "site/runtime.json")
    site_wheels = fetch_wheels(read_lock(ROOT / "site/locks/browser.lock"), cache)
    micropip = fetch_wheels(read_lock(ROOT / "site/locks/bench.lock"), cache)
    runtime = fetch_runtime(pins, cache)

    wheels = {name: data for name, data in runtime.items() if name.endswith(".whl")}
    wheels |= dict(browser_wheel(path) for path in [*micropip, *site_wheels])
    by_address = {name: wheels.pop(name) for name in list(wheels) if name.startswith(BY_ADDRESS)}
    by_address |= [make_wheel("calculator", "0", sources.calculator_files(ROOT))]
    lock = lock_file(pins.lock_info, wheels)
    by_name = [name for name in lock["packages"] if name != "micropip"]
    addresses = [f"wheels/{name}" for name in by_address]

    drawing = ("bokeh.min.js", "charts.mjs", "icon.svg")
    page = sources.app_files(ROOT, site_wheels)
    files = {name: data for name, data in page.items() if name.startswith(drawing)}
    files |= {path.name: path.read_bytes() for path in PAGE.iterdir()}
    files |= {f"pyodide/{name}": data for name, data in (runtime | wheels).items()}
    files |= {f"wheels/{name}": data for name, data in by_address.items()}
    files["pyodide/pyodide-lock.json"] = json.dumps(lock).encode()
    files["install.json"] = json.dumps({"by_name": by_name, "addresses": addresses}).encode()
    for name, data in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def browser_wheel(path: Path) -> tuple[str, bytes]:
    """File name and bytes of the wheel for the browser: `path` itself, or what of it the browser can run.

    MarkupSafe and PyYAML come as wheels of Linux and lose their binaries, as they do in our site.
    """
    name, version, *_ = path.name.split("-")
    if path.name.endswith("-py3-none-any.whl") and name not in BY_ADDRESS:
        return path.name, path.read_bytes()
    return make_wheel(name, version, sources.package_files(path))


def make_wheel(name: str, version: str, files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """File name and bytes of a pure wheel of these files; METADATA is written if it is not among them."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    members = {f"{info}/METADATA": metadata, **files, f"{info}/WHEEL": WHEEL}
    record = [f"{member},sha256={_record_hash(data)},{len(data)}\n" for member, data in members.items()]
    members[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode()
    return f"{name}-{version}-py3-none-any.whl", archive.pack(members)


def _record_hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def lock_file(info: Mapping[str, str], wheels: Mapping[str, bytes]) -> dict[str, Any]:
    """What pyodide-lock.json says of these wheels, which lie beside it; all get installed by name."""
    packages = {}
    for file_name, data in sorted(wheels.items()):
        name, version, *_ = file_name.split("-")
        name = name.lower().replace("_", "-")
        packages[name] = {
            "name": name,
            "version": version,
            "file_name": file_name,
            "sha256": sha256(data),
            "install_dir": "site",
            "package_type": "package",
            "imports": import_names(data),
            "depends": ["packaging"] if name == "micropip" else [],
            "unvendored_tests": False,
        }
    return {"info": dict(info), "packages": packages}


def import_names(wheel: bytes) -> list[str]:
    """The top-level modules and packages of a wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as opened:
        names = {name.split("/")[0].removesuffix(".py") for name in opened.namelist() if name.endswith(".py")}
    return sorted(name for name in names if "." not in name)
