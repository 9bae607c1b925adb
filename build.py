"""The one command: `python3 build.py serve | build | test | bench | fuzz`. Needs only Python 3.11.

It makes its own environment in .venv from site/locks/host.lock, starts itself again in there, and keeps what
it downloads or compiles in a cache outside the repository: $KV_CALCULATOR_CACHE, else in the user's caches.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

if sys.version_info < (3, 11):  # noqa: UP036 - the one file that an older Python may be given
    sys.exit(f"build.py: this is Python {sys.version.split()[0]}: start it with Python 3.11 or newer")

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT / "site")]

from builder.chromium import find_chromium  # noqa: E402 - found on the path set above
from builder.console import BuildError, say  # noqa: E402
from builder.environment import ensure_environment  # noqa: E402
from builder.layout import build  # noqa: E402
from builder.other_browsers import find_others  # noqa: E402
from builder.server import Server, make_server  # noqa: E402

DEFAULT_PORT = 8000
CHECKS = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "mypy": ["mypy"],
}


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line as a namespace; `arguments` is what `test` hands to pytest."""
    parser = argparse.ArgumentParser(prog="build.py", description="Builds, serves, tests the calculator.")
    commands = parser.add_subparsers(dest="command", required=True)
    plain = argparse.ArgumentParser(add_help=False)
    plain.add_argument("--plain", action="store_true", help="no bytecode, no trimming: for quick work")
    plain.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the site goes (dist/)")
    serve = commands.add_parser("serve", parents=[plain], help="build the site and serve it on this machine")
    serve.add_argument("--port", type=int, help=f"default: {DEFAULT_PORT}, or a free one if that is taken")
    commands.add_parser("build", parents=[plain], help="build the site into dist/")
    test = commands.add_parser("test", help="build, lint, type-check and test; further words go to pytest")
    test.add_argument("--all-browsers", action="store_true", help="also start the page in Firefox and WebKit")
    bench = commands.add_parser("bench", help="measure the start beside the plain start and the stock flow")
    bench.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    bench.add_argument("--readme", action="store_true", help="also write the tables into README.md")
    bench.add_argument(
        "--runs", type=int, default=7, help="runs of each flow (default: 7; slow ones: 3 at most)"
    )
    fuzz = commands.add_parser("fuzz", help="read changed model configurations: a plan or a refusal, always")
    fuzz.add_argument("--count", type=int, default=100_000, help="how many (default: 100000)")
    args, rest = parser.parse_known_args(argv)
    if rest and args.command != "test":
        parser.error(f"unknown words: {' '.join(rest)}")
    args.arguments = rest
    return args


def serve(args: argparse.Namespace) -> int:
    """Builds and serves until Ctrl-C."""
    server = _listen(args.dist, args.port)
    try:
        build(args.dist, plain=args.plain)
        say(f"Serving http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)")
        server.serve_forever()
    finally:
        server.server_close()
    return 0


def _listen(directory: Path, port: int | None) -> Server:
    if port is not None and not 0 <= port <= 65535:
        raise BuildError(f"--port {port} is not a port: name one from 1 to 65535, or 0 for a free one")
    try:
        return make_server(directory, DEFAULT_PORT if port is None else port)
    except PermissionError as error:
        raise BuildError(f"this user may not listen on port {port}: name one above 1023") from error
    except OSError as error:
        if port is not None:
            raise BuildError(f"port {port} is taken: name another, or leave --port out") from error
    say(f"Port {DEFAULT_PORT} is taken: using a free one")
    return make_server(directory)


def build_site(args: argparse.Namespace) -> int:
    """Builds."""
    build(args.dist, plain=args.plain)
    return 0


def test(args: argparse.Namespace) -> int:
    """Builds, runs every check, then pytest, whose summary is the last thing printed."""
    browsers = (find_others() if args.all_browsers else {}) | _prepare()
    failed = []
    for name, command in CHECKS.items():
        say(f"== {name}")
        if subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode:
            failed.append(name)
    say(f"== pytest (before it: {', '.join(failed) + ' FAILED' if failed else 'all checks passed'})")
    # Coverage is a law of the whole suite, not of a selection. The tests of one file share a page. In their
    # own order the slow files, of the browser, come early: sorted by size they would come last, and alone.
    whole = ["--cov", "--numprocesses=auto", "--dist=loadfile", "--no-loadscope-reorder"]
    command = [sys.executable, "-m", "pytest", *(args.arguments or whole)]
    # By its name pytest would not take this file for one of tests.
    command += ["--override-ini=python_files=test_*.py all_browsers.py"] if args.all_browsers else []
    tests = subprocess.run(command, cwd=ROOT, env=os.environ | browsers, check=False).returncode
    return tests or bool(failed)


def bench(args: argparse.Namespace) -> int:
    """Measures the built site, and that two thousand moves leave nothing behind: too long for `test`."""
    browser = _prepare()
    command = [sys.executable, str(ROOT / "tests/bench/bench.py"), "--runs", str(args.runs)]
    command += ["--json", str(args.json.absolute())] if args.json else []
    command += ["--readme"] if args.readme else []
    steady = [sys.executable, "-m", "pytest", "-q", "-s", "tests/browser/memory.py"]
    codes = [
        subprocess.run(one, cwd=ROOT, env=os.environ | browser, check=False).returncode
        for one in (command, steady)
    ]
    return max(codes)


def fuzz(args: argparse.Namespace) -> int:
    """Reads changed configurations and reports what became of them."""
    command = [sys.executable, str(ROOT / "tests/fuzz.py"), "--count", str(args.count)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def _prepare() -> dict[str, str]:
    """What tests and bench need: the built site, and the environment variable that names the browser."""
    browser = find_chromium(ROOT / ".venv")
    build(ROOT / "dist")
    return {"KV_CHROMIUM": browser}


COMMANDS = {"serve": serve, "build": build_site, "test": test, "bench": bench, "fuzz": fuzz}


def run(argv: list[str]) -> int:
    """Runs one command, inside the environment; every expected failure is one sentence on stderr."""
    args = parse(argv)
    try:
        if not _is_inside():
            _start_inside(ensure_environment(ROOT), argv)
        return COMMANDS[args.command](args)
    except BuildError as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _is_inside() -> bool:
    in_venv = Path(sys.prefix).resolve() == (ROOT / ".venv").resolve()
    return in_venv and os.environ.get("PYTHONHASHSEED") == "0"


def _start_inside(python: Path, argv: list[str]) -> NoReturn:
    """Becomes this command in the environment, with one order for all sets: two builds must be alike."""
    fixed = {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
    sys.stdout.flush()
    os.execve(python, [str(python), str(ROOT / "build.py"), *argv], os.environ | fixed)  # noqa: S606 - ourselves


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
