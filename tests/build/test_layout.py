"""dist/: what is in it, that it is the same each time, and that a failed build leaves the old one."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builder import layout
from builder.archive import FIXED_TIME
from builder.cache import sha256
from builder.console import BuildError
from builder.offline import stamp

import build as command

if TYPE_CHECKING:
    from builder.cache import Cache


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dist = tmp_path_factory.mktemp("plain") / "dist"
    layout.build(dist, plain=True)
    return dist


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    dist = tmp_path_factory.mktemp("compiled") / "dist"
    return dist, layout.build(dist)


def contents(dist: Path) -> dict[str, bytes]:
    return {
        path.relative_to(dist).as_posix(): path.read_bytes() for path in dist.rglob("*") if path.is_file()
    }


def test_two_plain_builds_have_the_same_bytes(plain: Path, tmp_path: Path) -> None:
    layout.build(tmp_path / "dist", plain=True)
    assert contents(tmp_path / "dist") == contents(plain)


def test_two_compiled_builds_have_the_same_bytes(
    compiled: tuple[Path, dict[str, int]], fresh_cache: Cache, tmp_path: Path
) -> None:
    layout.build(tmp_path / "dist", cache=fresh_cache)
    assert contents(tmp_path / "dist") == contents(compiled[0])


def test_the_reported_files_are_those_in_dist(compiled: tuple[Path, dict[str, int]]) -> None:
    dist, sizes = compiled
    assert sizes == {name: len(data) for name, data in contents(dist).items()}


def test_the_layout(plain: Path, compiled: tuple[Path, dict[str, int]]) -> None:
    for dist in (plain, compiled[0]):
        files = set(contents(dist))
        (runtime,) = dist.glob("runtime-*")
        assert {path.name for path in runtime.iterdir()} == {
            "pyodide.mjs",
            "pyodide.asm.mjs",
            "pyodide.asm.wasm",
            "pyodide-lock.json",
            "stdlib.zip",
        }
        (app,) = (path.name for path in dist.glob("app-*"))
        assert {"index.html", ".nojekyll", f"{app}/bokeh.min.js"} <= files
        assert not [name for name in files if any(part.startswith("_") for part in name.split("/"))]
        assert not [name for name in files if "panel" in name]


def test_archives_know_no_clock_and_hold_no_tests(plain: Path, compiled: tuple[Path, dict[str, int]]) -> None:
    for dist in (plain, compiled[0]):
        (packages,) = dist.glob("packages-*.zip")
        with zipfile.ZipFile(packages) as archive:
            assert {info.date_time for info in archive.infolist()} == {FIXED_TIME}
            assert archive.namelist() == sorted(archive.namelist())
            assert not [name for name in archive.namelist() if "/tests/" in name]
            assert not [name for name in archive.namelist() if name.startswith("calculator/golden/")]
            # Of MarkupSafe and PyYAML only the Python is shipped.
            libraries = [name for name in archive.namelist() if name.endswith(".so")]
            assert libraries
            assert {name.split("/")[0] for name in libraries} <= {"numpy", "PIL"}


def test_the_service_worker_keeps_what_a_visit_needs(
    plain: Path, compiled: tuple[Path, dict[str, int]]
) -> None:
    for dist, needed, spared in (
        (plain, ("packages-", "runtime-"), ("index", "sw.js")),
        (compiled[0], ("snapshot-", "charts-zh-dark-", "runtime-"), ("index", "sw.js", "packages-")),
    ):
        (listed,) = dist.glob("offline-*.json")
        build = listed.stem.removeprefix("offline-")
        assert f'data-kv-build="{build}"' in (dist / "index.html").read_text(encoding="utf-8")
        assert (dist / "sw.js").read_text(encoding="utf-8").startswith(f"const BUILD = '{build}';\n")
        files = json.loads(listed.read_text(encoding="utf-8"))
        assert {name: sha256((dist / name).read_bytes()) for name in files} == files
        assert {path.relative_to(dist).as_posix() for path in dist.glob("app-*/*")} <= set(files)
        for start in needed:
            assert any(name.startswith(start) for name in files)
        assert not [name for name in files if name.startswith(spared)]


def test_another_worker_alone_is_another_build() -> None:
    files = {"index.html": b'<html data-kv-build="">', "sw.js": b"// 1"}
    first = stamp(dict(files), [])
    assert stamp({**files, "sw.js": b"// 2"}, []) != first
    assert stamp({**files, "index.html": b'<html data-kv-build=""> '}, []) != first


def test_the_page_is_told_where_everything_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[dict[str, Any]] = []

    def render(template: str, site: dict[str, Any]) -> str:
        told.append(site)
        return "<!doctype html>"

    monkeypatch.setattr("calculator.app.shell.render", render)
    dist = tmp_path / "dist"
    layout.build(dist, plain=True)
    (site,) = told
    for part in ("packages", "stdlib", "wasm"):
        assert (dist / site[part]["url"]).stat().st_size == site[part]["bytes"]
    for folder in ("app", "runtime"):
        assert site[folder].endswith("/")
        assert (dist / site[folder]).is_dir()


def test_a_full_disk_is_one_sentence_and_no_dist(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name == "pyodide.asm.wasm":
            write(path, data[:1000])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    assert command.run(["build", "--plain", "--dist", str(tmp_path / "dist")]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("build.py: the disk is full")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_build_leaves_the_old_site(
    plain: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dist = shutil.copytree(plain, tmp_path / "dist")
    before = contents(dist)
    write = Path.write_bytes

    def interrupted(path: Path, data: bytes) -> int:
        if path.name == "bokeh.min.js":
            raise KeyboardInterrupt
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    assert command.run(["build", "--plain", "--dist", str(dist)]) == 130
    assert contents(dist) == before
    assert list(tmp_path.iterdir()) == [dist]


def test_a_failed_swap_puts_the_old_site_back(
    plain: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dist = shutil.copytree(plain, tmp_path / "dist")
    before = contents(dist)
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.name == "new":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(BuildError, match="Input/output error"):
        layout.build(dist, plain=True)
    assert contents(dist) == before


def test_a_folder_that_is_no_site_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(BuildError, match=r"not a site built by build.py"):
        layout.build(tmp_path, plain=True)
    assert (tmp_path / "thesis.txt").exists()


def test_archive_round_trip() -> None:
    from builder.archive import pack, unpack

    files = {"b/c.txt": b"2", "a.txt": b"1"}
    assert unpack(pack(files)) == files
    assert zipfile.ZipFile(io.BytesIO(pack(files))).namelist() == ["a.txt", "b/c.txt"]
