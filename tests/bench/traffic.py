"""Servers on this machine that count what they send."""

from __future__ import annotations

import io
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from builder.server import Handler, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Traffic:
    """What was sent since `clear`, headers included, each piece with its time in ms of the epoch."""

    sent: list[tuple[float, int]] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)

    def clear(self) -> None:
        """Starts counting anew."""
        self.sent.clear()
        self.answered.clear()

    def until(self, epoch_ms: float) -> dict[str, float]:
        """Bytes and requests up to a moment: what a page fetches later is not part of its start."""
        return {
            "received_bytes": sum(count for at, count in list(self.sent) if at <= epoch_ms),
            "requests": sum(at <= epoch_ms for at in list(self.answered)),
        }


class _Meter(io.BufferedIOBase):
    """A connection's output, metered."""

    def __init__(self, output: io.BufferedIOBase, traffic: Traffic) -> None:
        self.output, self.traffic = output, traffic

    def write(self, data: Any) -> int:
        self.traffic.sent.append((time.time() * 1e3, len(data)))
        return self.output.write(data)


class _CountingHandler(Handler):
    """Counts every byte on its way out: those of pages and those of their workers."""

    def __init__(self, *args: Any, traffic: Traffic, **options: Any) -> None:
        self.traffic = traffic
        super().__init__(*args, **options)

    def setup(self) -> None:
        super().setup()
        self.wfile = _Meter(self.wfile, self.traffic)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        self.traffic.answered.append(time.time() * 1e3)


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, Traffic]]:
    """The address of a site, and its traffic, while the block runs."""
    traffic = Traffic()
    handler = partial(_CountingHandler, directory=str(folder), traffic=traffic)
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", traffic
        finally:
            server.shutdown()
