"""What a build says: plain lines, progress of long work, and the error that ends it in one sentence."""

from __future__ import annotations

import errno
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class BuildError(Exception):
    """Something outside the code went wrong; the message is one sentence that says what, and what to do."""


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turns the operating system's refusals into `BuildError`, so that no user meets a traceback for them."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BuildError(
                f"the disk is full{where}: free about 500 MB, or point KV_CALCULATOR_CACHE at another disk"
            ) from error
        raise BuildError(f"{error.strerror or error}{where}: the build cannot go on without it") from error


def say(text: str) -> None:
    """Prints one line at once."""
    print(text, flush=True)


def megabytes(count: int) -> str:
    """`1234567` -> `1.2 MB` (decimal, as download sizes are given)."""
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} kB"


class Progress:
    """One line for one long step: rewritten in place on a terminal, printed once at the end elsewhere."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._started = time.monotonic()
        self._shown = 0.0
        self.show("...")

    def show(self, done: str) -> None:
        """Shows how far the step is, ten times a second at most."""
        now = time.monotonic()
        if sys.stdout.isatty() and now - self._shown > 0.1:
            self._shown = now
            print(f"\r\x1b[K  {self.label}: {done}, {now - self._started:.1f} s", end="", flush=True)

    def finish(self, done: str) -> None:
        """Prints the step's last line."""
        clear = "\r\x1b[K" if sys.stdout.isatty() else ""
        say(f"{clear}  {self.label}: {done}, {time.monotonic() - self._started:.1f} s")


def table(rows: list[tuple[str, int, int]]) -> str:
    """Rows of (name, raw bytes, gzip bytes) and their sum, as aligned text."""
    rows = [*rows, ("total", sum(row[1] for row in rows), sum(row[2] for row in rows))]
    width = max(len(row[0]) for row in rows)
    lines = [f"  {'':{width}}  {'raw bytes':>12}  {'gzip bytes':>12}"]
    lines += [f"  {name:{width}}  {raw:>12,}  {packed:>12,}" for name, raw, packed in rows]
    return "\n".join(lines)
