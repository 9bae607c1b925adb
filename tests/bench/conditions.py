"""The surroundings in which the starts are measured: this machine, a slower network, a slower processor."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.bench.traffic import Link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import BrowserContext

TURN_SECONDS = 0.01  # how long a slowed browser runs at a time


@dataclass(frozen=True, kw_only=True)
class Condition:
    """`most_runs` keeps the slow ones short; `slowdown` is how many times longer everything takes."""

    name: str
    how: str
    most_runs: int = 1000
    bits_per_second: int | None = None
    latency_seconds: float = 0
    slowdown: int = 1

    def link(self) -> Link | None:
        """A network of this condition, idle."""
        return Link(self.bits_per_second / 8, self.latency_seconds) if self.bits_per_second else None


CONDITIONS = [
    Condition(name="loopback", how="this machine as it is"),
    Condition(
        name="20 Mbit/s, 40 ms",
        how="all connections together get 20 Mbit/s, and each answer begins 40 ms late",
        most_runs=3,
        bits_per_second=20_000_000,
        latency_seconds=0.04,
    ),
]
if hasattr(os, "killpg"):  # Windows has no way to let processes stand still
    CONDITIONS.append(
        Condition(
            name="CPU 4× slower",
            how="the whole browser, workers too, stands still three quarters of the time",
            most_runs=3,
            slowdown=4,
        )
    )


@contextmanager
def slowed(context: BrowserContext, times: int) -> Iterator[None]:
    """While the block runs, the whole browser does.

    DevTools slows only the main thread of a page ("not supported for workers"), and Python is in a worker.
    """
    if times == 1:
        yield
        return
    browser = context.browser
    assert browser
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    (main,) = [process["id"] for process in processes if process["type"] == "browser"]
    with rationed(os.getpgid(main), times):
        yield


@contextmanager
def rationed(group: int, times: int) -> Iterator[None]:
    """While the block runs, every process of the group stands still for all but one in `times` moments."""
    assert group != os.getpgrp(), "this process would stop itself"
    ended = threading.Event()

    def ration() -> None:
        with suppress(ProcessLookupError):  # they have all ended
            while not ended.is_set():
                begin = time.perf_counter()
                time.sleep(TURN_SECONDS)
                os.killpg(group, signal.SIGSTOP)
                try:
                    time.sleep((time.perf_counter() - begin) * (times - 1))
                finally:
                    os.killpg(group, signal.SIGCONT)

    thread = threading.Thread(target=ration)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
