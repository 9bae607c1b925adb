"""The Node.js step, with an app small enough to see through."""

from __future__ import annotations

from pathlib import Path

import pytest
from builder import archive, products
from builder.cache import Cache
from builder.console import BuildError
from builder.layout import ROOT
from builder.runtime import fetch_runtime, read_pins

CALCULATOR = {
    "calculator/__init__.py": b"",
    "calculator/app/__init__.py": b"",
    "calculator/app/rehearsal.py": b"def rehearse():\n    import used\n",
}
PACKAGES = {
    "used.py": b'"""Said once."""\nimport json\n',
    "spare.py": b"",
    "data/table.json": b"{}",
}


@pytest.fixture(scope="module")
def runtime() -> dict[str, bytes]:
    pins = read_pins(ROOT / "site/runtime.json")
    files = fetch_runtime(pins, Cache.of_user())
    return files | {
        "pyodide-lock.json": b'{"info": %s, "packages": {}}' % repr(pins.lock_info).replace("'", '"').encode()
    }


def test_keeps_what_is_imported_as_bytecode_and_remembers_it(
    runtime: dict[str, bytes], fresh_cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = products.compiled(PACKAGES, CALCULATOR, runtime, fresh_cache)
    packages = archive.unpack(made.packages)
    assert set(packages) == {
        "calculator/__init__.pyc",
        "calculator/app/__init__.pyc",
        "calculator/app/rehearsal.pyc",
        "used.pyc",
        "data/table.json",
    }
    assert b"Said once" not in packages["used.pyc"]
    # Flags of the header: by hash, never checked.
    assert packages["used.pyc"][4:8] == b"\x01\x00\x00\x00"
    stdlib = archive.unpack(made.stdlib)
    assert "json/decoder.pyc" in stdlib
    assert "sqlite3/__init__.pyc" not in stdlib
    assert not [name for name in stdlib if name.endswith(".py")]

    monkeypatch.setattr(products, "node", lambda: Path("/bin/false"))
    assert products.compiled(PACKAGES, CALCULATOR, runtime, fresh_cache) == made
    newest = max((fresh_cache.root / "products").rglob("code.zip"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(b"damaged")
    with pytest.raises(BuildError):
        products.compiled(PACKAGES, CALCULATOR, runtime, fresh_cache)


def test_an_app_that_does_not_run_is_named(runtime: dict[str, bytes], fresh_cache: Cache) -> None:
    broken = PACKAGES | {"used.py": b"import no_such_module"}
    with pytest.raises(BuildError, match=r"does not run under Pyodide .*No module named 'no_such_module'"):
        products.compiled(broken, CALCULATOR, runtime, fresh_cache)


def test_a_module_that_only_the_trimmed_site_wants_is_named(
    runtime: dict[str, bytes], fresh_cache: Cache
) -> None:
    sly = b"def rehearse():\n    if __file__.endswith('.pyc'):\n        import spare\n"
    calculator = CALCULATOR | {"calculator/app/rehearsal.py": sly}
    with pytest.raises(BuildError, match=r"trimmed site does not run .*No module named 'spare'"):
        products.compiled(PACKAGES, calculator, runtime, fresh_cache)
