"""Answers the cases of the golden file: each runner reads the fields off the engine's objects."""

from collections.abc import Callable, Mapping
from typing import Any

from ...explain import Expression
from ...formats import FP4_E2M1, FP8_DS_MLA
from . import deepseek_v4, host, swa
from .buffers import Sent
from .cell import capacity, latent_format, planned, planned_index
from .inputs import (
    Case,
    attention,
    device_pool,
    dtype,
    extent,
    index_key,
    latent,
    latent_storage,
    stage_layers,
    state_options,
    state_shape,
    states,
    v4_model,
    v4_options,
)
from .pools import latent_width
from .requests import request_limit
from .rules import rules_of
from .sending import Extra, chunk_tokens, extra_count, page_count, sent_bytes
from .state import divide, slots_per_request


def _number(expression: Expression) -> Any:
    return expression.value


def pool_default(case: Case, version: str) -> dict[str, Any]:
    """Bytes per token and tokens of models without windows."""
    rules, layers, storage = rules_of(version), stage_layers(case), dtype(case["kv_cache_dtype"])
    if case.get("use_mla_backend"):
        cell = planned(latent(case), storage, layers)
        if case.get("index_topk") is not None or case.get("index_head_dim") is not None:
            cell = rules.sparse_price(latent(case), storage, layers) + planned_index(index_key(case), layers)
    else:
        row = attention(case, "num_key_value_heads", "head_dim", case.get("attn_tp_size", 1))
        cell = planned(row, storage, layers)
    return {
        "cell_size": _number(cell),
        "max_total_num_tokens": _number(capacity(case["available_bytes"], cell, case["page_size"])),
    }


def pool_swa(case: Case, version: str) -> dict[str, Any]:
    """The split between full and window pools."""
    tp, storage = case.get("attn_tp_size", 1), dtype(case["kv_cache_dtype"])
    rows = [
        storage.row_bytes(attention(case, "num_key_value_heads", "head_dim", tp, prefix))
        for prefix in ("", "swa_")
    ]
    model = swa.WindowModel(
        full_layers=case["num_full_layers"],
        window_layers=case["num_swa_layers"],
        full_row=rows[0],
        window_row=rows[1],
    )
    ratio = case.get("swa_full_tokens_ratio", rules_of(version).swa_full_tokens_ratio)
    split = swa.capacity(model, ratio, case["available_bytes"], case["page_size"])
    return {
        "full_per_token_per_layer": _number(rows[0]),
        "swa_per_token_per_layer": _number(rows[1]),
        "cell_size": _number(swa.cell(model, ratio)),
        "max_total_num_tokens": _number(split.tokens),
        "full_max_total_num_tokens": _number(split.full),
        "swa_max_total_num_tokens": _number(split.window),
    }


def pool_dsv4(case: Case, version: str) -> dict[str, Any]:
    """DeepSeek-V4's weight and pool sizes."""
    model, options = v4_model(case), v4_options(case, version)
    held = deepseek_v4.capacity(model, options, case["available_bytes"], case["page_size"])
    return {
        "bytes_per_full_token": _number(deepseek_v4.bytes_per_full_token(model, options)),
        "num_layers_total": model.layers,
        "num_layers_ca4": model.c4_layers,
        "num_layers_ca128": model.c128_layers,
        "c4_ring_size": options.c4_ring,
        "c128_ring_size": options.c128_ring,
        "max_total_num_tokens": _number(held.full),
        "full_max_total_num_tokens": _number(held.full),
        "swa_max_total_num_tokens": _number(held.window),
        "c4_max_total_num_tokens": _number(held.c4),
        "c128_max_total_num_tokens": _number(held.c128),
        "c4_state_pool_size": _number(held.c4_state),
        "c128_state_pool_size": _number(held.c128_state),
    }


def device_buffers(case: Case, version: str) -> dict[str, Any]:
    """Shapes and bytes of a device pool."""
    pool = device_pool(case, version)
    fields: dict[str, Any] = {"total_bytes": _number(pool.total_bytes)}
    for buffer in pool.buffers:
        shape = list(buffer.dims)
        if buffer.name in ("conv_state", "intermediate_conv_window"):  # one tensor per convolution
            fields.setdefault(f"{buffer.name}_shape", []).append(shape)
        else:
            fields[f"{buffer.name}_shape"] = shape
        fields[f"{buffer.name}_bytes"] = _number(buffer.bytes)
    for name, when in (("kv", Sent.PAGES), ("state", Sent.EXTRA)):
        sent = pool.sent(when)
        items = pool.page_bytes if when is Sent.PAGES else pool.extra_bytes
        fields[f"{name}_item_lens_sum"] = _number(items)
        if len(sent) == 1:
            fields[f"{name}_item_len"] = _number(sent[0].item_bytes)
        fields |= {f"{name}_item_len_{buffer.name[0]}": _number(buffer.item_bytes) for buffer in sent}
    return fields


