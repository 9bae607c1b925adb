"""Wheels by name, version and SHA-256: from the cache, else through pip."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .cache import sha256
from .console import BuildError, Progress, megabytes

if TYPE_CHECKING:
    from .cache import Cache

# The same wheels whatever the host: CPython 3.14 on Linux. Their binaries are not used, except those that the
# official Pyodide release built (runtime.py).
TARGET = ["--platform", "manylinux2014_x86_64", "--python-version", "3.14", "--implementation", "cp"]


@dataclass(frozen=True)
class Requirement:
    """One wheel. `size_bytes` is only for showing progress; 0 where it is not known."""

    name: str
    version: str
    sha256: str
    size_bytes: int = 0

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


def read_lock(path: Path) -> list[Requirement]:
    """The requirements of a lock file that names exactly one hash for each package."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"([\w.-]+)==([\w.]+) --hash=sha256:([0-9a-f]{64})", line)
        if not match:
            raise BuildError(f"{path.name} has a line that is not NAME==VERSION --hash=sha256:HASH: {line!r}")
        found.append(Requirement(match[1], match[2], match[3]))
    return found


def fetch_wheels(requirements: list[Requirement], cache: Cache) -> list[Path]:
    """Paths of the verified wheels, in the order asked for.

    Raises:
        BuildError: pip is missing, cannot reach its index, or got other bytes than the hash names.
    """
    paths = {wanted: path for wanted in requirements if (path := _cached(wanted, cache))}
    missing = [wanted for wanted in requirements if wanted not in paths]
    if missing:
        paths |= _download(missing, cache)
    return [paths[wanted] for wanted in requirements]


def _cached(wanted: Requirement, cache: Cache) -> Path | None:
    folder = cache.root / "wheels" / wanted.sha256
    for path in sorted(folder.glob("*.whl")):
        if cache.read(f"wheels/{wanted.sha256}/{path.name}", wanted.sha256) is not None:
            return path
    return None


def _download(missing: list[Requirement], cache: Cache) -> dict[Requirement, Path]:
    kept = {}
    cache.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".part-", dir=cache.root) as name:
        staging = Path(name)
        lines = [f"{item} --hash=sha256:{item.sha256}\n" for item in missing]
        (staging / "requirements.txt").write_text("".join(lines), encoding="utf-8")
        _run_pip(missing, staging)
        by_digest = {sha256(path.read_bytes()): path for path in (staging / "wheels").glob("*.whl")}
        for wanted in missing:
            if wanted.sha256 not in by_digest:
                raise BuildError(f"pip brought no wheel of {wanted} with the locked hash; nothing was kept")
            path = by_digest[wanted.sha256]
            kept[wanted] = cache.root / "wheels" / wanted.sha256 / path.name
            kept[wanted].parent.mkdir(parents=True, exist_ok=True)
            path.replace(kept[wanted])
    return kept


def _run_pip(missing: list[Requirement], staging: Path) -> None:
    what = str(missing[0]) if len(missing) == 1 else f"{len(missing)} wheels"
    total = sum(item.size_bytes for item in missing)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", *TARGET]
    command += ["--only-binary=:all:", "--ignore-requires-python", "--no-cache-dir", "--retries", "2"]
    command += ["--dest", str(staging / "wheels"), "--requirement", str(staging / "requirements.txt")]
    progress = Progress(f"{what} through pip")
    # pip's own temporary files go to the staging folder: their growth is the progress.
    with (staging / "pip.log").open("w+", encoding="utf-8") as log:
        pip = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"TMPDIR": str(staging)})
        try:
            while pip.poll() is None:
                done = _bytes_below(staging)  # counts a wheel twice while pip copies it
                progress.show(
                    f"{megabytes(min(done, total))} of {megabytes(total)}" if total else megabytes(done)
                )
                time.sleep(0.05)
        finally:
            pip.kill()
            pip.wait()
        log.seek(0)
        said = log.read()
    if pip.returncode:
        raise BuildError(_why(what, said))
    progress.finish(megabytes(_bytes_below(staging / "wheels")))


def _bytes_below(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # pip moves its files while we look
                total += Path(place, name).stat().st_size
    return total


def _why(what: str, said: str) -> str:
    if "No module named pip" in said:
        return "pip is missing from the environment: delete .venv and start again"
    if "DO NOT MATCH THE HASHES" in said:
        return f"the package index offers other bytes for {what} than the locked hash: check that index"
    if "No space left on device" in said:
        return "the disk is full: free about 500 MB, or point KV_CALCULATOR_CACHE at another disk"
    errors = [line for line in said.splitlines() if line.startswith("ERROR")]
    reason = errors[-1].removeprefix("ERROR: ") if errors else "no answer"
    return (
        f"pip could not get {what} ({reason}): connect to the network or set pip up for your package index, "
        "then start again; what is already in the cache is kept"
    )
