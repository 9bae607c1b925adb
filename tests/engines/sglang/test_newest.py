"""What SGLang 0.5.23 does that 0.5.13 did not: records, fixed amounts, window caps, recipes, refusals."""

from dataclasses import replace

import pytest

from calculator.caches import (
    MLA,
    CompressedIndexKey,
    CompressedLatent,
    FullAttention,
    GatedDeltaNet,
    IndexKey,
    RingBuffer,
    SlidingWindow,
    SlidingWindowMLA,
    SparseIndexKey,
)
from calculator.engines.sglang import Settings, allocate, host
from calculator.engines.sglang.buffers import Extent
from calculator.engines.sglang.cases import RUNNERS
from calculator.engines.sglang.cell import Nvfp4Scales, latent_format
from calculator.engines.sglang.pools import attention_pool, nvfp4_pool
from calculator.engines.sglang.records import compressed_record, main_record
from calculator.engines.sglang.rules import rules_of
from calculator.engines.sglang.window_cap import CapOptions, request_cap
from calculator.errors import EngineError, FieldError
from calculator.formats import (
    BF16,
    FP4_E2M1,
    FP4_MX_BLOCK16,
    FP8,
    FP8_V4,
    MXFP8,
    NVFP4,
    Storage,
)
from calculator.model import ModelPlan
from calculator.transfer.sglang import transfer

OLD, NEW = "0.5.13", "0.5.23"
MEMORY = 2**34
HEADS = {"num_kv_heads": 8, "head_size": 128, "head_size_v": 128}
FULL = FullAttention(**HEADS)
WINDOW = SlidingWindow(**HEADS, sliding_window=128)
LATENT = MLA(kv_lora_rank=512, qk_rope_head_dim=64)
INDEX = IndexKey(index_head_dim=128)
SPARSE = SparseIndexKey(index_head_dim=128)
UNEVEN = FullAttention(num_kv_heads=8, head_size=192, head_size_v=128)
DELTA = GatedDeltaNet(
    conv_kernel=4,
    linear_num_key_heads=16,
    linear_num_value_heads=64,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
)
V4 = SlidingWindowMLA(head_size=512, qk_rope_head_dim=64, sliding_window=128)


def entries(ratio: int):
    latent = CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=ratio)
    if ratio == 128:
        return (V4, latent)
    ring = (RingBuffer(ring_width=1024, ring_tokens=2),) if ratio == 2 else ()
    return (V4, latent, CompressedIndexKey(index_head_dim=128, compress_ratio=ratio), *ring)


V4_LAYERS = [(V4,), entries(4), entries(128)] * 4
V41_LAYERS = [(V4,), entries(1), entries(2)] * 4


def run(*layers, kv=BF16, version=NEW, **chosen):
    chosen = {"available_memory_bytes": MEMORY, "page_size": 64, **chosen}
    return allocate(ModelPlan(layers=layers), Storage(kv=kv), Settings(**chosen), version)


def v4(*layers, **chosen):
    return run(*layers, kv=FP8_V4, **{"page_size": 256, **chosen})


@pytest.mark.parametrize(
    ("key", "layers", "chosen"),
    [
        ("sglang.format_gone", [(FULL,)], {"kv": FP4_E2M1}),
        ("sglang.format_since", [(FULL,)], {"kv": NVFP4, "version": OLD}),
        ("sglang.format_since", [(FULL,)], {"kv": FP4_MX_BLOCK16, "version": OLD}),
        ("sglang.format_since", [(FULL,)], {"kv": MXFP8, "version": OLD}),
        ("sglang.format", [(LATENT,)], {"kv": NVFP4}),
        ("sglang.format", [(LATENT,)], {"kv": MXFP8}),
        ("sglang.format", [(FULL, SPARSE)], {"kv": FP4_MX_BLOCK16}),
        ("sglang.kind", [(FULL, SPARSE)], {"version": OLD}),
        ("sglang.kind", V41_LAYERS, {"version": OLD, "kv": FP8_V4, "page_size": 256}),
        ("sglang.fp4_backend", [(FULL,)], {"kv": NVFP4, "decode_backend": "flashinfer"}),
        ("sglang.nvfp4", [(FULL,)], {"kv": NVFP4, "page_size": 1}),
        (
            "sglang.mxfp8",
            [(FullAttention(num_kv_heads=8, head_size=80, head_size_v=80),)],
            {"kv": MXFP8},
        ),
        ("sglang.swa_fp4", [(FULL,), (WINDOW,)], {"kv": FP4_MX_BLOCK16}),
        ("sglang.window_small", [(FULL,), (WINDOW,)], {"available_memory_bytes": 2**20}),
        (
            "sglang.window_cap",
            [(FULL,), (WINDOW,)],
            {"available_memory_bytes": 2**26, "radix_cache": False, "max_running_requests": 512},
        ),
        (
            "sglang.window_small",
            V4_LAYERS,
            {"kv": FP8_V4, "page_size": 256, "available_memory_bytes": 2**23, "max_running_requests": 1},
        ),
        ("sglang.v4_cap", V41_LAYERS, {"kv": FP8_V4, "page_size": 256, "available_memory_bytes": 2**29}),
        (
            "sglang.v4_layout",
            V4_LAYERS,
            {"kv": FP8_V4, "page_size": 256, "v4_layout": "v41", "v4_backend": "trtllm"},
        ),
        (
            "sglang.v4_layout",
            V4_LAYERS,
            {"kv": FP8_V4, "page_size": 256, "v4_compressed_layout": "fp4"},
        ),
    ],
)
def test_what_a_version_refuses(key, layers, chosen):
    with pytest.raises(EngineError) as refusal:
        run(*layers, **chosen)
    assert refusal.value.key == key
    assert refusal.value.message("zh")


