"""Zip archives whose bytes depend on nothing but names and contents. Also runs inside Pyodide."""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# The earliest time that a zip can state.
FIXED_TIME = (1980, 1, 1, 0, 0, 0)


def pack(files: Mapping[str, bytes], level: int = 9) -> bytes:
    """The zip of these files: sorted, one fixed time, no attributes of the machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, FIXED_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[name], compresslevel=level)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of a zip; folders are implied by the names."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}


def tree_digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over the names and contents of a folder's files."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()
