"""The parts of the bench that need no browser; the bench itself is run by `python3 build.py bench`."""

import io
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from email.parser import Parser
from pathlib import Path

import pytest
from builder import sources
from builder.console import BuildError

from tests.bench.bench import README, write_readme
from tests.bench.budgets import BUDGETS, verdicts
from tests.bench.conditions import rationed
from tests.bench.core import core_line, measure_core
from tests.bench.plain import for_python, make_plain
from tests.bench.report import MEASURES, marked_down, moves, percentile, report, starts
from tests.bench.stock import ROOT, browser_wheel, import_names, lock_file, make_wheel
from tests.bench.traffic import Link, served


@pytest.mark.parametrize(
    ("percent", "expected"),
    [(0, 1), (50, 2), (51, 3), (75, 3), (95, 4), (100, 4)],
)
def test_a_percentile_is_one_of_the_values(percent, expected):
    assert percentile([4, 1, 3, 2], percent) == expected


def visits(*live_ms):
    return [dict.fromkeys(MEASURES, 1000.0) | {"live_ms": ms, "received_bytes": 5e6} for ms in live_ms]


ROWS = {
    "ours": visits(1000.0, 3000.0, 1500.0),
    "ours, warm": visits(900.0, 800.0, 850.0),
    "plain": visits(3000.0, 3000.0, 3000.0),
    "stock": visits(6000.0, 5000.0, 9000.0),
}
RESULT = {
    "machine": {
        "date": "today",
        "cores": 2,
        "load_average": 0.5,
        "platform": "Linux",
        "browser": "Chrome/1",
    },
    "conditions": {"loopback": {"how": "as it is", **starts(ROWS)}},
    **moves([10.0] * 189 + [30.0] * 10 + [70.0]),
}


def test_medians_and_ratios_stand_beside_all_raw_figures():
    loopback = RESULT["conditions"]["loopback"]
    assert loopback["medians"]["ours"]["live_ms"] == 1500
    alike = {"answer_ms": 1, "painted_ms": 1}
    assert loopback["ratios"] == {
        "plain / ours": {**alike, "live_ms": 2},
        "stock / ours": {**alike, "live_ms": 4},
    }
    assert RESULT["slider_ms"] == {"p50": 10, "p95": 30, "max": 70}
    assert [visit["live_ms"] for visit in loopback["visits"]["stock"]] == [6000, 5000, 9000]
    assert json.loads(json.dumps(RESULT)) == RESULT


def test_each_budget_says_by_how_much_it_is_met_or_missed():
    rows = {label: rest for label, *rest in verdicts(RESULT["conditions"]["loopback"], RESULT["slider_ms"])}
    assert rows["Python live, first visit"] == ["≤ 1.3 s", "1.50 s", "MISSED by 0.20 s"]
    assert rows["sent until live, first visit"] == ["≤ 14 MB", "5.00 MB", "met, spare 9.00 MB"]
    assert rows["live faster than the stock flow"] == ["≥ 6 ×", "4.00 ×", "MISSED by 2.00 ×"]
    assert rows["move of a slider to drawn chart, p95"] == ["≤ 50 ms", "30.00 ms", "met, spare 20.00 ms"]


def test_the_report_is_aligned_and_in_readable_units():
    machine, budgets, title, table, slider = report(RESULT).split("\n\n")
    assert machine.startswith("today, 2 cores (load 0.5), Linux, Chrome/1;")
    assert len(budgets.splitlines()) == 1 + len(BUDGETS)
    assert title == "Loopback (as it is), 3 × each flow, in turns:"
    head, *rows = table.splitlines()
    assert len(rows) == len(MEASURES)
    assert {len(row) for row in rows} == {len(head)}
    assert re.split("  +", rows[2])[:3] == ["Python live, s", "1.50 (1.00–3.00)", "0.85 (0.80–0.90)"]
    assert re.split("  +", rows[2])[-2:] == ["2.00", "4.00"]
    assert slider == "layers slider to drawn chart, ms: p50 10.0, p95 30.0, max 70.0 (200 moves)"


