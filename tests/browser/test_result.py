"""`window.kvCalculator.result()` and the command line say the same, key by key, in whole numbers."""

import json
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from .conftest import ROOT

SCENARIOS = {
    "default": {},
    "window": {"model": "gemma-3-27b", "tensor_parallel_size": "4", "context_tokens": "8192"},
    "state": {"model": "qwen3.5-397b-a17b", "state_dtype": "bf16", "num_sequences": "7"},
    "indexer": {"model": "deepseek-v3.2", "kv_cache_dtype": "fp8"},
    "custom": {
        "architecture": "state",
        "state_kind": "mamba2",
        "num_layers": "33",
        "tensor_parallel_size": "3",
    },
}
ADDRESSES = {
    "default": "m=deepseek-v3",
    "window": "m=gemma-3-27b&tp=4&t=8192",
    "state": "m=qwen3.5-397b-a17b&sf=bf16&n=7",
    "indexer": "m=deepseek-v3.2&f=fp8",
    "custom": "m=deepseek-v3&a=state&L=33&sk=mamba2&tp=3",
}
AMOUNTS = {"bytes_per_token", "bounded_bytes", "constant_bytes", "total_bytes"}
KEYS = {
    "schema": int,
    "scenario": dict,
    "engine": dict,
    "per_rank": dict,
    "whole_model": dict,
    "logical": dict,
    "groups": list,
    "capacity": dict,
    "transfer": dict,
    "derivation": list,
    "difference": list,
    "notices": list,
}


def command_line(address):
    command = [sys.executable, "-m", "calculator", "estimate", "--json", "--address", address]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def numbers(part):
    """Every number in a JSON value."""
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list):
        return [number for inner in part for number in numbers(inner)]
    return [part] if isinstance(part, int | float) else []


@pytest.mark.parametrize(("name", "chosen"), SCENARIOS.items(), ids=SCENARIOS)
def test_the_page_and_the_command_line_give_the_same_json(live, site, name, chosen):
    live.set(**chosen)
    result = live.result()
    expect(live.page).to_have_url(f"{site}?v=1&{ADDRESSES[name]}")
    expected = command_line(f"v=1&{ADDRESSES[name]}")
    assert list(result) == list(expected)
    for part in expected:
        assert result[part] == expected[part], part


@pytest.mark.parametrize("chosen", SCENARIOS.values(), ids=SCENARIOS)
def test_the_result_keeps_its_contract(live, chosen):
    live.set(**chosen)
    result = live.result()
    assert {name: type(part) for name, part in result.items()} == KEYS
    assert result["schema"] == 1
    assert set(result["engine"]) == {"name", "version"}
    for scope in ("per_rank", "whole_model", "logical"):
        assert set(result[scope]) == AMOUNTS
    assert all(type(number) in {int, bool} for number in numbers(result))
    for group in result["groups"]:
        assert {"layers", "caches"} <= set(group)
        for cache in group["caches"]:
            assert {"kind", "format", "growth"} <= set(cache)
    for line in result["derivation"]:
        assert set(line) == {"quantity", "symbols", "numbers", "value", "source"}


@pytest.mark.parametrize("chosen", SCENARIOS.values(), ids=SCENARIOS)
def test_read_outs_and_result_agree(live, chosen):
    live.set(**chosen)
    result = live.result()
    for scope in ("per_rank", "whole_model"):
        for name in AMOUNTS:
            assert live.number(f"{scope}.{name}") == result[scope][name]


def test_a_result_asked_for_while_typing_has_every_change(live):
    live.box("num_layers").focus()
    live.page.keyboard.press("Control+A")
    live.page.keyboard.type("33")
    assert live.result()["per_rank"]["bytes_per_token"] == 33 * 1_152