def test_records_that_do_not_exist():
    with pytest.raises(FieldError):
        main_record("v5")
    with pytest.raises(FieldError):
        compressed_record(main_record("v4"), 4, "fp2")
    assert compressed_record(main_record("v41_new"), 2).name == "v41_fp4_new"
    assert compressed_record(main_record("v4", "trtllm"), 4).name == "uniform_fp8"
    assert compressed_record(main_record("v41"), 4).name == "v41"


@pytest.mark.parametrize(("prefill", "per_token"), [("trtllm_mha", 36_864), ("flashinfer", 43_008)])
def test_nvfp4_is_priced_with_the_scales_that_its_backends_read(prefill, per_token):
    found = run(*[(FULL,)] * 32, kv=NVFP4, prefill_backend=prefill)
    assert found.tightest.planned_bytes_per_token.value == per_token
    assert found.tightest.allocated_bytes_per_token.value == per_token
    names = [buffer.name for buffer in found.tightest.pool.buffers]
    assert ("dq_k_buffer" in names) == (prefill == "flashinfer")


@pytest.mark.parametrize("page_size", [64, 128])
def test_mxfp8_has_a_scale_for_32_elements(page_size):
    found = run(*[(FULL,)] * 32, kv=MXFP8, page_size=page_size)
    assert found.tightest.planned_bytes_per_token.value == 67_584
    scales = next(buffer for buffer in found.tightest.pool.buffers if buffer.name == "k_scale_buffer")
    assert len(scales.shape) == (5 if page_size == 128 else 3)


def test_a_drafter_is_part_of_the_cell():
    assert run(*[(FULL,)] * 32, draft_layers=1).tightest.planned_bytes_per_token.value == 135_168
    sparse = run(*[(LATENT, INDEX)] * 61, kv=FP8, draft_layers=1, speculative_num_draft_tokens=2)
    assert sparse.tightest.planned_bytes_per_token.value == 48_856
    assert sparse.requests.value == 48  # the server's limit beside a drafter
    hisparse = run(*[(LATENT, INDEX)] * 61, kv=FP8, draft_layers=1, hisparse_host_to_device_ratio=2)
    assert hisparse.tightest.planned_bytes_per_token.value == 56_120 + 2 * 656 + 2 * 132
    windows = run((FULL,), (WINDOW,), draft_layers=2, draft_window_layers=1)
    assert windows.tightest.planned_bytes_per_token.value == 2 * 4096 + 0.8 * 2 * 4096


def test_layers_without_an_indexer_own_no_index_keys():
    found = run(*[(LATENT, INDEX)] * 22, *[(LATENT,)] * 56, kv=FP8)
    assert found.tightest.planned_bytes_per_token.value == 54_072
    assert found.tightest.allocated_bytes_per_token.value == 54_072


def test_minimax_m3_sends_its_index_keys_like_those_of_dsa():
    found = run(
        *[(FullAttention(num_kv_heads=4, head_size=128, head_size_v=128),)] * 3,
        *[(FullAttention(num_kv_heads=4, head_size=128, head_size_v=128), SPARSE)] * 57,
    )
    assert found.tightest.planned_bytes_per_token.value == 137_472
    assert transfer(found, 64).extra_bytes.value == 57 * 64 * 256


