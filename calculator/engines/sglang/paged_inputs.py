"""Inputs of golden cases of DeepSeek-V4 in SGLang 0.5.23, and their answers."""

from collections.abc import Mapping
from typing import Any

from ...errors import EngineError
from ...explain import lift
from .buffers import Pool
from .records import main_record
from .rules import rules_of
from .v4_buffers import v4_pool
from .v4_paged import PagedBudget, PagedModel, PagedOptions, PagedSizes
from .window_cap import CapOptions

Case = Mapping[str, Any]

REFUSALS = {
    "sglang.window_small": "swa_pool_too_small",
    "sglang.window_cap": "pool_too_small",
    "sglang.v4_cap": "pool_too_small",
}


def refused(error: EngineError) -> dict[str, Any]:
    """The refusal as the golden file names it."""
    return {"error": REFUSALS.get(error.key, error.key)}


def cap_options(case: Case) -> CapOptions:
    """What decides how many window tokens the running requests can need."""
    return CapOptions(
        chunked_prefill_size=case.get("chunked_prefill_size", 8192),
        overlap_schedule=not case.get("disable_overlap_schedule"),
        radix_cache=not case.get("disable_radix_cache"),
        decode=case.get("disaggregation_mode") == "decode",
        extra_slots=case.get("disaggregation_decode_extra_slots") or 0,
        speculative_steps=case.get("speculative_num_steps"),
    )


def worker_requests(case: Case) -> int | None:
    """The limit of requests of one data-parallel worker."""
    limit = case.get("max_running_requests")
    return None if limit is None else max(1, limit // case.get("dp_size", 1))


def paged_budget(case: Case, version: str) -> PagedBudget:
    """The stage and the options of a case."""
    ratios = case["compress_ratios"]
    first = case.get("start_layer") or 0
    end = case.get("end_layer") or first + case.get("num_layers", len(ratios) - first)
    drafts = case.get("speculative_num_draft_tokens") or 0
    return PagedBudget(
        model=PagedModel.of_ratios(
            ratios,
            case.get("kv_source_layer_ids") or (),
            first,
            end,
            head_size=case.get("qk_nope_head_dim", 448) + case.get("qk_rope_head_dim", 64),
            index_head_dim=case.get("index_head_dim", 128),
            sliding_window=case.get("sliding_window_size") or case.get("sliding_window", 128),
        ),
        options=PagedOptions(
            swa_full_tokens_ratio=case.get("swa_full_tokens_ratio"),
            max_running_requests=worker_requests(case),
            context_length=case.get("context_len", 1_048_576),
            draft_tokens=drafts,
            online_c128=bool(case.get("online_c128")),
            host_to_device_ratio=case.get("hisparse_host_to_device_ratio") or 1,
            main=main_record(case.get("kv_layout", "v4"), case.get("dsv4_attn_backend") or ""),
            compressed=case.get("compressed_kv_layout") or "auto",
            state_bytes=2 if case.get("compress_state_dtype") == "bfloat16" else 4,
            fp4_indexer=bool(case.get("fp4_indexer")),
            prefix_tails=case.get("swa_prefix_tails"),
            cap=cap_options(case),
        ),
        rules=rules_of(version),
        page_size=case["page_size"],
    )


def paged_pool(case: Case, version: str) -> Pool:
    """DeepSeekV4TokenToKVPool of given sizes."""
    slots = case.get("num_req_slots")  # a decode server has more of them than requests that run
    requests = case.get("max_num_reqs", 0) if slots is None else slots - 1
    return v4_pool(
        paged_budget(case, version),
        PagedSizes(
            full=lift(case.get("full_size", 0)),
            window=lift(case["swa_size"]),
            c4=lift(case["c4_size"]),
            c128=lift(case["c128_size"]),
            c4_state=lift(case["c4_state_pool_size"]),
            c128_state=lift(case["c128_state_pool_size"]),
            requests=lift(requests),
        ),
    )


def pool_dsv4(case: Case, version: str) -> dict[str, Any]:
    """Weights, fixed amounts and sizes."""
    budget = paged_budget(case, version)
    model, options, available = budget.model, budget.options, case["available_bytes"]
    requests = budget.requests(available)
    cap = budget.cap_tokens
    fields: dict[str, Any] = {
        "bytes_per_full_token": budget.bytes_per_full_token.value,
        "bytes_per_swa_token": budget.bytes_per_swa_token.value,
        "num_layers_total": model.layers,
        "num_layers_ca4": model.owners.get(4, 0),
        "num_layers_ca128": model.owners.get(128, 0),
        "c4_ring_size": options.ring(4) if 4 in model.owners else None,
        "c128_ring_size": options.ring(128) if 128 in model.owners else None,
        "swa_ratio": budget.ratio,
        "swa_cap_tokens": None if cap is None else cap.value,
        "swa_prefix_tails": budget.tails,
        "max_running_requests_for_sizing": requests.value,
        "c128_state_fixed_bytes": budget.c128_fixed(requests).value,
        "c2_state_fixed_bytes": budget.c2_fixed(requests).value,
        "swa_fixed_bytes": budget.swa_fixed.value,
    }
    try:
        held = budget.fit(available)
    except EngineError as error:
        return fields | refused(error)
    return fields | {
        "max_running_requests": held.requests.value,
        "max_total_num_tokens": held.full.value,
        "full_max_total_num_tokens": held.full.value,
        "swa_max_total_num_tokens": held.window.value,
        "c4_max_total_num_tokens": held.c4.value,
        "c128_max_total_num_tokens": held.c128.value,
        "c4_state_pool_size": held.c4_state.value,
        "c128_state_pool_size": held.c128_state.value,
    }
