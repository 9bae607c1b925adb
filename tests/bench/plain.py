"""Our site without its quickest way to start, and what of the site is for Python alone."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

from builder.console import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA = re.compile(r'(?<=<script type="application/json")( id="\w+">)(.*?)(?=</script>)', re.DOTALL)
RESUMING = ("resume", "documents")  # what the page knows of the snapshot, and of the charts that go with it


def make_plain(dist: Path, target: Path) -> None:
    """Copies the built site; of the copy's ways to start, the page is offered only the plain one.

    Raises:
        BuildError: the site has no other way anyhow.
    """
    shutil.copytree(dist, target)
    page = (dist / "index.html").read_text(encoding="utf-8")
    known = {name for data in _data(page) for name in data}
    if missing := [name for name in RESUMING if name not in known]:
        raise BuildError(f"{dist}: the page's data have no {' and no '.join(missing)}: nothing to leave out")

    def without(found: re.Match[str]) -> str:
        data = {name: value for name, value in json.loads(found[2]).items() if name not in RESUMING}
        return found[1] + json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")

    (target / "index.html").write_text(DATA.sub(without, page), encoding="utf-8")


def for_python(dist: Path) -> tuple[str, ...]:
    """How the addresses begin of the files that only Python needs."""
    page = (dist / "index.html").read_text(encoding="utf-8")
    return tuple({f"/{url.removeprefix('./')}" for data in _data(page) for url in _parts(data)})


def _data(page: str) -> list[dict[str, Any]]:
    return [json.loads(found[2]) for found in DATA.finditer(page)]


def _parts(data: Any) -> Iterator[str]:
    """The build describes each file of Python's by address and digest, and a folder by `runtime`."""
    if isinstance(data, list):
        for inner in data:
            yield from _parts(inner)
    elif isinstance(data, dict):
        if {"url", "sha256"} <= data.keys():
            yield data["url"]
        if isinstance(data.get("runtime"), str):
            yield data["runtime"]
        for inner in data.values():
            yield from _parts(inner)
