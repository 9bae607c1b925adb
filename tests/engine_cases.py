"""Golden cases that a scenario can express, as what one would choose on the page and read off it."""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from calculator.engines import sglang, vllm

DTYPES = {"bfloat16": "bf16", "uint8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "fp4_e2m1": "fp4_e2m1"}
DTYPES |= {name: name for name in ("nvfp4", "fp4_mx_block16", "mxfp8")}
# What a scenario cannot say.
UNSAID = {
    *("full_attention_layer_ids", "start_layer", "v_head_dim", "dsa_backend", "disaggregation_mode"),
    *("eagle_draft_num_layers", "minimax_sparse", "qsa", "index_kpool", "attn_dcp_size"),
    *("attention_prefill_backend", "request_cap"),
}
QUANTS = {None: None, "INT4_PER_TOKEN_HEAD": "int4_per_token_head", "NVFP4": "nvfp4", "FP8_PER_TENSOR": "fp8"}

Expressed = tuple[str, dict[str, object], dict[str, object]]  # id, choices by field, figures by name


def expressed() -> Iterator[Expressed]:
    """Every case of plain attention, latents, indexers and windows with one set of heads."""
    for engine, versions in (("vllm", vllm.VERSIONS), ("sglang", sglang.VERSIONS)):
        for version in versions:
            for case in _cases(f"{engine}-{version}"):
                read = READ.get(case["kind"])
                if read and (found := read(case["input"], case["expected"])):
                    choices, figures = found
                    yield f"{version}-{case['id']}", choices | {"engine_version": version}, figures


def _cases(name: str) -> list[dict[str, Any]]:
    return json.loads((files("calculator") / "golden" / f"{name}.json").read_text(encoding="utf-8"))["cases"]


def _vllm(
    given: dict[str, Any], expected: dict[str, Any]
) -> tuple[dict[str, object], dict[str, object]] | None:
    config = given.get("config", {})
    # What 0.33.0 chooses where nothing is chosen.
    chosen = {"max_concurrent_batches": 2, "kv_cache_layout": "LBNHC"}
    config = {key: value for key, value in config.items() if chosen.get(key) != value}
    if not config.keys() <= {"max_model_len", "max_num_batched_tokens"} or "workers" in given:
        return None
    if expected.get("num_blocks") is None:
        return None
    specs = [given["specs"][name] for name in given["layers"]]
    shape = _latents(specs) or _attention(specs)
    if shape is None:
        return None
    choices = {
        "engine": "vllm",
        **shape,
        "block_size": specs[0]["block_size"],
        "context_tokens": config["max_model_len"],
        "max_num_batched_tokens": config.get("max_num_batched_tokens", 8192),
        "available_memory_bytes": given["available_memory"],
    }
    figures = {
        "num_blocks": expected["num_blocks"],
        "blocks_per_request": expected["num_blocks_per_request"],
        "reported_tokens": expected["kv_cache_size_tokens"],
        "bytes_per_block": expected["pool_bytes_per_block"][0],
    }
    return choices, figures


def _attention(specs: list[dict[str, Any]]) -> dict[str, object] | None:
    """Layers of full attention and windows that differ in nothing else."""
    known = {
        "type",
        "block_size",
        "num_kv_heads",
        "head_size",
        "dtype",
        "kv_quant_mode",
        "sliding_window",
        "attn_backend",
    }
    if not all(spec.keys() <= known for spec in specs):
        return None
    rows = {
        tuple(sorted((k, v) for k, v in spec.items() if k not in {"type", "sliding_window"}))
        for spec in specs
    }
    if len(rows) != 1:
        return None
    if {spec["type"] for spec in specs} - {"FullAttentionSpec", "SlidingWindowSpec"}:
        return None
    windows = {spec["sliding_window"] for spec in specs if spec["type"] == "SlidingWindowSpec"}
    if len(windows) > 1:
        return None
    heads, size = specs[0]["num_kv_heads"], specs[0]["head_size"]
    shape: dict[str, object] = {
        "architecture": "full",
        "num_layers": len(specs),
        "num_kv_heads": heads,
        "head_size": size,
        "head_size_v": size,
        "kv_cache_dtype": QUANTS[specs[0].get("kv_quant_mode")] or DTYPES[specs[0]["dtype"]],
    }
    if windows:
        full = sum(spec["type"] == "FullAttentionSpec" for spec in specs)
        shape |= {"architecture": "window", "num_global_layers": full, "sliding_window": windows.pop()}
    return shape


def _latents(specs: list[dict[str, Any]]) -> dict[str, object] | None:
    """MLA layers of 512 + 64, each with an indexer of 128 or none with one."""
    known = {"type", "block_size", "num_kv_heads", "head_size", "dtype", "cache_dtype_str", "max_tp_shards"}
    if not all(spec["type"] == "MLAAttentionSpec" and spec.keys() <= known for spec in specs):
        return None
    latents = [spec for spec in specs if spec["head_size"] == 576]
    indexers = [spec for spec in specs if spec["head_size"] == 132]
    if len(latents) + len(indexers) != len(specs) or len(indexers) not in (0, len(latents)):
        return None
    return {
        "architecture": "mla",
        "num_layers": len(latents),
        "index_head_dim": 128 if indexers else 0,
        "kv_cache_dtype": DTYPES[latents[0]["dtype"]],
    }


def _sglang(given: dict[str, Any]) -> dict[str, object]:
    return {
        "engine": "sglang",
        "kv_cache_dtype": DTYPES[given["kv_cache_dtype"]],
        "tensor_parallel_size": given.get("attn_tp_size", 1),
        "page_size": given["page_size"],
        "available_memory_bytes": given["available_bytes"],
    }


def _sglang_default(
    given: dict[str, Any], expected: dict[str, Any]
) -> tuple[dict[str, object], dict[str, object]] | None:
    if given.keys() & UNSAID:
        return None
    choices = _sglang(given) | {"num_layers": given["num_layers"]}
    if given.get("use_mla_backend"):
        index = given.get("index_head_dim", 0)
        choices |= {"architecture": "mla", "index_head_dim": index}
        choices |= {name: given[name] for name in ("kv_lora_rank", "qk_rope_head_dim")}
    else:
        size = given["head_dim"]
        heads = {"num_kv_heads": given["num_key_value_heads"], "head_size": size, "head_size_v": size}
        choices |= {"architecture": "full", **heads}
    figures = {
        "planned_bytes_per_token": expected["cell_size"],
        "max_total_num_tokens": expected["max_total_num_tokens"],
    }
    return choices, figures


def _sglang_windows(
    given: dict[str, Any], expected: dict[str, Any]
) -> tuple[dict[str, object], dict[str, object]] | None:
    own = {"swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim", "v_head_dim"}
    unsaid = UNSAID | own | {"use_mla_backend"}
    if given.keys() & unsaid or given["num_full_layers"] == 0 or "error" in expected:
        return None
    size = given["head_dim"]
    choices = _sglang(given) | {
        "architecture": "window",
        "num_layers": given["num_full_layers"] + given["num_swa_layers"],
        "num_global_layers": given["num_full_layers"],
        "num_kv_heads": given["num_key_value_heads"],
        "head_size": size,
        "head_size_v": size,
        "swa_full_tokens_ratio": given["swa_full_tokens_ratio"],
    }
    figures = {
        "planned_bytes_per_token": expected["cell_size"],
        "max_total_num_tokens": expected["full_max_total_num_tokens"],
        "window_tokens": expected["swa_max_total_num_tokens"],
    }
    return choices, figures


READ = {"kv_cache_config": _vllm, "pool_default": _sglang_default, "pool_swa": _sglang_windows}
