"""The project's own Python environment in .venv, made from site/locks/host.lock."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from .console import BuildError, Progress, one_sentence, say

if TYPE_CHECKING:
    from pathlib import Path


def ensure_environment(root: Path) -> Path:
    """The Python of .venv, which is made again when the lock file or the Python version has changed.

    Raises:
        BuildError: venv or pip is missing, or pip cannot install what the lock file names.
    """
    venv, lock = root / ".venv", root / "site/locks/host.lock"
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    with one_sentence():
        state = f"{platform.python_version()} {hashlib.sha256(lock.read_bytes()).hexdigest()}\n"
        marker = venv / "kv-environment"
        if python.exists() and marker.is_file() and marker.read_text(encoding="utf-8") == state:
            return python
        say(f"Environment into {venv}")
        if venv.exists():
            shutil.rmtree(venv)
        _run(
            # Not the Python of the .venv that was just deleted, if it is that one which runs this.
            [getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(venv)],
            "making the environment",
            "Python's venv module does not work here: install it (on Debian: apt-get install python3-venv)",
        )
        install = ["-m", "pip", "install", "--no-compile", "--progress-bar", "off", "--retries", "2"]
        install += ["--disable-pip-version-check", "--require-hashes"]
        _run(
            [str(python), *install, "--requirement", str(lock)],
            "packages from site/locks/host.lock",
            "pip could not install site/locks/host.lock: connect to the network, or set up pip",
        )
        marker.write_text(state, encoding="utf-8")
    return python


def _run(command: list[str], label: str, advice: str) -> None:
    progress = Progress(label)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            progress.show(line.strip()[:50])
    if process.returncode:
        errors = [line for line in lines if line.startswith("ERROR")] or lines or ["no output"]
        raise BuildError(f"{advice} ({errors[-1].removeprefix('ERROR: ')})")
    progress.finish("done")