def test_windows_are_sized_by_the_limit_of_requests_where_the_radix_cache_is_off():
    chosen = {"radix_cache": False, "max_running_requests": 64, "available_memory_bytes": 40 * 2**30}
    longer = SlidingWindow(**HEADS, sliding_window=1024)
    found = run(*[(FULL,)] * 12, *[(longer,)] * 36, **chosen)
    assert (found.sizes.window.value, found.tokens.value) == (98_304, 578_880)
    staged = run(*[(FULL,), (longer,)] * 8, **chosen, pipeline_parallel_size=2)
    assert staged.sizes.window.value == 98_304


def test_a_drafter_allocates_more_of_a_window_per_step():
    plain, drafted = (request_cap(1, 128, 64, drafts, CapOptions()).value for drafts in (0, 4))
    assert drafted - plain == 3 * 128 + 2 * 4 - 64
    slow = request_cap(1, 128, 64, 4, CapOptions(overlap_schedule=False)).value
    assert slow == 128 + 4 * 128 + 64 + 64 + 8192 + 64


def test_a_prompt_that_is_not_cut_into_chunks_has_no_cap():
    """`_resolve_swa_cap_tokens`: then the ratio decides, but on a decode server, which computes no prompt."""
    chosen = {"compress_ratios": [2, 4], "kv_source_layer_ids": [0], "page_size": 256}
    chosen |= {"available_bytes": 2**36, "kv_layout": "v41", "max_running_requests": 4}
    case = {**chosen, "chunked_prefill_size": -1}
    assert RUNNERS["pool_dsv4"](case, NEW)["swa_cap_tokens"] is None
    assert RUNNERS["pool_dsv4"]({**case, "disaggregation_mode": "decode"}, NEW)["swa_cap_tokens"] > 0


def test_a_drafter_of_a_sparse_model_has_room_for_all_tokens():
    """Two layers of 2048 bytes and a key of 256; HiSparse's ratio is `draft_loc_space_scale`."""
    sizes = {"dense": [0], "sparse": [1], "sparse_index_dim": 128, "k_only": [1]}
    case = {"num_layers": 2, "num_key_value_heads": 4, "head_dim": 128, "kv_cache_dtype": "bfloat16"}
    case |= {"minimax_sparse": sizes, "available_bytes": 2**36, "page_size": 64}
    case |= {"hisparse_host_to_device_ratio": 2, "eagle_draft_num_layers": 1}
    target = 2 * 2048 + 2048 + 2 * 256
    assert RUNNERS["pool_default"](case, NEW)["cell_size"] == target + target // 2 * 2


def test_deepseek_v4_prices_padding_and_sets_states_aside():
    found = v4(*V4_LAYERS)
    (key, values), *_ = found.notes
    assert key == "sglang.note_v4_fixed"
    assert values["requests"] == 256
    sent = transfer(found, 1000)
    assert sent.request_bytes.value == 4 * 128 * 1024 * 4
    assert sent.total_bytes.value > sent.kv_bytes.value + sent.extra_bytes.value
    assert any(line.quantity == "transfer.request_bytes" for line in sent.derivations())
    online = v4(*V4_LAYERS, online_c128=True, fp4_indexer=True, compress_state_bytes=2)
    assert online.tokens.value > found.tokens.value
    drafted = v4(*V4_LAYERS, speculative_num_draft_tokens=2)
    assert drafted.tokens.value < found.tokens.value


def test_deepseek_v4_1_caps_its_windows_and_keeps_pairs_per_request():
    found = v4(*V41_LAYERS, max_running_requests=4)
    names = {buffer.name for buffer in found.tightest.pool.buffers}
    assert {"c1_kv_buffer", "c2_kv_buffer", "c2_state", "c1_indexer_buffer"} <= names
    assert "c4_kv_buffer" not in names
    assert v4(*V41_LAYERS, swa_full_tokens_ratio=0.1).sizes.window.value == pytest.approx(
        v4(*V41_LAYERS, swa_full_tokens_ratio=0.1).tokens.value / 10, rel=0.01
    )
    assert v4(*V41_LAYERS, v4_backend="trtllm", max_running_requests=4).tokens.value > 0


def test_states_are_priced_for_the_largest_stage():
    layers = [(DELTA,), (DELTA,), (FULL,), (FULL,)]
    old, new = (run(*layers, version=version, pipeline_parallel_size=1) for version in (OLD, NEW))
    assert old.states.per_request.value == new.states.per_request.value
    layers = [(DELTA,), (FULL,), (DELTA,), (FULL,), (DELTA,), (FULL,)]
    old, new = (run(*layers, version=version, pipeline_parallel_size=2) for version in (OLD, NEW))
    assert 3 * new.states.per_request.value == 2 * old.states.per_request.value


