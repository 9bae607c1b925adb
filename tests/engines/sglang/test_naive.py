"""A second opinion: bytes and tokens counted one by one, from nothing but plain numbers.

Nothing here imports the kinds, formats or engines of the calculator; only the runners' answers are compared.
"""

import math

from hypothesis import given
from hypothesis import strategies as st

from calculator.check import ENGINES

RUNNERS = ENGINES["SGLang"][1]
V = "0.5.13"
WIDTHS = {"bfloat16": 2, "float16": 2, "float32": 4, "fp8_e4m3": 1, "fp8_e5m2": 1}

small = st.integers(1, 9)
dtypes = st.sampled_from(sorted(WIDTHS))
pages = st.sampled_from([1, 2, 16, 64])


def kv_elements(layers, heads, tp, key, value):
    """Elements of one token on rank 0: layer by layer, head by head; each rank keeps at least one."""
    count = 0
    for _ in range(layers):
        mine = range(heads // tp) if heads >= tp else [0]
        for _ in mine:
            count += key + value
    return count


def fill(memory, cell, page):
    """Pages taken one after another until the next does not fit."""
    tokens = 0
    while (tokens + page) * cell <= memory:
        tokens += page
    return tokens


@given(
    small, st.integers(1, 16), st.sampled_from([1, 2, 4, 8]), small, small, dtypes, pages, st.integers(0, 40)
)
def test_cells_and_capacity_of_attention(layers, heads, tp, key, value, dtype, page, space):
    cell = kv_elements(layers, heads, tp, key, value) * WIDTHS[dtype]
    case = {
        "num_layers": layers,
        "num_key_value_heads": heads,
        "attn_tp_size": tp,
        "head_dim": key,
        "v_head_dim": value,
        "kv_cache_dtype": dtype,
        "available_bytes": cell * space + cell // 2,
        "page_size": page,
    }
    got = RUNNERS["pool_default"](case, V)
    assert got == {"cell_size": cell, "max_total_num_tokens": fill(case["available_bytes"], cell, page)}


@given(small, st.integers(1, 8), st.integers(0, 64), dtypes, st.booleans())
def test_cells_of_latents(layers, groups, rope, dtype, indexed):
    rank = 128 * groups
    cell = 0
    for _ in range(layers):
        cell += sum(WIDTHS[dtype] for _ in range(rank + rope))
        if indexed:
            cell += 128 + 4
    case = {
        "num_layers": layers,
        "use_mla_backend": True,
        "kv_lora_rank": rank,
        "qk_rope_head_dim": rope,
        "kv_cache_dtype": dtype,
        "available_bytes": 10**6,
        "page_size": 1,
    }
    if indexed:
        case |= {"index_topk": 2048, "index_head_dim": 128}
    assert RUNNERS["pool_default"](case, V)["cell_size"] == cell


@given(st.sets(st.integers(0, 20)), st.integers(0, 20), st.integers(1, 20), small, small)
def test_stages_of_hybrids_count_their_attention_layers(attention, first, length, heads, width):
    mine = [layer for layer in range(first, first + length) if layer in attention]
    if not mine:
        return
    case = {
        "num_layers": length,
        "start_layer": first,
        "end_layer": first + length,
        "full_attention_layer_ids": sorted(attention),
        "num_key_value_heads": heads,
        "head_dim": width,
        "kv_cache_dtype": "bfloat16",
        "available_bytes": 10**6,
        "page_size": 1,
    }
    assert RUNNERS["pool_default"](case, V)["cell_size"] == sum(heads * 2 * width * 2 for _ in mine)


@given(small, small, small, small, small, dtypes, pages, st.integers(0, 50))
def test_buffers_of_attention(layers, heads, key, value, held, dtype, page, extra):
    size = held * page
    total = 0
    for _ in range(layers):
        for _ in range(size + page):
            total += heads * (key + value) * WIDTHS[dtype]
    case = {
        "pool": "MHATokenToKVPool",
        "size": size,
        "page_size": page,
        "layer_num": layers,
        "head_num": heads,
        "head_dim": key,
        "v_head_dim": value,
        "dtype": dtype,
    }
    got = RUNNERS["device_buffers"](case, V)
    assert got["total_bytes"] == total
    tokens = size + extra
    sent = RUNNERS["pd_transfer"]({"device": case, "num_tokens": tokens}, V)
    count = len({token // page for token in range(tokens)})
    assert sent["num_pages"] == count
    assert sent["kv_bytes"] == count * sum(
        page * heads * (key + value) * WIDTHS[dtype] for _ in range(layers)
    )


@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([1, 16, 64]))
def test_window_pages_are_those_that_a_later_token_may_read(tokens, window, page):
    device = {
        "pool": "SWAKVPool",
        "size": 640,
        "size_swa": 640,
        "page_size": page,
        "num_full_layers": 1,
        "num_swa_layers": 2,
        "head_num": 1,
        "head_dim": 8,
        "dtype": "bfloat16",
    }
    case = {"device": device, "num_tokens": tokens, "state_type": "swa", "sliding_window_size": window}
    needed = {token // page for token in range(tokens) if token >= tokens - window}
    got = RUNNERS["pd_transfer"](case, V)
    assert got["state_pages"] == len(needed)
    assert got["state_bytes"] == len(needed) * 2 * page * 2 * 8 * 2


@given(st.lists(st.sampled_from([0, 4, 128]), min_size=1, max_size=12), st.integers(1, 20))
def test_deepseek_v4_buffers(ratios, windows):
    page = 256
    swa, full = windows * page, windows * 10 * page
    rings = {4: 8, 128: 128}
    case = {
        "pool": "DeepSeekV4TokenToKVPool",
        "page_size": page,
        "compress_ratios": ratios,
        "swa_size": swa,
        "c4_size": full // 4,
        "c128_size": full // 128,
        "c4_state_pool_size": swa // 128 * rings[4],
        "c128_state_pool_size": swa // 128 * rings[128],
    }

    def paged(entries, per_page, row):
        pages = 0
        while (pages + 1) * per_page <= entries + per_page + 1:
            pages += 1
        width = per_page * row
        while width % 576:
            width += 1
        return pages * width

    def slots(size, ratio):
        rows = size + rings[ratio] + 1
        while rows % ratio:
            rows += 1
        return rows

    total = 0
    for ratio in ratios:
        total += paged(swa, page, 584)
        if ratio == 4:
            total += paged(full // 4, 64, 584)
            total += (full // 4 + 64 + 1) // 64 * 64 * 132
            total += slots(case["c4_state_pool_size"], 4) * (2048 + 512) * 4
        if ratio == 128:
            total += paged(full // 128, 2, 584)
            total += slots(case["c128_state_pool_size"], 128) * 1024 * 4
    assert RUNNERS["device_buffers"](case, V)["total_bytes"] == total


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 10**4))
def test_requests_follow_tokens(tokens, context, limit):
    estimate = min(max(math.trunc(tokens / context * 512), 2048), 4096)
    case = {"max_total_num_tokens": tokens, "context_len": context}
    assert RUNNERS["max_num_reqs"](case, V)["max_num_reqs"] == min(estimate, tokens // 2)
    limited = RUNNERS["max_num_reqs"]({**case, "max_running_requests": limit}, V)
    assert limited["max_num_reqs"] == min(limit, estimate)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.sampled_from([1, 16, 64]))
def test_chunks_together_are_the_prompt(chunks, page):
    device = {
        "pool": "MLATokenToKVPool",
        "size": 640,
        "page_size": page,
        "layer_num": 1,
        "kv_lora_rank": 8,
        "qk_rope_head_dim": 0,
        "dtype": "bfloat16",
    }
    prompt, sent, end = sum(chunks), 0, 0
    for number, chunk in enumerate(chunks, 1):
        end += chunk
        case = {
            "device": device,
            "num_tokens": prompt,
            "already_sent_tokens": sent,
            "chunk_end_tokens": end,
            "last_chunk": number == len(chunks),
        }
        sent += RUNNERS["pd_transfer"](case, V)["sent_tokens"]
        assert sent == prompt or sent % page == 0
    assert sent == prompt
