"""The cache outside the repository: files by SHA-256, verified on every read, never half-written."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .console import say


def sha256(data: bytes) -> str:
    """The hexadecimal SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file that is either complete or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".part-", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        part.write_bytes(data)
        part.chmod(0o644)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@dataclass(frozen=True)
class Cache:
    """A folder with `runtime/<sha256>`, `wheels/<sha256>/<file>` and `products/<key>/<file>`."""

    root: Path

    @classmethod
    def of_user(cls) -> Cache:
        """$KV_CALCULATOR_CACHE, else kv-cache-calculator in the user's cache folder."""
        if named := os.environ.get("KV_CALCULATOR_CACHE"):
            return cls(Path(named).expanduser().absolute())
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        return cls(Path(base).expanduser() / "kv-cache-calculator")

    def read(self, place: str, digest: str) -> bytes | None:
        """The bytes stored at `place` if they still have this digest; a damaged entry is dropped."""
        path = self.root / place
        if not path.is_file():
            return None
        data = path.read_bytes()
        if sha256(data) == digest:
            return data
        say(f"  the cache entry {place} is damaged: dropped")
        path.unlink()
        return None

    def write(self, place: str, data: bytes) -> Path:
        """Stores bytes that the caller has verified."""
        write_whole(self.root / place, data)
        return self.root / place
