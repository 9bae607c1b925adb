"""Answers the cases of the golden file: each runner reads the fields off the engine's objects."""

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import EngineError
from ...explain import Expression, round_up, symbol
from . import deepseek_v4, host, paged_inputs, swa
from .buffers import Pool, Sent
from .cell import capacity, latent_format, planned_index
from .cell_inputs import cell_size, window_rows
from .choice import HALVES
from .inputs import (
    Case,
    attention,
    device_pool,
    dtype,
    extent,
    index_key,
    latent,
    latent_dtype,
    latent_storage,
    owners,
    plain_backends,
    pool_layers,
    sparse_backend,
    state_options,
    state_shape,
    states,
    v4_model,
    v4_options,
)
from .paged_inputs import cap_options, refused, worker_requests
from .pools import latent_width
from .requests import request_limit
from .rules import rules_of
from .sending import Extra, chunk_tokens, extra_count, page_count, sent_bytes
from .state import divide, slots_per_request
from .window_cap import request_cap


def _number(expression: Expression) -> Any:
    return expression.value


def pool_default(case: Case, version: str) -> dict[str, Any]:
    """Bytes per token and tokens of models without windows."""
    cell = cell_size(case, version)
    return {
        "cell_size": _number(cell),
        "max_total_num_tokens": _number(capacity(case["available_bytes"], cell, case["page_size"])),
    }


def pool_swa(case: Case, version: str) -> dict[str, Any]:
    """The split between full and window pools, or its refusal."""
    rules, page_size, available = rules_of(version), case["page_size"], case["available_bytes"]
    full, window = window_rows(case, version)
    drafts = case.get("eagle_draft_num_layers") or 0 if rules.drafters_priced else 0
    window_drafts = min(case.get("eagle_draft_swa_num_layers") or 0, drafts)
    model = swa.WindowModel(
        full_layers=case["num_full_layers"],
        window_layers=case["num_swa_layers"],
        full_row=full,
        window_row=window,
        draft_full_layers=drafts - window_drafts,
        draft_window_layers=window_drafts,
    )
    ratio, size = (
        case.get("swa_full_tokens_ratio", rules.swa_full_tokens_ratio),
        case.get("sliding_window_size"),
    )
    fields = {
        "full_per_token_per_layer": _number(full),
        "swa_per_token_per_layer": _number(window),
        "cell_size": _number(swa.cell(model, ratio)),
    }
    try:
        if case.get("request_cap"):
            drafted = case.get("speculative_num_draft_tokens") or 0
            cap = request_cap(worker_requests(case) or 1, size or 0, page_size, drafted, cap_options(case))
            fields["swa_request_cap_tokens"] = _number(cap)
            split = swa.capped(model, round_up(cap, symbol("P", page_size)), available, page_size)
        else:
            split = swa.capacity(model, ratio, available, page_size)
            if rules.window_checked and size is not None:
                swa.check_window(split, size, page_size)
    except EngineError as error:
        return fields | refused(error)
    return fields | {
        "max_total_num_tokens": _number(split.tokens),
        "full_max_total_num_tokens": _number(split.full),
        "swa_max_total_num_tokens": _number(split.window),
    }


def pool_dsv4(case: Case, version: str) -> dict[str, Any]:
    """DeepSeek-V4's weight and pool sizes."""
    if rules_of(version).v4_paged:
        return paged_inputs.pool_dsv4(case, version)
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
            for suffix in ("shape", "phys_shape"):
                fields.setdefault(f"{buffer.name}_{suffix}", []).append(shape)
        else:
            fields[f"{buffer.name}_shape"] = shape
        fields[f"{buffer.name}_bytes"] = _number(buffer.bytes)
    fields |= _parts(pool)
    for name, when in (("kv", Sent.PAGES), ("state", Sent.EXTRA)):
        sent = pool.sent(when)
        items = pool.page_bytes if when is Sent.PAGES else pool.extra_bytes
        fields[f"{name}_item_lens_sum"] = _number(items)
        if len(sent) == 1:
            fields[f"{name}_item_len"] = _number(sent[0].item_bytes)
        fields |= {f"{name}_item_len_{buffer.name[0]}": _number(buffer.item_bytes) for buffer in sent}
    return fields


def _parts(pool: Pool) -> dict[str, Any]:
    """What index keys of a pool are held by, and the sums of its parts."""
    fields: dict[str, Any] = {}
    for prefix in ("main", "index_k_pool", "index_kv_pool", "tail"):
        parts = [buffer for buffer in pool.buffers if buffer.name.startswith(f"{prefix}_")]
        fields[f"{prefix}_bytes"] = sum(int(buffer.bytes.value) for buffer in parts)
    for buffer in pool.buffers:
        if buffer.name == "index_k_with_scale_buffer":
            fields["indexer_layers"] = int(buffer.layers.value)
    return fields


def host_buffers(case: Case, version: str) -> dict[str, Any]:
    """A host pool of hierarchical caching."""
    device, rules = {"page_size": case["page_size"], **case["device_pool"]}, rules_of(version)
    size = host.HostSize(
        layout=case.get("layout", "layer_first"),
        ratio=case.get("host_to_device_ratio") or rules.host_ratio,
        size_gb=case.get("host_size", 0),
    )
    device_extent = extent(device)
    index = None
    if "kv_lora_rank" in device:
        if "kv_cache_dim" in device or "index_head_dim" in device or "DSA" in str(device.get("pool")):
            index = index_key(device)
        row, storage = latent(device), latent_storage(device, version, sparse=index is not None)
        pool = host.latent_host(row, storage, device_extent, size, rules, index)
    else:
        row = attention(device, "head_num", "head_dim")
        pool = host.attention_host(row, dtype(device["dtype"], version), device_extent, size, rules)
    fields = {
        "host_pool_class": pool.name,
        "size_per_token": _number(pool.token_bytes),
        "size": _number(pool.tokens),
        "page_num": _number(pool.pages),
        "kv_buffer_dims": list(pool.buffers[0].dims),
        **{f"{buffer.name}_dims": list(buffer.dims) for buffer in pool.buffers},
        "total_bytes": _number(pool.total_bytes),
        "token_stride_size": _number(pool.row_bytes),
        "layout_dim": _number(pool.row_bytes * device_extent.depth),
    }
    if index is not None:
        owned = owners(device, pool_layers(device)) if rules.index_as_allocated else None
        depth = device_extent.layers if owned is None else owned
        keys = host.index_host(index, device_extent, pool, size.layout, owned)
        fields |= {
            "indexer_size_per_token": _number(planned_index(index, depth)),
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
    row, kind = latent(case), case["kv_cache_dtype"]
    scaled = bool(case.get("is_dsa")) and kind == "fp8_e4m3"
    storage = latent_format(
        latent_dtype(kind, version),
        sparse=scaled,
        backend=sparse_backend(case),
        plain=plain_backends(case, version),
    )
    width = row.elements if storage in HALVES else latent_width(row, storage)
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
            per_item = states(case, version).extra_bytes
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
