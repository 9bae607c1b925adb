"""Worked figures of the formula specification that no given case holds."""

import pytest

from calculator import caches
from calculator.engines.sglang import deepseek_v4, hisparse, host
from calculator.engines.sglang.buffers import Extent
from calculator.engines.sglang.cases import RUNNERS
from calculator.engines.sglang.cell import capacity
from calculator.engines.sglang.requests import request_limit, request_map
from calculator.engines.sglang.rules import rules_of
from calculator.engines.sglang.state import state_shape
from calculator.errors import EngineError
from calculator.explain import double, lift, symbol, whole
from calculator.formats import BF16, Storage
from calculator.units import number_json

V = "0.5.13"
GIB = 2**30
FLASH = [0, 0] + [4, 128] * 20 + [4]
PRO = [128, 128] + [4, 128] * 29 + [4]
MHA = {"pool": "MHATokenToKVPool", "size": 65_536, "page_size": 64, "layer_num": 32}
MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
DSA = {"pool": "DSATokenToKVPool", "size": 65_536, "page_size": 64, "index_head_dim": 128, **MLA}
QWEN = {
    "kind": "mamba2",
    "num_linear_layers": 45,
    "args": {
        "tp_world_size": 1,
        "intermediate_size": 8192,
        "n_groups": 16,
        "num_heads": 64,
        "head_dim": 128,
        "state_size": 128,
        "conv_kernel": 4,
    },
}


def cell(**case):
    given = {"num_layers": 32, "available_bytes": GIB, "page_size": 64, **case}
    return RUNNERS["pool_default"](given, V)["cell_size"]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"num_key_value_heads": 32, "head_dim": 128, "kv_cache_dtype": "float16"}, 524_288),
        ({"num_key_value_heads": 32, "head_dim": 128, "kv_cache_dtype": "fp4_e2m1"}, 147_456),
        ({"num_layers": 60, "use_mla_backend": True, "kv_cache_dtype": "float16", **MLA}, 69_120),
        (
            {"num_layers": 61, "use_mla_backend": True, "kv_cache_dtype": "fp8_e4m3", "index_topk": 1, **MLA},
            43_188,
        ),
        (
            {"num_layers": 78, "use_mla_backend": True, "kv_cache_dtype": "bfloat16", "index_topk": 1, **MLA},
            100_152,
        ),
        # formulas-newest.md 6.2: what 0.5.13 gives for K and V of different size.
        (
            {
                "num_layers": 48,
                "num_key_value_heads": 4,
                "head_dim": 192,
                "v_head_dim": 128,
                "kv_cache_dtype": "fp4_e2m1",
            },
            35_328,
        ),
    ],
)
def test_cell_sizes(case, expected):
    assert cell(**case) == expected


def test_the_terms_of_deepseek_v4():
    def terms(ratios, **options):
        model = deepseek_v4.V4Model.of_ratios(ratios)
        options = deepseek_v4.V4Options(swa_full_tokens_ratio=0.1, **options)
        return [float(term.value) for term in deepseek_v4.terms(model, options).values()]

    assert terms(FLASH) == pytest.approx([2511.2, 3066, 91.25, 693, 1075.2, 8192, 268.8])
    assert terms(PRO) == pytest.approx([3562.4, 4380, 141.4375, 990, 1536, 12_697.6, 384])


@pytest.mark.parametrize(
    ("ratios", "options", "weight", "full"),
    [
        (FLASH, {}, 15_897.45, 4_052_480),
        (PRO, {}, 23_691.4375, 2_719_232),
        (PRO, {"hisparse_host_to_device_ratio": 2}, 21_501.4375, None),
        ([*FLASH, 0], {"num_layers": 43}, 15_897.45, 4_052_480),  # the drafter's entry is cut
    ],
)
def test_the_weight_of_deepseek_v4(ratios, options, weight, full):
    case = {"compress_ratios": ratios, "available_bytes": 60 * GIB, "page_size": 256, **options}
    got = RUNNERS["pool_dsv4"](case, V)
    assert got["bytes_per_full_token"] == pytest.approx(weight, rel=1e-12)
    assert full in (None, got["full_max_total_num_tokens"])


