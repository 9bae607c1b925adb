"""The page in Firefox and in WebKit: it gets live by whatever way, and answers a control.

Only `python3 build.py test --all-browsers` collects this file; it says where the programs are.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.keys import Keys

from .other_engines import Engine, firefox, webkit

if TYPE_CHECKING:
    from collections.abc import Iterator

# Selenium calls itself in a way that it advises against.
pytestmark = pytest.mark.filterwarnings("ignore:setting remote_server_addr:DeprecationWarning")
LIVE_SECONDS = 300  # both ways to start, one after the other
STATE = "document.documentElement.dataset.kvState"
PER_TOKEN = "kvCalculator.result().then(({ per_rank }) => per_rank.bytes_per_token)"
SHOWN = """Number(document.querySelector('[data-kv-value="per_rank.bytes_per_token"]').value)"""


@pytest.fixture(scope="module", params=["Firefox", "WebKit"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "Firefox":
        opened = firefox(os.environ["KV_FIREFOX"])
    else:
        opened = webkit(os.environ["KV_WEBKIT_DRIVER"], os.environ["KV_SCREEN"])
    with opened as engine:
        yield engine


def test_it_gets_live_and_answers_a_control(engine: Engine, site: str) -> None:
    name = type(engine).__name__
    begin = time.monotonic()
    engine.open(f"{site}?v=1&m=deepseek-v3&lang=en")
    states = []
    while not states or states[-1] not in ("live", "error"):
        assert time.monotonic() - begin < LIVE_SECONDS, f"{name}: {states}"
        if (state := engine.evaluate(STATE)) not in states[-1:]:
            states.append(state)
        time.sleep(0.05)
    assert states[-1] == "live", engine.evaluate("document.getElementById('status').textContent")
    way = "its plain start" if "fallback" in states else "resuming"
    print(f"{name} {engine.version}: live by {way} after {time.monotonic() - begin:.1f} s")

    # 61 layers of a latent of 512 and 64 elements of two bytes, on every rank.
    assert engine.evaluate(PER_TOKEN) == engine.evaluate(SHOWN) == 61 * (512 + 64) * 2 == 70_272
    for field, key, expected in [
        ("num_layers", Keys.ARROW_LEFT, 60 * (512 + 64) * 2),
        ("tensor_parallel_size", Keys.ARROW_RIGHT, 60 * (512 + 64) * 2),
        ("kv_lora_rank", Keys.ARROW_LEFT, 60 * (448 + 64) * 2),
    ]:
        slider = f"document.querySelector('[data-kv-control={field}] input[type=range]')"
        before = engine.evaluate(f"{slider}.value")
        engine.evaluate(f"{slider}.focus()")
        engine.press(key)
        assert engine.evaluate(f"{slider}.value") != before
        assert engine.evaluate(PER_TOKEN) == engine.evaluate(SHOWN) == expected
