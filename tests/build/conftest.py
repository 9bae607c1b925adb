"""A package index, a CDN and a cache that belong to one test."""

from __future__ import annotations

import threading
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from builder.cache import Cache, sha256
from builder.runtime import Runtime
from builder.server import make_server
from builder.wheels import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = {"pyodide.mjs": b"export {}\n", "pyodide.asm.wasm": b"\0asm" * 1000}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture(scope="session")
def fresh_cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """The user's downloads, but nothing compiled yet."""
    folder = tmp_path_factory.mktemp("fresh")
    for name in ("runtime", "wheels"):
        (folder / name).symlink_to(Cache.of_user().root / name)
    return Cache(folder)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip sees only the wheels in this folder."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    return folder


def make_wheel(folder: Path, name: str, files: dict[str, bytes]) -> Requirement:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in files.items():
            archive.writestr(member, data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return Requirement(name, "1.0", sha256(path.read_bytes()))


@pytest.fixture
def pins(index: Path) -> Runtime:
    """Two files that only the carrier wheel has; nothing listens at the CDN's address."""
    return Runtime(
        version="1",
        lock_info={},
        cdn="http://127.0.0.1:9/",
        carrier=make_wheel(index, "carrier", {f"inside/{name}": data for name, data in FILES.items()}),
        member_prefix="inside/",
        files={name: sha256(data) for name, data in FILES.items()},
    )


@pytest.fixture
def cdn(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A CDN's folder and its address."""
    folder = tmp_path / "cdn"
    folder.mkdir()
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    server = make_server(folder)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def pins_on_cdn(pins: Runtime, cdn: tuple[Path, str]) -> Runtime:
    return replace(pins, cdn=cdn[1])


def entries(cache: Cache) -> list[str]:
    """Every file in the cache, half-written ones too."""
    return sorted(path.relative_to(cache.root).as_posix() for path in cache.root.rglob("*") if path.is_file())