def test_sizes_of_flash_and_what_they_take():
    case = {"compress_ratios": FLASH, "available_bytes": 60 * GIB, "page_size": 256}
    got = RUNNERS["pool_dsv4"](case, V)
    names = {
        "swa_size": "swa_max_total_num_tokens",
        "c4_size": "c4_max_total_num_tokens",
        "c128_size": "c128_max_total_num_tokens",
        "c4_state_pool_size": "c4_state_pool_size",
        "c128_state_pool_size": "c128_state_pool_size",
    }
    sizes = {name: got[source] for name, source in names.items()}
    assert list(sizes.values()) == [405_248, 1_013_120, 31_660, 25_328, 405_248]
    pool = {"pool": "DeepSeekV4TokenToKVPool", "page_size": 256, "compress_ratios": FLASH, **sizes}
    assert RUNNERS["device_buffers"](pool, V)["total_bytes"] == 64_671_085_248


def test_windows_alone_have_no_ratio():
    case = {
        "kv_cache_dtype": "bfloat16",
        "available_bytes": 40 * GIB,
        "page_size": 64,
        "num_full_layers": 0,
        "num_swa_layers": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
    }
    got = RUNNERS["pool_swa"](case, V)
    assert got["cell_size"] == 131_072
    assert (got["full_max_total_num_tokens"], got["swa_max_total_num_tokens"]) == (0, 327_680)


def test_windows_may_have_heads_of_their_own():
    case = {
        "swa_full_tokens_ratio": 0.5,
        "kv_cache_dtype": "bfloat16",
        "available_bytes": 40 * GIB,
        "page_size": 64,
        "num_full_layers": 2,
        "num_swa_layers": 3,
        "num_key_value_heads": 4,
        "head_dim": 192,
        "v_head_dim": 128,
        "swa_num_key_value_heads": 8,
        "swa_head_dim": 64,
        "swa_v_head_dim": 32,
    }
    got = RUNNERS["pool_swa"](case, V)
    assert (got["full_per_token_per_layer"], got["swa_per_token_per_layer"]) == (2560, 1536)
    assert got["cell_size"] == 2560 * 2 + 0.5 * 1536 * 3
    without_v = RUNNERS["pool_swa"]({**case, "swa_v_head_dim": None}, V)
    assert without_v["swa_per_token_per_layer"] == 2048


def test_latent_rows_of_sparse_attention():
    def width(**case):
        return RUNNERS["mla_kv_cache_dim"]({**MLA, "is_dsa": True, "kv_cache_dtype": "fp8_e4m3", **case}, V)[
            "kv_cache_dim"
        ]

    assert width(dsa_backend="flashmla_kv") == width() == 656
    assert width(dsa_prefill_backend="flashmla_sparse", dsa_decode_backend="trtllm") == 576
    assert width(dsa_backend="tilelang") == 656
    assert width(dsa_backend="tilelang", is_hip=True) == 576
    assert width(kv_cache_dtype="fp8_e5m2") == width(kv_cache_dtype="fp4_e2m1") == 576


def test_sparse_pools_by_the_width_of_their_rows():
    def shapes(**case):
        got = RUNNERS["device_buffers"]({**DSA, "layer_num": 61, "dtype": "fp8_e4m3", **case}, V)
        return got["kv_buffer_shape"][-1], got["index_k_with_scale_buffer_shape"][0]

    assert shapes() == shapes(kv_cache_dim=656) == (656, 1025)
    assert shapes(dtype="bfloat16") == (576, 1025)
    assert shapes(pool="HiSparseDSATokenToKVPool") == shapes(enable_hisparse=True) == (656, 2049)


def test_fp4_pools_are_as_large_as_their_cell():
    heads = {"head_num": 8, "head_dim": 128, "dtype": "fp4_e2m1"}
    got = RUNNERS["device_buffers"]({**MHA, **heads, "pool": "MHATokenToKVPoolFP4"}, V)
    assert got["k_buffer_shape"] == got["v_buffer_shape"] == [65_600, 8, 64]
    assert got["k_scale_buffer_shape"] == got["v_scale_buffer_shape"] == [65_600, 64]
    assert got["total_bytes"] == 36_864 * 65_600
    latent = {**MHA, **MLA, "pool": "MLATokenToKVPoolFP4", "layer_num": 60, "dtype": "fp4_e2m1"}
    got = RUNNERS["device_buffers"](latent, V)
    assert (got["kv_buffer_shape"], got["kv_scale_buffer_shape"]) == ([65_600, 1, 288], [65_600, 36])
    assert got["total_bytes"] == 19_440 * 65_600


