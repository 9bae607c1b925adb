"""What the service worker keeps, and the build that page, worker and list belong to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from . import archive
from .cache import sha256

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def visited(files: Mapping[str, bytes], addresses: Mapping[str, object]) -> list[str]:
    """What a visit needs beside the page: its own files, and what the first way to start reads.

    `addresses` is what the page is told of its parts; answers of other models only bridge its start.
    """
    if "resume" not in addresses:
        spared = (".nojekyll", "index.html", "sw.js", str(addresses["answers"]))
        return [name for name in files if not name.startswith(spared)]
    named = json.dumps(addresses["resume"])
    whole = ("charts-", str(addresses["app"]), f"{addresses['runtime']}pyodide.mjs")
    return [name for name in files if name.startswith(whole) or name in named]


def stamp(files: dict[str, bytes], kept: Iterable[str]) -> str:
    """Writes the name of the build into page and worker, adds the list of what is kept; gives the name.

    It follows from everything in `files`: a change of the page or the worker alone is another build, too.
    """
    build = archive.tree_digest(files)[:10]
    listed = {name: sha256(files[name]) for name in sorted(kept)}
    files[f"offline-{build}.json"] = json.dumps(listed).encode()
    files["index.html"] = files["index.html"].replace(
        b'data-kv-build=""', f'data-kv-build="{build}"'.encode()
    )
    files["sw.js"] = f"const BUILD = '{build}';\n".encode() + files["sw.js"]
    return build
