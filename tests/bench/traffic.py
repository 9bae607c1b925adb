"""Servers on this machine that count what they send, at full speed or at that of a slower network."""

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

PIECE = 16_384  # bytes that one connection sends before another one has its turn


@dataclass
class Link:
    """A network that all connections share. (What DevTools slows down leaves out the requests of workers.)"""

    bytes_per_second: float
    latency_seconds: float
    free_at: float = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def carry(self, count: int) -> None:
        """Returns when these bytes have arrived."""
        with self.lock:
            self.free_at = max(self.free_at, time.perf_counter()) + count / self.bytes_per_second
            arrival = self.free_at
        time.sleep(max(arrival - time.perf_counter(), 0))


@dataclass
class Traffic:
    """What was sent since `clear`, headers included: ms of the epoch, bytes and path of each piece."""

    sent: list[tuple[float, int, str]] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)

    def clear(self) -> None:
        """Starts counting anew."""
        self.sent.clear()
        self.answered.clear()

    def count(self, since_ms: float = 0, until_ms: float = float("inf"), but: tuple[str, ...] = ()) -> int:
        """Bytes sent between two moments, but not those of paths that begin with one of `but`."""
        return sum(
            count
            for at, count, path in list(self.sent)
            if since_ms < at <= until_ms and not path.startswith(but)
        )

    def requests(self, until_ms: float = float("inf")) -> int:
        """Requests answered up to a moment."""
        return sum(at <= until_ms for at in list(self.answered))

    def silent_seconds(self) -> float:
        """Since when nothing was sent."""
        return time.time() - self.sent[-1][0] / 1e3 if self.sent else float("inf")


class _Meter(io.BufferedIOBase):
    """A connection's output, metered."""

    def __init__(self, output: io.BufferedIOBase, handler: _CountingHandler) -> None:
        self.output, self.handler = output, handler

    def write(self, data: Any) -> int:
        view = memoryview(data)
        for at in range(0, len(view), PIECE):
            piece = view[at : at + PIECE]
            if self.handler.link:
                self.handler.link.carry(len(piece))
            self.handler.traffic.sent.append((time.time() * 1e3, len(piece), self.handler.path))
            self.output.write(piece)
        return len(view)


class _CountingHandler(Handler):
    """Counts every byte on its way out: those of pages and those of their workers."""

    path = ""

    def __init__(self, *args: Any, traffic: Traffic, link: Link | None, **options: Any) -> None:
        self.traffic, self.link = traffic, link
        super().__init__(*args, **options)

    def setup(self) -> None:
        super().setup()
        self.wfile = _Meter(self.wfile, self)

    def do_GET(self) -> None:  # noqa: N802 - the base class's name
        if self.link:
            time.sleep(self.link.latency_seconds)
        super().do_GET()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        self.traffic.answered.append(time.time() * 1e3)


@contextmanager
def served(folder: Path, link: Link | None = None) -> Iterator[tuple[str, Traffic]]:
    """The address of a site, and its traffic, while the block runs."""
    traffic = Traffic()
    handler = partial(_CountingHandler, directory=str(folder), traffic=traffic, link=link)
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", traffic
        finally:
            server.shutdown()