def test_the_readme_gets_the_tables_and_keeps_the_rest(tmp_path):
    assert len(README.findall((ROOT / "README.md").read_text(encoding="utf-8"))) == 1
    readme = tmp_path / "README.md"
    readme.write_text("# A\n<!-- written by: python3 build.py bench --readme -->\nold\n<!-- end -->\nB\n")
    write_readme(readme, report(RESULT, marked_down))
    lines = readme.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# A"
    assert lines[-2:] == ["<!-- end -->", "B"]
    assert "| answer readable, first visit | ≤ 0.3 s | 1.00 s | MISSED by 0.70 s |" in lines
    assert "old" not in lines


def test_the_server_counts_every_byte_up_to_a_moment(tmp_path):
    (tmp_path / "file.bin").write_bytes(bytes(100_000))
    (tmp_path / "other.bin").write_bytes(bytes(1_000))
    with served(tmp_path) as (address, traffic):
        with urllib.request.urlopen(f"{address}file.bin") as answer:
            headers = len(str(answer.headers))
            assert len(answer.read()) == 100_000
        between = time.time() * 1e3
        assert traffic.requests() == 1
        assert 100_000 + headers < traffic.count() < 100_000 + headers + 100
        assert traffic.count(until_ms=0) == traffic.requests(until_ms=0) == 0
        with urllib.request.urlopen(f"{address}other.bin") as answer:
            answer.read()
        assert 1_000 < traffic.count(since_ms=between) < 1_000 + headers + 100
        assert traffic.count(but=("/other", "/none")) == traffic.count(until_ms=between)
        assert 0 <= traffic.silent_seconds() < 5
        traffic.clear()
        assert traffic.count() == traffic.requests() == 0
        assert traffic.silent_seconds() == float("inf")


def test_connections_share_the_speed_of_a_link(tmp_path):
    (tmp_path / "file.bin").write_bytes(bytes(50_000))
    with served(tmp_path, Link(bytes_per_second=500_000, latency_seconds=0.1)) as (address, _):

        def fetch(_):
            with urllib.request.urlopen(f"{address}file.bin") as answer:
                return answer.headers, answer.read()

        begin = time.perf_counter()
        with ThreadPoolExecutor() as pool:
            bodies = [len(body) for _, body in pool.map(fetch, range(4))]
        taken = time.perf_counter() - begin
    assert bodies == [50_000] * 4
    # 200 kB at 500 kB/s after 0.1 s, on a machine that may be busy.
    assert 0.5 < taken < 2.5


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="Windows has no process groups to hold")
def test_a_rationed_process_takes_as_many_times_longer():
    work = "import time; input(); t = time.process_time()\nwhile time.process_time() - t < 0.3: pass\nprint()"
    command = [sys.executable, "-c", work]

    def seconds(times):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        with process, rationed(process.pid, times):
            begin = time.perf_counter()
            process.communicate(b"\n")
            return time.perf_counter() - begin

    assert seconds(4) > 0.3 * 4 * 0.9


def test_the_plain_site_is_ours_without_the_snapshot(tmp_path):
    ours, plain = tmp_path / "ours", tmp_path / "plain"
    ours.mkdir()
    part = {"bytes": 1, "sha256": "0"}
    data = {
        "texts": {"en": "a < b"},
        "wasm": {"url": "runtime-1/core.wasm", **part},
        "resume": {"parts": [{"url": "snapshot-1.zst", **part}]},
        "runtime": "./runtime-1/",
        "documents": {"en-light": "charts-1.json"},
    }
    script = f'<script type="application/json" id="site">{json.dumps(data)}</script>'
    (ours / "index.html").write_text(f"<html>{script}<p>1</p></html>")
    make_plain(ours, plain)
    page = (plain / "index.html").read_text()
    left = {name: value for name, value in data.items() if name not in ("resume", "documents")}
    (written,) = re.findall(r'id="site">(.*)</script><p>1</p>', page)
    assert json.loads(written) == left
    assert "<" not in written
    # The charts' own file is not Python's.
    assert sorted(for_python(ours)) == ["/runtime-1/", "/runtime-1/core.wasm", "/snapshot-1.zst"]
    with pytest.raises(BuildError, match="no resume and no documents"):
        make_plain(plain, tmp_path / "again")