EXTENT = Extent(tokens=640, page_size=64, layers=2)


@pytest.mark.parametrize("order", ["page_first", "page_first_direct"])
def test_a_host_pool_keeps_v_in_its_own_width(order):
    size, rules = host.HostSize(layout=order), rules_of(NEW)
    pool = host.attention_host(UNEVEN.row(1), BF16, EXTENT, size, rules)
    assert pool.name == "AsymmetricMHATokenToKVPoolHost"
    assert pool.token_bytes.value == (192 + 128) * 8 * 2 * 2
    assert [buffer.dims[-1] for buffer in pool.buffers] == [192, 128]
    with pytest.raises(EngineError, match="no layout"):
        host.attention_host(UNEVEN.row(1), BF16, EXTENT, host.HostSize(), rules)
    with pytest.raises(EngineError, match="FP4"):
        host.attention_host(FULL.row(1), NVFP4, EXTENT, host.HostSize(), rules)


def test_a_host_pool_may_be_smaller():
    small = host.HostSize(ratio=0.5)
    assert host.attention_host(FULL.row(1), BF16, EXTENT, small, rules_of(NEW)).tokens.value == 384


def test_pooled_index_keys_have_tails():
    case = {
        "pool": "DSATokenToKVPool",
        "size": 65_536,
        "page_size": 256,
        "layer_num": 2,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "index_head_dim": 128,
        "dtype": "fp8_e4m3",
        "index_kpool": 4,
        "index_kpool_compress": True,
        "max_running_requests_pool": 8,
    }
    found = RUNNERS["device_buffers"](case, NEW)
    assert found["tail_buffer_shape"] == [9, 4, 128]
    assert found["index_k_with_scale_buffer_shape"][1] == 64 * 132


def test_compressed_index_keys_of_attention():
    case = {
        "available_bytes": MEMORY,
        "page_size": 64,
        "num_layers": 2,
        "kv_cache_dtype": "bfloat16",
        "num_key_value_heads": 8,
        "head_dim": 128,
        "qsa": {"heads": 2, "dim": 128, "ratio": 4},
    }
    assert RUNNERS["pool_default"](case, NEW)["cell_size"] == 2 * (4096 + 128)


def test_a_backend_decides_by_platform_how_latents_are_stored():
    rules = rules_of(NEW).plain_latent_backends
    assert latent_format(FP8, sparse=True, backend="tilelang", plain=rules["cuda"]) == FP8
    assert RUNNERS["mla_kv_cache_dim"](
        {
            "is_dsa": True,
            "is_hip": True,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "kv_cache_dtype": "fp8_e4m3",
            "dsa_backend": "aiter",
        },
        NEW,
    ) == {"kv_cache_dim": 576}


def test_a_pool_of_mxfp8_and_one_of_nvfp4_by_hand():
    assert attention_pool(FULL.row(1), MXFP8, EXTENT).name == "MHATokenToKVPoolMXFP8"
    both = Nvfp4Scales(native=False, linear=True, workspace=False)
    assert len(nvfp4_pool(FULL.row(1), EXTENT, both).buffers) == 4


def test_a_window_pool_without_room_for_its_cap_is_named_as_the_file_names_it():
    case = {
        "available_bytes": 2**22,
        "page_size": 64,
        "num_full_layers": 1,
        "num_swa_layers": 1,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "kv_cache_dtype": "bfloat16",
        "request_cap": True,
        "sliding_window_size": 127,
        "max_running_requests": 128,
        "disable_radix_cache": True,
    }
    assert RUNNERS["pool_swa"](case, NEW)["error"] == "pool_too_small"
    unlimited = {"compress_ratios": [0, 4, 128], "available_bytes": MEMORY, "page_size": 256}
    flash = unlimited | {"available_bytes": 2**20, "max_running_requests": 1}
    assert RUNNERS["pool_dsv4"](flash, NEW)["error"] == "pool_too_small"
    tails = unlimited | {"max_running_requests": 1, "swa_prefix_tails": 7}
    assert RUNNERS["pool_dsv4"](tails, NEW)["swa_prefix_tails"] == 7
    for version in (OLD, NEW):
        with pytest.raises(EngineError, match="128"):
            RUNNERS["pool_dsv4"](unlimited | {"page_size": 64}, version)
    assert RUNNERS["pool_dsv4"](unlimited, NEW)["max_running_requests"] >= 2048
    assert replace(CapOptions(), decode=True, extra_slots=3).decode_slots == 3
