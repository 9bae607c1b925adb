"""A server that does things wrong."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from builder.server import Handler

if TYPE_CHECKING:
    from pathlib import Path

SLICES = 8
PATIENCE = 60


class Faults:
    """What a server does wrong, by the end of a file's address."""

    def __init__(self):
        self.replaced: dict[str, Path] = {}
        self.slowed = ""
        self.allowed = threading.Semaphore(0)  # slices of the slowed file that may leave


class FaultyHandler(Handler):
    def __init__(self, *args, faults, **settings):
        self.faults = faults
        super().__init__(*args, **settings)

    def translate_path(self, path):
        found = [put for end, put in self.faults.replaced.items() if re.search(end, path)]
        return str(found[0]) if found else super().translate_path(path)

    def copyfile(self, source, outputfile):
        if not (self.faults.slowed and re.search(self.faults.slowed, self.path)):
            super().copyfile(source, outputfile)
            return
        content = source.read()
        size = -(-len(content) // SLICES)
        for start in range(0, len(content), size):
            self.faults.allowed.acquire(timeout=PATIENCE)
            outputfile.write(content[start : start + size])