def test_a_made_wheel_installs(tmp_path, monkeypatch):
    name, data = make_wheel("calculator", "0", sources.calculator_files(ROOT))
    assert name == "calculator-0-py3-none-any.whl"
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        members = wheel.namelist()
        metadata = Parser().parsestr(wheel.read("calculator-0.dist-info/METADATA").decode())
        record = wheel.read("calculator-0.dist-info/RECORD").decode()
        wheel.extractall(tmp_path)
    assert metadata["Name"] == "calculator"
    # RECORD names every file once, with its size.
    rows = [line.split(",") for line in record.splitlines()]
    assert sorted(row[0] for row in rows) == sorted(members)
    sizes = {row[0]: int(row[2]) for row in rows if row[2]}
    assert sizes == {path: (tmp_path / path).stat().st_size for path in sizes}
    assert "calculator/app/browser.py" in sizes
    assert make_wheel("calculator", "0", sources.calculator_files(ROOT)) == (name, data)


def binary_wheel(folder: Path) -> Path:
    path = folder / "Mark_Up-3.0-cp314-cp314-manylinux2014_x86_64.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("mark_up/__init__.py", "")
        wheel.writestr("mark_up/_fast.cpython-314-x86_64-linux-gnu.so", "ELF")
        wheel.writestr("Mark_Up-3.0.dist-info/METADATA", "Name: Mark-Up\nVersion: 3.0\n")
        wheel.writestr("Mark_Up-3.0.dist-info/WHEEL", "Root-Is-Purelib: false\n")
    return path


def test_a_wheel_of_linux_loses_its_binaries_and_a_pure_one_stays_as_it_is(tmp_path):
    name, data = browser_wheel(binary_wheel(tmp_path))
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        assert wheel.namelist() == [
            "Mark_Up-3.0.dist-info/METADATA",
            "Mark_Up-3.0.dist-info/RECORD",
            "Mark_Up-3.0.dist-info/WHEEL",
            "mark_up/__init__.py",
        ]
        assert wheel.read("Mark_Up-3.0.dist-info/METADATA") == b"Name: Mark-Up\nVersion: 3.0\n"
        assert b"Tag: py3-none-any" in wheel.read("Mark_Up-3.0.dist-info/WHEEL")
    pure = tmp_path / name
    pure.write_bytes(data)
    assert browser_wheel(pure) == (name, data)


def test_the_lock_file_names_each_wheel_with_its_hash(tmp_path):
    name, data = browser_wheel(binary_wheel(tmp_path))
    lock = lock_file({"python": "3.14.0"}, {name: data, "micropip-1.0-py3-none-any.whl": data})
    assert lock["info"] == {"python": "3.14.0"}
    assert list(lock["packages"]) == ["mark-up", "micropip"]
    entry = lock["packages"]["mark-up"]
    assert (entry["version"], entry["file_name"], entry["imports"]) == ("3.0", name, ["mark_up"])
    assert len(entry["sha256"]) == 64
    assert lock["packages"]["micropip"]["depends"] == ["packaging"]
    assert import_names(data) == ["mark_up"]


def test_the_core_is_measured_with_few_and_many_layers():
    taken = measure_core()
    assert taken.keys() == {"logical", "vllm", "sglang"}
    for by_layers in taken.values():
        assert by_layers.keys() == {"61", "610"}
        assert all(milliseconds > 0 for milliseconds in by_layers.values())
    assert "sglang 61 layers" in core_line(taken)
