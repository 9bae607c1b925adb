"""The parts of the bench that need no browser; the bench itself is run by `python3 build.py bench`."""

import io
import json
import urllib.request
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from builder import sources

from tests.bench.core import core_line, measure_core
from tests.bench.report import MEASURES, percentile, summary, table
from tests.bench.stock import ROOT, browser_wheel, import_names, lock_file, make_wheel
from tests.bench.traffic import served


@pytest.mark.parametrize(
    ("percent", "expected"),
    [(0, 1), (50, 2), (51, 3), (75, 3), (95, 4), (100, 4)],
)
def test_a_percentile_is_one_of_the_values(percent, expected):
    assert percentile([4, 1, 3, 2], percent) == expected


def visits(*live_ms):
    return [dict.fromkeys(MEASURES, 1000.0) | {"live_ms": ms, "received_bytes": 5e6} for ms in live_ms]


RESULT = summary(
    {"date": "today", "cores": 2, "load_average": 0.5, "platform": "Linux", "browser": "Chrome/1"},
    {"ours": visits(1000.0, 3000.0, 1500.0), "stock": visits(6000.0, 5000.0, 9000.0)},
    [10.0] * 189 + [30.0] * 10 + [70.0],
)


def test_the_summary_has_medians_and_ratios_beside_all_raw_figures():
    assert RESULT["medians"]["ours"]["live_ms"] == 1500
    assert RESULT["ratios"] == {"stock / ours": dict.fromkeys(MEASURES, 1) | {"live_ms": 4}}
    assert RESULT["slider_ms"] == {"p50": 10, "p95": 30, "max": 70}
    assert [visit["live_ms"] for visit in RESULT["visits"]["stock"]] == [6000, 5000, 9000]
    assert json.loads(json.dumps(RESULT)) == RESULT


def test_the_table_is_aligned_and_in_readable_units():
    lines = table(RESULT).splitlines()
    assert lines[0] == "today, 2 cores (load 0.5), Linux, Chrome/1"
    assert lines[1].startswith("3 visits each")
    head, *rows, moves = lines[2:]
    assert len(rows) == len(MEASURES)
    assert {len(row) for row in rows} == {len(head)}
    assert rows[2].split("  ")[0] == "Python live, s"
    assert rows[2].endswith("  1.50 (1.00–3.00)  6.00 (5.00–9.00)          4.00")
    assert moves == "layers slider to drawn chart, ms: p50 10.0, p95 30.0, max 70.0 (200 moves)"


def test_the_server_counts_every_byte_up_to_a_moment(tmp_path):
    (tmp_path / "file.bin").write_bytes(bytes(100_000))
    with served(tmp_path) as (address, traffic):
        with urllib.request.urlopen(f"{address}file.bin") as answer:
            headers = len(str(answer.headers))
            assert len(answer.read()) == 100_000
        counted = traffic.until(float("inf"))
        assert counted["requests"] == 1
        assert 100_000 + headers < counted["received_bytes"] < 100_000 + headers + 100
        assert traffic.until(0) == {"received_bytes": 0, "requests": 0}
        traffic.clear()
        assert traffic.until(float("inf")) == {"received_bytes": 0, "requests": 0}


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