def host_buffers(case: Case, version: str) -> dict[str, Any]:
    """A host pool of hierarchical caching."""
    device = {"page_size": case["page_size"], **case["device_pool"]}
    size = host.HostSize(
        layout=case.get("layout", "layer_first"),
        ratio=case.get("host_to_device_ratio") or rules_of(version).host_ratio,
        size_gb=case.get("host_size", 0),
    )
    device_extent = extent(device)
    index = None
    if "kv_lora_rank" in device:
        if "kv_cache_dim" in device or "index_head_dim" in device or "DSA" in str(device.get("pool")):
            index = index_key(device)
        row, storage = latent(device), latent_storage(device, sparse=index is not None)
        pool = host.latent_host(row, storage, device_extent, size, index)
    else:
        row = attention(device, "head_num", "head_dim")
        pool = host.attention_host(row, dtype(device["dtype"]), device_extent, size)
    fields = {
        "size_per_token": _number(pool.token_bytes),
        "size": _number(pool.tokens),
        "page_num": _number(pool.pages),
        "kv_buffer_dims": list(pool.buffers[0].dims),
        "total_bytes": _number(pool.total_bytes),
        "token_stride_size": _number(pool.row_bytes),
        "layout_dim": _number(pool.row_bytes * device_extent.depth),
    }
    if index is not None:
        keys = host.index_host(index, device_extent, pool, size.layout)
        fields |= {
            "indexer_size_per_token": _number(planned_index(index, device_extent.layers)),
            "indexer_page_stride_size": keys.dims[-1],
            "indexer_buffer_dims": list(keys.dims),
            "indexer_total_bytes": _number(keys.bytes),
        }
    return fields


def mamba_state(case: Case, version: str) -> dict[str, Any]:
    """Shapes and bytes of one state slot."""
    rules_of(version)
    shape = state_shape(case)
    return {
        "conv_shapes": [[int(dim.value) for dim in dims] for dims in shape.convolutions],
        "temporal_shape": [int(dim.value) for dim in shape.recurrent],
        "mamba_cache_per_req": _number(shape.layer_bytes * case["num_linear_layers"]),
    }


def mamba_memory_split(case: Case, version: str) -> dict[str, Any]:
    """Memory of state slots and of tokens."""
    state = case["state"]
    per_request = state_shape(state).layer_bytes * state["num_linear_layers"]
    split = divide(case["total_rest_bytes"], per_request, state_options(case), rules_of(version))
    return {
        "mamba_cache_per_req": _number(per_request),
        "max_mamba_cache_size": _number(split.slots),
        "kv_available_bytes": _number(split.token_bytes),
        "mamba_ratio": split.slots_per_request,
    }


def max_num_reqs(case: Case, version: str) -> dict[str, Any]:
    """Requests that run at once."""
    rules = rules_of(version)
    limit = request_limit(
        case["max_total_num_tokens"],
        case["context_len"],
        rules,
        max_running_requests=case.get("max_running_requests"),
        data_parallel_size=case.get("dp_size", 1),
        state_slots=case.get("max_mamba_cache_size"),
        slots_per_request=slots_per_request(state_options(case), rules),
    )
    return {"max_num_reqs": _number(limit)}


def mla_kv_cache_dim(case: Case, version: str) -> dict[str, Any]:
    """Width of a latent's row; E5M2 rows have no scales."""
    rules_of(version)
    row, kind = latent(case), case["kv_cache_dtype"]
    scaled = bool(case.get("is_dsa")) and kind == "fp8_e4m3"
    backends = [
        case[key] for key in ("dsa_backend", "dsa_prefill_backend", "dsa_decode_backend") if case.get(key)
    ]
    platform = "hip" if case.get("is_hip") else "cuda"
    forms = {
        latent_format(dtype(kind), sparse=scaled, backend=backend, platform=platform)
        for backend in backends or [""]
    }
    storage = FP8_DS_MLA if forms == {FP8_DS_MLA} else dtype(kind)
    width = row.elements if storage == FP4_E2M1 else latent_width(row, storage)
    return {"kv_cache_dim": _number(width)}


def pd_transfer(case: Case, version: str) -> dict[str, Any]:
    """Bytes that prefill sends to decode for one request."""
    device, tokens = case["device"], case["num_tokens"]
    pool, page_size = device_pool(device, version), device["page_size"]
    pages = page_count(tokens, page_size)
    fields = {"num_pages": _number(pages), "kv_bytes": _number(sent_bytes(pages, pool.page_bytes))}
    if case.get("state_type"):
        kind = Extra(case["state_type"])
        count = extra_count(kind, tokens, page_size, case.get("sliding_window_size") or 0)
        per_item = pool.extra_bytes
        if kind is Extra.MAMBA:
            per_item = states(case).extra_bytes
        fields |= {"state_pages": _number(count), "state_bytes": _number(sent_bytes(count, per_item))}
    if "chunk_end_tokens" in case:
        sent = chunk_tokens(
            tokens,
            page_size,
            already_sent_tokens=case.get("already_sent_tokens", 0),
            chunk_end_tokens=min(case["chunk_end_tokens"], tokens),
            last_chunk=bool(case.get("last_chunk")),
        )
        fields["sent_tokens"] = _number(sent)
    return fields


RUNNERS: Mapping[str, Callable[[Case, str], Mapping[str, Any]]] = {
    runner.__name__: runner
    for runner in (
        pool_default,
        pool_swa,
        pool_dsv4,
        device_buffers,
        host_buffers,
        mamba_state,
        mamba_memory_split,
        max_num_reqs,
        mla_kv_cache_dim,
        pd_transfer,
    )
}