def test_the_layout_of_rocm_takes_the_same_bytes():
    case = {**MHA, "head_num": 8, "head_dim": 128, "dtype": "bfloat16"}
    plain = RUNNERS["device_buffers"](case, V)
    got = RUNNERS["device_buffers"]({**case, "kv_cache_layout": "vectorized_5d"}, V)
    assert (got["k_buffer_shape"], got["v_buffer_shape"]) == (
        [1025, 8, 16, 64, 8],
        [1025, 8, 8, 128, 8],
    )
    assert got["total_bytes"] == plain["total_bytes"]
    assert got["kv_item_lens_sum"] == plain["kv_item_lens_sum"]


def test_state_pools():
    pool = {
        "pool": "MambaPool",
        "page_size": 1,
        "size": 100,
        "layer_num": 45,
        "conv_shapes": [[12_288, 3]],
        "temporal_shape": [64, 128, 128],
    }
    got = RUNNERS["device_buffers"](pool, V)
    assert got["conv_state_shape"] == [[45, 101, 12_288, 3]]
    assert got["temporal_state_shape"] == [45, 101, 64, 128, 128]
    assert got["total_bytes"] == 101 * 192_061_440
    drafts = {"speculative_num_draft_tokens": 4, "spec_state_size": 32}
    got = RUNNERS["device_buffers"]({**pool, **drafts}, V)
    # formulas-newest.md section 5: before windows were shared.
    assert got["intermediate_conv_window_shape"] == [[45, 33, 4, 12_288, 3]]
    assert got["intermediate_ssm_shape"] == [45, 33, 4, 64, 128, 128]
    assert got["total_bytes"] == (101 + 33 * 4) * 192_061_440


def test_hybrid_pools():
    attention = {**MHA, "pool": "HybridLinearKVPool", "head_num": 2, "head_dim": 256, "dtype": "bfloat16"}
    tokens = 15 * 65_600 * 2048
    got = RUNNERS["device_buffers"]({**attention, "layer_num": 15}, V)
    assert got["total_bytes"] == tokens
    with_state = {**attention, "layer_num": 15, "state": {**QWEN, "size": 158}}
    got = RUNNERS["device_buffers"](with_state, V)
    assert got["total_bytes"] == tokens + 159 * 192_061_440
    latents = {**MHA, **MLA, "pool": "HybridLinearKVPool", "dtype": "bfloat16", "layer_num": None}
    got = RUNNERS["device_buffers"]({**latents, "full_attention_layer_ids": [3, 7]}, V)
    assert got["total_bytes"] == 2 * 65_600 * 1152


def test_the_map_from_requests_to_slots():
    pool = {"pool": "ReqToTokenPool", "size": 4096, "max_context_len": 131_076}
    got = RUNNERS["device_buffers"](pool, V)
    assert got["req_to_token_shape"] == [4097, 131_076]
    assert got["total_bytes"] == 4097 * 131_076 * 4
    assert request_map(4096, 131_072, rules_of(V), draft_tokens=4).dims == (4097, 131_080)


def test_recurrent_state_in_bfloat16_and_on_ranks():
    got = RUNNERS["mamba_state"]({**QWEN, "temporal_dtype": "bfloat16"}, V)
    assert got["mamba_cache_per_req"] == 97_689_600
    kimi = {
        "kind": "kda",
        "num_linear_layers": 20,
        "args": {"tp_world_size": 1, "num_heads": 32, "head_dim": 128, "conv_kernel_size": 4, "num_spec": 0},
    }
    # formulas-newest.md section 5: 2,170,880 bytes per layer, as before.
    assert RUNNERS["mamba_state"](kimi, V)["mamba_cache_per_req"] == 20 * 2_170_880
    wide = {**kimi, "args": {**kimi["args"], "num_k_heads": 16, "head_k_dim": 64}}
    assert RUNNERS["mamba_state"](wide, V)["conv_shapes"] == [[3, 4096 + 2 * 1024]]


@pytest.mark.parametrize(
    ("case", "slots", "left"),
    [
        ({}, 158, 34_078_801_920),
        ({"disable_radix_cache": True, "max_running_requests": 64}, 64, 52_132_577_280),
        ({"max_mamba_cache_size": 200, "dp_size": 2}, 100, 45_218_365_440),
        ({"max_mamba_cache_size": 200, "dp_size": 2, "enable_dp_attention": False}, 200, 26_012_221_440),
    ],
)
def test_the_split_between_states_and_tokens(case, slots, left):
    # The second: formulas-newest.md section 5 has 51,940,515,840 with one more slot of 192,061,440 deducted.
    got = RUNNERS["mamba_memory_split"]({"total_rest_bytes": 60 * GIB, "state": QWEN, **case}, V)
    assert (got["max_mamba_cache_size"], got["kv_available_bytes"]) == (slots, left)


