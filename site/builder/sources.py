"""What the site is made of, from this repository and from the wheels: mappings of names to bytes."""

from __future__ import annotations

import zipfile
from fnmatch import fnmatch
from typing import TYPE_CHECKING, BinaryIO

from .console import BuildError

if TYPE_CHECKING:
    from pathlib import Path

# Read while the page runs, beside the modules that read them; everything else that is not code stays behind.
PACKAGE_DATA = (
    "bokeh/_sri/3.9.*.json",
    "bokeh/core/_templates/*",
    "panel/_templates/*",
    "panel/layout/*.html",
    "panel/package.json",
    "panel/theme/css/*.css",
    "pyviz_comms/labextension/package.json",
    "pyviz_comms/notebook.js",
    "*.dist-info/METADATA",
)
# Code that no page runs.
NOT_SHIPPED = (
    "*/tests/*",
    "*/sphinxext/*",
    "*/sampledata/*",
    "bokeh/server/static/*",
    "panel/dist/*",
    "*.data/*",
)
# Of BokehJS and PanelJS the page needs the core alone: it uses no other models.
BOKEH_SCRIPT = "bokeh/server/static/js/bokeh.min.js"
APP_SUFFIXES = (".mjs", ".js", ".css", ".svg", ".png", ".ico", ".webmanifest", ".json")
NOT_APP = ("builder", "locks", "runtime.json", "sw.js")


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def package_files(wheel: Path | BinaryIO) -> dict[str, bytes]:
    """The part of a wheel that may run in the browser: its Python, its WebAssembly and the data it reads."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name)
            for name in archive.namelist()
            if not _matches(name, NOT_SHIPPED)
            and (name.endswith((".py", "-wasm32-emscripten.so")) or _matches(name, PACKAGE_DATA))
        }


def calculator_files(root: Path) -> dict[str, bytes]:
    """The calculator itself, without the reference cases that are loaded only on demand."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted((root / "calculator").rglob("*"))
        if path.is_file() and not {"golden", "__pycache__"} & set(path.relative_to(root).parts)
    }


def app_files(root: Path, wheels: list[Path]) -> dict[str, bytes]:
    """The page's own scripts and styles, and BokehJS."""
    site = root / "site"
    files = {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in sorted(site.rglob("*"))
        if path.suffix in APP_SUFFIXES and path.relative_to(site).parts[0] not in NOT_APP
    }
    with zipfile.ZipFile(_wheel_of("bokeh", wheels)) as archive:
        files["bokeh.min.js"] = archive.read(BOKEH_SCRIPT)
    for name in files:
        if any(part.startswith("_") for part in name.split("/")):
            raise BuildError(f"site/{name} starts with an underscore, which some hosts hide: rename it")
    return files


def _wheel_of(name: str, wheels: list[Path]) -> Path:
    return next(wheel for wheel in wheels if wheel.name.startswith(f"{name}-"))
