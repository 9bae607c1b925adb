"""Golden cases of cell sizes: plain, latent, sparse and compressed caches, with what a drafter adds."""

from ...explain import Expression, lift, round_up, symbol, total
from ...formats import MXFP8, NVFP4, Row
from .cell import IndexPrice, nvfp4, planned, planned_index, with_drafter
from .inputs import (
    Case,
    attention,
    dtype,
    index_key,
    latent,
    latent_dtype,
    latent_storage,
    nvfp4_scales,
    owners,
    stage_layers,
)
from .rules import Rules, rules_of

NATIVE_PAGE, NATIVE_ALIGN = 128, 128  # of MiniMax-M3's own NVFP4 pages


def cell_size(case: Case, version: str) -> Expression:
    """Bytes per token of a case."""
    rules, layers = rules_of(version), len(stage_layers(case))
    drafts = case.get("eagle_draft_num_layers") or 0 if rules.drafters_priced else 0
    ratio = case.get("hisparse_host_to_device_ratio") or 1
    if case.get("use_mla_backend"):
        return _latents(case, rules, drafts)
    if "minimax_sparse" in case:
        return with_drafter(_sparse_attention(case), layers, drafts, ratio=ratio)
    tp, dcp = case.get("attn_tp_size", 1), case.get("attn_dcp_size") or 1
    row = attention(case, "num_key_value_heads", "head_dim", max(1, tp // dcp))
    storage = dtype(case["kv_cache_dtype"], version)
    price = nvfp4(row, layers, nvfp4_scales(case)) if storage == NVFP4 else planned(row, storage, layers)
    if "qsa" in case:
        price = price + _compressed_keys(case, layers)
    return with_drafter(price, layers, drafts, ratio=ratio)


def _latents(case: Case, rules: Rules, drafts: int) -> Expression:
    sparse = case.get("index_topk") is not None or case.get("index_head_dim") is not None
    row, stage = latent(case), stage_layers(case)
    layers, ratio = len(stage), case.get("hisparse_host_to_device_ratio")
    if not sparse:
        price = planned(row, latent_dtype(case["kv_cache_dtype"], rules.name), layers)
        return with_drafter(price, layers, drafts, ratio=ratio or 1)
    given = {**case, "dtype": case["kv_cache_dtype"]}
    owned = None if ratio or case.get("enable_hisparse") else owners(case, stage)
    true = rules.index_as_allocated
    keys = IndexPrice(
        key=index_key(case),
        layers=layers if owned is None or not true else owned,
        pool=case.get("index_kpool") or 1,
        ratio=(ratio or 1) if true else 1,
        ranks=case.get("attn_dcp_size") or 1,
    )
    storage = latent_storage(given, rules.name, sparse=True)
    return with_drafter(rules.sparse_price(row, storage, layers), layers, drafts, keys)


def _compressed_keys(case: Case, layers: int) -> Expression:
    """`⌊heads · dim · 2 / ratio⌋` per attention layer, BF16."""
    sizes = case["qsa"]
    keys = symbol("H_i", sizes.get("heads") or sizes["kv_heads"]) * symbol(
        "d_i", sizes.get("dim") or sizes["head_dim"]
    )
    ratio = sizes.get("ratio") or sizes["compress_ratio"]
    return keys * 2 // symbol("c", ratio) * symbol("L", layers)


def _sparse_attention(case: Case) -> Expression:
    """K and V of all layers, BF16 index keys (and values) of the sparse ones; HiSparse multiplies."""
    sizes, ratio = case["minimax_sparse"], case.get("hisparse_host_to_device_ratio") or 1
    first = case.get("start_layer", 0)
    stage = range(first, case.get("end_layer", first + case["num_layers"]))
    dense, sparse = (sum(layer in stage for layer in sizes[kind]) for kind in ("dense", "sparse"))
    keys_only = sum(layer in stage for layer in sizes["sparse"] if layer in sizes["k_only"])
    row = attention(case, "num_key_value_heads", "head_dim", case.get("attn_tp_size", 1))
    if case.get("quantization") == "m3_nvfp4":
        return _native_pages(row, sizes["sparse_index_dim"]) * symbol("L", sparse) // NATIVE_PAGE
    storage = dtype(case["kv_cache_dtype"])
    main = planned(row, storage, 1) * symbol("L", dense * ratio + sparse)
    keys = symbol("d_i", sizes["sparse_index_dim"]) * 2
    return main + keys * symbol("L_idx", 2 * (sparse - keys_only) + keys_only) * ratio


def _native_pages(row: Row, index_width: int) -> Expression:
    """A page of 128 tokens: data and scales of K, V and the index key, each a multiple of 128 bytes."""
    assert row.heads is not None
    page, width = lift(NATIVE_PAGE), symbol("d_i", index_width)
    parts = [
        heads * page * (elements // group)
        for heads, elements in (
            *((row.heads, row.vectors["key"]),) * 2,
            (lift(1), width),
        )
        for group in (2, 16)
    ]
    return total(round_up(part, NATIVE_ALIGN) for part in parts)


def window_rows(case: Case, version: str) -> tuple[Expression, Expression]:
    """Bytes of a token in a full and in a window layer."""
    storage, tp = dtype(case["kv_cache_dtype"], version), case.get("attn_tp_size", 1)
    if not case.get("use_mla_backend"):
        full, window = (
            planned(row, storage, 1) if storage == MXFP8 else storage.row_bytes(row)
            for row in (attention(case, "num_key_value_heads", "head_dim", tp, of) for of in ("", "swa_"))
        )
        return full, window
    narrow = {name: case["swa_" + name] for name in ("kv_lora_rank", "qk_rope_head_dim")}
    window = latent(narrow).elements * symbol("s", storage.element_bytes)
    full = latent(case).elements * symbol("s", storage.element_bytes)
    if case.get("index_topk") is not None or case.get("index_head_dim") is not None:
        rows_of = latent_storage({**case, "dtype": case["kv_cache_dtype"]}, version, sparse=True)
        keys = planned_index(index_key(case), 1, case.get("index_kpool") or 1)
        full = rows_of.row_bytes(latent(case)) + keys
    return full, window