def test_a_drafter_takes_copies_of_states():
    case = {
        "total_rest_bytes": 60 * GIB,
        "state": QWEN,
        "speculative_num_draft_tokens": 4,
        "max_running_requests": 48,
    }
    each = 192_061_440
    got = RUNNERS["mamba_memory_split"](case, V)
    assert got["max_mamba_cache_size"] == 68  # ⌊budget / (each · (1 + 4 / 3))⌋
    assert got["kv_available_bytes"] == 60 * GIB - (68 + 22 * 4) * each
    got = RUNNERS["mamba_memory_split"]({**case, "max_mamba_cache_size": 100}, V)
    assert got["kv_available_bytes"] == 60 * GIB - (100 + 33 * 4) * each
    got = RUNNERS["mamba_memory_split"]({**case, "disable_radix_cache": True}, V)
    assert got["kv_available_bytes"] == 60 * GIB - (48 + 48 * 4) * each


def test_requests():
    limit = RUNNERS["max_num_reqs"]
    tokens = {"context_len": 131_072, "max_total_num_tokens": 500_000}
    assert limit({**tokens, "max_running_requests": 100}, V)["max_num_reqs"] == 100
    assert limit({**tokens, "max_running_requests": 100, "dp_size": 8}, V)["max_num_reqs"] == 12
    # formulas-newest.md A.2: clamped in this version.
    assert limit({**tokens, "max_running_requests": 9000, "dp_size": 2}, V)["max_num_reqs"] == 2048
    states = {**tokens, "max_mamba_cache_size": 158, "enable_mamba_extra_buffer": True}
    assert limit(states, V)["max_num_reqs"] == 31
    assert limit({**states, "disable_radix_cache": True}, V)["max_num_reqs"] == 158
    assert request_limit(10**9, 10**6, rules_of(V)).value == 4096


LLAMA = {**MHA, "head_num": 8, "head_dim": 128, "dtype": "bfloat16"}


def host_case(layout, **case):
    return RUNNERS["host_buffers"]({"page_size": 64, "layout": layout, "device_pool": LLAMA, **case}, V)


def test_host_pools():
    got = host_case("page_head", host_size=100)
    assert got["size"] == 762_944
    assert got["total_bytes"] == 100_000_595_968
    assert got["kv_buffer_dims"] == [2, 11_921, 8, 64, 32, 128]
    v32 = {**DSA, "layer_num": 61, "dtype": "fp8_e4m3"}
    got = host_case("layer_first", device_pool=v32)
    assert (got["size_per_token"], got["indexer_size_per_token"]) == (40_016, 8_052)
    assert got["indexer_buffer_dims"] == [61, 2050, 8448]
    assert host_case("page_first", device_pool=v32)["indexer_buffer_dims"] == [2050, 61, 1, 8448]
    bf16 = {**DSA, "layer_num": 61, "dtype": "bfloat16"}
    split = host_case("page_first_kv_split", device_pool=bf16)
    assert split["kv_buffer_dims"] == [2049, 61, 64, 1, 512]


def test_a_layout_that_splits_rows_has_three_buffers():
    row = caches.MLA(kv_lora_rank=512, qk_rope_head_dim=64).row(1)
    size = host.HostSize(layout="page_first_kv_split")
    extent = Extent(tokens=640, page_size=64, layers=2)
    both = host.latent_host(
        row, BF16, extent, size, rules_of("0.5.13"), caches.IndexKey(index_head_dim=128).row(1)
    )
    assert [(buffer.name, buffer.dims[-1]) for buffer in both.buffers] == [
        ("latent_buffer", 512),
        ("rope_buffer", 64),
        ("index_buffer", 128),
    ]
    assert len(host.latent_host(row, BF16, extent, size, rules_of("0.5.13")).buffers) == 2


