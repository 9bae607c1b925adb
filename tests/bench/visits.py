"""Opens pages with a cold and a warm cache and reads when they had what; the flows take turns."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from builder.chromium import ARGUMENTS
from builder.console import BuildError, say
from playwright.sync_api import Error

from tests.bench.conditions import slowed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Playwright

    from tests.bench.conditions import Condition
    from tests.bench.traffic import Traffic

LIVE_SECONDS = 300
SETTLE_MS = 1000  # a browser that has just started has work of its own
IDLE_SECONDS, MOST_IDLE_SECONDS = 1.5, 60  # what a live page fetches is over when nothing came for so long
MARKS = {"answer_ms": "kv-answer", "painted_ms": "kv-painted", "live_ms": "kv-live"}
# The first mark of each name, and the moment (milliseconds of the epoch) from which they count.
READ_MARKS = """() => [
  Object.fromEntries(performance.getEntriesByType('mark').reverse().map((it) => [it.name, it.startTime])),
  performance.timeOrigin,
]"""
# How the start ended. Nothing looks at the page meanwhile: a locator that waits takes time from it.
AWAIT_END = """(seconds) => new Promise((resolve, reject) => {
  const { dataset } = document.documentElement;
  const look = () => ['live', 'error'].includes(dataset.kvState) && resolve(dataset.kvState);
  new MutationObserver(look).observe(document.documentElement, { attributes: true });
  setTimeout(() => reject(new Error(`neither live nor an error within ${seconds} s`)), 1000 * seconds);
  look();
})"""

# A service worker that is still copying files would slow the next visit.
AWAIT_COPIES = """async (seconds) => {
  if (!(await navigator.serviceWorker.getRegistration())) return;
  const late = new Error(`the service worker has not all its files after ${seconds} s`);
  const end = new Promise((_, reject) => setTimeout(() => reject(late), 1000 * seconds));
  await Promise.race([navigator.serviceWorker.ready, end]);
}"""


@dataclass(frozen=True)
class Flow:
    """A way to start: where it is served, the rows for its first and further visits with one cache.

    Its painted charts need everything that was sent before them, but for the paths in `not_for_charts`.
    """

    address: str
    traffic: Traffic
    rows: tuple[str, ...]
    not_for_charts: tuple[str, ...] = ()


@contextmanager
def fresh_browser(playwright: Playwright) -> Iterator[BrowserContext]:
    """A browser with a new profile: its cache is on disk, for one in memory takes no file of 10 MB."""
    with tempfile.TemporaryDirectory(prefix="kv-cache-profile-", ignore_cleanup_errors=True) as profile:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=os.environ.get("KV_CHROMIUM") or None, args=ARGUMENTS
        )
        try:
            context.pages[0].wait_for_timeout(SETTLE_MS)
            yield context
        finally:
            context.close()


def measure_starts(
    playwright: Playwright, flows: Sequence[Flow], runs: int, condition: Condition
) -> dict[str, list[dict[str, float]]]:
    """Row -> the figures of one visit per run. Each run has a cold cache, and the flows take turns."""
    rows: dict[str, list[dict[str, float]]] = {row: [] for flow in flows for row in flow.rows}
    for run in range(runs):
        for flow in flows if run % 2 == 0 else reversed(flows):
            with fresh_browser(playwright) as context:
                for row in flow.rows:
                    figures = visit(context, flow, row, condition.slowdown)
                    rows[row].append(figures)
                    seconds, million = figures["live_ms"] / 1e3, figures["received_bytes"] / 1e6
                    say(
                        f"  {condition.name}, run {run + 1} of {runs}, {row}: "
                        f"live after {seconds:.2f} s, {million:.1f} MB"
                    )
    return rows


def visit(context: BrowserContext, flow: Flow, row: str, slowdown: int = 1) -> dict[str, float]:
    """Opens the page once, measures until it is live, and waits for what it fetches afterwards."""
    traffic = flow.traffic
    traffic.clear()
    with slowed(context, slowdown):
        page = open_live(context, flow, row)
        marks, origin_ms = page.evaluate(READ_MARKS)
    if missing := [mark for mark in MARKS.values() if mark not in marks]:
        raise BuildError(f"{row}: the page got live without the mark {' and '.join(missing)}")
    times = {measure: float(marks[mark]) for measure, mark in MARKS.items()}
    painted, live = origin_ms + times["painted_ms"], origin_ms + times["live_ms"]
    deadline = time.monotonic() + MOST_IDLE_SECONDS
    page.wait_for_timeout(IDLE_SECONDS * 1e3)
    while traffic.silent_seconds() < IDLE_SECONDS and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    page.evaluate(AWAIT_COPIES, MOST_IDLE_SECONDS)
    page.close()
    return times | {
        "charts_bytes": traffic.count(until_ms=painted, but=flow.not_for_charts),
        "received_bytes": traffic.count(until_ms=live),
        "later_bytes": traffic.count(since_ms=live),
        "requests": traffic.requests(until_ms=live),
    }


def open_live(context: BrowserContext, flow: Flow, row: str) -> Page:
    """The page, once Python answers in it.

    Raises:
        BuildError: it says that it failed, or says nothing for too long.
    """
    page = context.new_page()
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    page.on("console", hear)
    try:
        page.goto(flow.address, wait_until="commit", timeout=LIVE_SECONDS * 1e3)
        live = page.evaluate(AWAIT_END, LIVE_SECONDS) == "live"
        said = page.locator("#status").inner_text()
    except Error as error:
        live, said = False, error.message.splitlines()[0]
    if not live:
        raise BuildError(f"{row}: the page did not get live: {'; '.join([said, *complaints])}")
    return page
