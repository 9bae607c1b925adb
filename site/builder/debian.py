"""Programs that no package of Python brings: Debian's packages, which only its administrator gets."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 600


def install(*packages: str) -> bool:
    """Whether these packages are there now."""
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    update = ["apt-get", "update", "--quiet"]
    return succeeds(command, quiet) or (succeeds(update, quiet) and succeeds(command, quiet))


def succeeds(command: list[str], extra: Mapping[str, str]) -> bool:
    """Whether a command ends well, and in time; `extra` is added to its environment."""
    env = os.environ | extra
    try:
        done = subprocess.run(command, env=env, capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