def test_host_pools_of_states_and_of_deepseek_v4_are_rows_of_the_device():
    delta = caches.GatedDeltaNet(
        conv_kernel=4,
        linear_num_key_heads=16,
        linear_num_value_heads=64,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
    )
    shape = state_shape(delta, Storage(), 1)
    first = host.state_host(shape, 45, 10, "layer_first")
    assert [buffer.dims for buffer in first] == [(45, 10, 12_288, 3), (45, 10, 64, 128, 128)]
    assert host.state_host(shape, 45, 10, "page_first")[0].dims == (10, 45, 1, 12_288, 3)
    assert sum(buffer.bytes.value for buffer in first) == 10 * 192_061_440
    short = state_shape(caches.ShortConvolution(conv_kernel=3, hidden_size=64), Storage(), 1)
    assert len(host.state_host(short, 2, 5, "layer_first")) == 1

    model = deepseek_v4.V4Model.of_ratios(FLASH)
    options = deepseek_v4.V4Options(swa_full_tokens_ratio=0.1)
    held = deepseek_v4.sizes(model, options, lift(256_000), 256)
    device = deepseek_v4.v4_pool(model, options, held, 256).buffers[0]
    assert host.paged_host(device, 7, "layer_first").dims == (7, 149_760)
    assert host.paged_host(device, 7, "page_first").dims == (7, 43, 149_760)
    layouts = ("layer_first", "page_first")
    assert {host.paged_host(device, 7, layout).bytes.value for layout in layouts} == {7 * 43 * 149_760}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("layer_first", "kernel"), ("layer_first", "kernel")),
        (("page_first", "direct"), ("page_first_direct", "direct")),
        (("page_first_direct", "kernel"), ("page_first_direct", "direct")),
        (("layer_first", "kernel", "mooncake"), ("page_first", "kernel")),
        (("layer_first", "direct", "mooncake"), ("page_first_direct", "direct")),
    ],
)
def test_layouts_that_are_switched(given, expected):
    assert host.resolved_layout(*given) == expected


def test_hisparse_keeps_a_part_of_each_request_on_the_device():
    buffer = hisparse.device_buffer_size(2048).value
    assert buffer == 4096
    assert hisparse.device_latents(1_000, buffer, 64).value == 1_000
    assert hisparse.device_latents(100_000, buffer, 64).value == 4_160
    assert hisparse.logical_tokens(65_536, 2).value == 131_072


SENT = [
    (LLAMA, {}, 1563, 13_111_394_304),
    ({**DSA, "layer_num": 61, "dtype": "fp8_e4m3"}, {"state_type": "dsa"}, 1563, 4_002_880_512),
]


def test_bytes_from_prefill_to_decode():
    send = RUNNERS["pd_transfer"]
    for device, extra, pages, sent in SENT:
        got = send({"device": device, "num_tokens": 100_000, **extra}, V)
        assert (got["num_pages"], got["kv_bytes"]) == (pages, sent)
    qwen = {**MHA, "layer_num": 15, "head_num": 2, "head_dim": 256, "dtype": "bfloat16"}
    got = send({"device": qwen, "num_tokens": 64, "state_type": "mamba", "state": QWEN}, V)
    assert (got["kv_bytes"], got["state_pages"], got["state_bytes"]) == (1_966_080, 1, 192_061_440)
    middle = {"already_sent_tokens": 0, "chunk_end_tokens": 1000, "last_chunk": False}
    got = send({"device": LLAMA, "num_tokens": 2000, **middle}, V)
    assert got["sent_tokens"] == 960


def test_the_formula_of_capacity():
    tokens = capacity(60 * GIB, lift(131_072), 64)
    assert tokens.value == 491_520
    assert tokens.numbers == "⌊⌊64,424,509,440 / 131,072⌋ / 64⌋ · 64"


def test_what_the_engine_computes_in_doubles_is_written_as_it_was_computed():
    half = double(lift(1) / 2)
    assert isinstance(half.value, float)
    tokens = whole(symbol("full", 1001) * half)
    assert (tokens.value, tokens.symbols, tokens.numbers) == (500, "⌊full · 1 / 2⌋", "⌊1,001 · 1 / 2⌋")
    assert (lift(7) // lift(2.0)).value == 3
    assert isinstance((lift(7) // lift(2.0)).value, int)
    assert number_json(half.value) == 0.5


def test_no_state_slot_for_a_single_request():
    """SGLang 0.5.13 _resolve_max_num_reqs raises where slots / r is 0."""
    with pytest.raises(EngineError, match="fewer than the 3"):
        request_limit(10**6, 2_048, rules_of(V), state_slots=2, slots_per_request=3)
    assert request_limit(10**6, 2_048, rules_of(V), state_slots=3, slots_per_request=3).value == 1


def test_online_c128_refuses_a_drafter():
    """SGLang 0.5.13 get_compress_state_ring_size: online c128 does not support MTP."""
    with pytest.raises(EngineError, match="speculative"):
        deepseek_v4.V4Options(swa_full_tokens_ratio=0.1, speculative=True, online_c128=True)
