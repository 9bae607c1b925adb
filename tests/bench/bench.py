"""How long our start takes beside two others of the same app, and how long a move of a slider takes.

The others are the stock flow, and our own page when only its plain way to start is offered. `python3 build.py
bench` builds dist/ and runs this. A slow machine never fails it; a page that does not get live does.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "site")]

from builder.console import BuildError, one_sentence, say  # noqa: E402 - found on the path set above
from playwright.sync_api import sync_playwright  # noqa: E402

from tests.bench.conditions import CONDITIONS  # noqa: E402
from tests.bench.core import core_line, measure_core  # noqa: E402
from tests.bench.plain import for_python, make_plain  # noqa: E402
from tests.bench.report import marked_down, moves, report, starts  # noqa: E402
from tests.bench.slider import MOVES, measure_slider  # noqa: E402
from tests.bench.stock import make_site  # noqa: E402
from tests.bench.traffic import served  # noqa: E402
from tests.bench.visits import Flow, fresh_browser, measure_starts  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Playwright

README = re.compile(
    r"(?<=<!-- written by: python3 build\.py bench --readme -->\n).*?(?=<!-- end -->)", re.DOTALL
)


def measure(ours: Path, plain: Path, stock: Path, runs: int) -> dict[str, Any]:
    """Every measurement of the three sites."""
    result: dict[str, Any] = {"schema": 2, "conditions": {}}
    with one_sentence(), sync_playwright() as playwright:
        result["machine"] = machine(playwright)
        for condition in CONDITIONS:
            with ExitStack() as servers:
                at = {
                    site: servers.enter_context(served(site, condition.link()))
                    for site in (ours, plain, stock)
                }
                flows = [
                    Flow(*at[ours], ("ours", "ours, warm"), not_for_charts=for_python(ours)),
                    Flow(*at[plain], ("plain",)),
                    Flow(*at[stock], ("stock",)),
                ]
                rows = measure_starts(playwright, flows, min(runs, condition.most_runs), condition)
            result["conditions"][condition.name] = {"how": condition.how, **starts(rows)}
        say(f"  {MOVES} moves of the layers slider")
        with served(ours) as (address, traffic):
            result |= moves(measure_slider(playwright, Flow(address, traffic, ("slider",))))
    return result


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


def write_readme(path: Path, text: str) -> None:
    """Puts the tables where the README has those of an earlier run."""
    readme = path.read_text(encoding="utf-8")
    if not README.search(readme):
        raise BuildError(f"{path.name} has no place that says `written by: python3 build.py bench --readme`")
    path.write_text(README.sub(lambda _: f"{text}\n", readme), encoding="utf-8")


def main() -> int:
    """Measures, prints, and writes JSON and the README's tables if asked."""
    parser = argparse.ArgumentParser(prog="build.py bench")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--readme", action="store_true")
    args = parser.parse_args()
    if args.runs < 1:
        parser.error(f"--runs {args.runs} measures nothing: name 1 or more")
    try:
        with tempfile.TemporaryDirectory(prefix="kv-cache-bench-") as folder:
            plain, stock = Path(folder, "plain"), Path(folder, "stock")
            say("The same app with only its plain start, and as a stock site")
            make_plain(ROOT / "dist", plain)
            make_site(stock)
            result = measure(ROOT / "dist", plain, stock, args.runs)
        result["core_ms"] = measure_core()
        say(report(result))
        say(core_line(result["core_ms"]))
        with one_sentence():
            if args.json:
                args.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
                say(f"All figures: {args.json}")
            if args.readme:
                write_readme(ROOT / "README.md", report(result, marked_down))
    except BuildError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
