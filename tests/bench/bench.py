"""How long our start takes beside the stock flow of the same app, and how long a move of a slider takes.

`python3 build.py bench` builds dist/ and runs this. A slow machine never fails it; a page that does not get
live does.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "site")]

from builder.console import BuildError, one_sentence, say  # noqa: E402 - found on the path set above
from playwright.sync_api import Error, sync_playwright  # noqa: E402

from tests.bench.core import core_line, measure_core  # noqa: E402
from tests.bench.report import summary, table  # noqa: E402
from tests.bench.stock import make_site  # noqa: E402
from tests.bench.traffic import Traffic, served  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Playwright

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Whatever a page needs, it gets from its own server.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
LIVE_SECONDS = 180
SETTLE_MS = 1000  # a browser that has just started has work of its own
MARKS = {"answer_ms": "kv-answer", "painted_ms": "kv-painted", "live_ms": "kv-live"}
# The first mark of each name, and the moment (milliseconds of the epoch) from which they count.
READ_MARKS = """() => [
  Object.fromEntries(performance.getEntriesByType('mark').reverse().map((it) => [it.name, it.startTime])),
  performance.timeOrigin,
]"""

SLIDER = "[data-kv-control=num_layers] input[type=range]"
WARM_UP_MOVES, MOVES = 10, 200
NOTE_MOVES = """(slider) => slider.addEventListener('input', (event) => {
  window.benchMoved = event.timeStamp;
}, { capture: true })"""
# The page sets kv-updated in the frame that draws what Python answered.
AWAIT_UPDATE = """() => new Promise((resolve, reject) => {
  const deadline = performance.now() + 30_000;
  const look = () => {
    const mark = performance.getEntriesByName('kv-updated').at(-1);
    if (mark && window.benchMoved) {
      resolve(mark.startTime - window.benchMoved);
      performance.clearMarks('kv-updated');
      delete window.benchMoved;
    } else if (performance.now() > deadline) reject(new Error('no kv-updated within 30 s of a key press'));
    else setTimeout(look, 2);
  };
  look();
})"""


@dataclass(frozen=True)
class Flow:
    """A way to start: where it is served, and the rows for its first and further visits with one cache."""

    address: str
    traffic: Traffic
    rows: tuple[str, ...]


def measure(ours: Path, stock: Path, runs: int) -> dict[str, Any]:
    """Every measurement of the two sites."""
    with (
        one_sentence(),
        served(ours) as (our_address, our_traffic),
        served(stock) as (stock_address, stock_traffic),
        sync_playwright() as playwright,
    ):
        facts = machine(playwright)
        our_flow = Flow(our_address, our_traffic, ("ours", "ours, warm"))
        stock_flow = Flow(stock_address, stock_traffic, ("stock",))
        rows = measure_starts(playwright, [our_flow, stock_flow], runs)
        say(f"  {MOVES} moves of the layers slider")
        return summary(facts, rows, measure_slider(playwright, our_flow, MOVES))


@contextmanager
def fresh_browser(playwright: Playwright) -> Iterator[BrowserContext]:
    """A browser with a new profile: its cache is on disk, for one in memory takes no file of 10 MB."""
    with tempfile.TemporaryDirectory(prefix="kv-cache-profile-", ignore_cleanup_errors=True) as profile:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=os.environ.get("KV_CHROMIUM") or None, args=CHROMIUM_FLAGS
        )
        try:
            context.pages[0].wait_for_timeout(SETTLE_MS)
            yield context
        finally:
            context.close()


def machine(playwright: Playwright) -> dict[str, object]:
    """What the figures depend on besides us."""
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else "unknown"
    with fresh_browser(playwright) as context:
        version = context.new_cdp_session(context.pages[0]).send("Browser.getVersion")["product"]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(),
        "load_average": load,
        "platform": f"{platform.system()} {platform.machine()}",
        "browser": version,
    }


def measure_starts(
    playwright: Playwright, flows: Sequence[Flow], runs: int
) -> dict[str, list[dict[str, float]]]:
    """Row -> the figures of one visit per run. Each run has a cold cache, and the flows take turns."""
    rows: dict[str, list[dict[str, float]]] = {row: [] for flow in flows for row in flow.rows}
    for run in range(runs):
        for flow in flows if run % 2 == 0 else reversed(flows):
            with fresh_browser(playwright) as context:
                for row in flow.rows:
                    figures = visit(context, flow, row)
                    rows[row].append(figures)
                    seconds, million = figures["live_ms"] / 1e3, figures["received_bytes"] / 1e6
                    say(f"  run {run + 1} of {runs}, {row}: live after {seconds:.2f} s, {million:.1f} MB")
    return rows


def visit(context: BrowserContext, flow: Flow, row: str) -> dict[str, float]:
    """Opens the page once and measures until it is live."""
    flow.traffic.clear()
    page = open_live(context, flow, row)
    marks, origin_ms = page.evaluate(READ_MARKS)
    page.close()
    if missing := [mark for mark in MARKS.values() if mark not in marks]:
        raise BuildError(f"{row}: the page got live without the mark {' and '.join(missing)}")
    times = {measure: float(marks[mark]) for measure, mark in MARKS.items()}
    return times | flow.traffic.until(origin_ms + times["live_ms"])


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
        page.goto(flow.address, wait_until="commit")
        ended = page.locator("html[data-kv-state=live], html[data-kv-state=error]")
        ended.wait_for(state="attached", timeout=LIVE_SECONDS * 1e3)
        live = ended.get_attribute("data-kv-state") == "live"
        said = page.locator("#status").inner_text()
    except Error as error:
        live, said = False, error.message.splitlines()[0]
    if not live:
        raise BuildError(f"{row}: the page did not get live: {'; '.join([said, *complaints])}")
    return page


def measure_slider(playwright: Playwright, flow: Flow, moves: int) -> list[float]:
    """Milliseconds from a key's event on the layers slider to the drawn chart, by move, after a warm-up."""
    with fresh_browser(playwright) as context:
        page = open_live(context, flow, "slider")
        slider = page.locator(SLIDER)
        slider.evaluate(NOTE_MOVES)
        slider.focus()
        taken = []
        try:
            for move in range(WARM_UP_MOVES + moves):
                page.keyboard.press("ArrowLeft" if move // 20 % 2 == 0 else "ArrowRight")
                taken.append(float(page.evaluate(AWAIT_UPDATE)))
        except Error as error:
            raise BuildError(f"slider: move {len(taken) + 1}: {error.message.splitlines()[0]}") from error
        return taken[WARM_UP_MOVES:]


def main() -> int:
    """Measures, prints, and writes JSON if asked."""
    parser = argparse.ArgumentParser(prog="build.py bench")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.runs < 1:
        parser.error(f"--runs {args.runs} measures nothing: name 1 or more")
    try:
        with tempfile.TemporaryDirectory(prefix="kv-cache-bench-") as folder:
            say("The same app as a stock site")
            make_site(Path(folder))
            result = measure(ROOT / "dist", Path(folder), args.runs)
        result["core_ms"] = measure_core()
        say(table(result))
        say(core_line(result["core_ms"]))
        if args.json:
            with one_sentence():
                args.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
            say(f"All figures: {args.json}")
    except BuildError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
