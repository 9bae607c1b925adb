"""Cases whose answers SGLang 0.5.23 itself gave: its configurators and pools, run with these inputs."""

import pytest

from calculator.engines.sglang.cases import RUNNERS

NEW = "0.5.23"
LATENTS = {"use_mla_backend": True, "kv_lora_rank": 512, "qk_rope_head_dim": 64}


@pytest.mark.parametrize(
    ("case", "cell"),
    [
        # One form of four bits for latents, by both names.
        ({**LATENTS, "num_layers": 74, "kv_cache_dtype": "nvfp4"}, 23_976),
        ({**LATENTS, "num_layers": 74, "kv_cache_dtype": "fp4_mx_block16"}, 23_976),
        # A drafter beside HiSparse has room for the tokens of the host, also without an indexer.
        (
            {
                "num_layers": 2,
                "num_key_value_heads": 8,
                "head_dim": 128,
                "attn_tp_size": 2,
                "kv_cache_dtype": "bfloat16",
                "eagle_draft_num_layers": 1,
                "hisparse_host_to_device_ratio": 4,
            },
            12_288,
        ),
        # Of four attention layers among sixteen the first and third own index keys.
        (
            {
                **LATENTS,
                "num_layers": 16,
                "kv_cache_dtype": "fp8_e4m3",
                "index_topk": 2048,
                "index_head_dim": 128,
                "full_attention_layer_ids": [3, 7, 11, 15],
                "skip_topk_layers": [1, 2, 7, 14, 15],
            },
            2_888,
        ),
    ],
)
def test_cells_that_the_engine_itself_computed(case, cell):
    """From `DefaultPoolConfigurator` of 0.5.23, run with these inputs."""
    answered = RUNNERS["pool_default"]({"page_size": 64, "available_bytes": 2**34, **case}, NEW)
    assert answered["cell_size"] == cell


@pytest.mark.parametrize(
    ("prefill", "decode", "role", "width"),
    [
        ("trtllm", "tilelang", "decode", 656),
        ("tilelang", "trtllm", "prefill", 656),
        ("trtllm", "tilelang", "prefill", 576),
        ("tilelang", "tilelang", "decode", 576),
    ],
)
def test_raw_rows_need_tilelang_in_both_phases(prefill, decode, role, width):
    """`calculate_mla_kv_cache_dim` looks at both phases for TileLang, at the server's own for TRT-LLM."""
    case = {
        "is_dsa": True,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "kv_cache_dtype": "fp8_e4m3",
        "dsa_prefill_backend": prefill,
        "dsa_decode_backend": decode,
        "disaggregation_mode": role,
    }
    assert RUNNERS["mla_kv_cache_dim"](case, NEW) == {"kv_cache_dim": width}


def test_the_given_window_sizes_the_windows_of_deepseek_v4():
    """`DSV4PoolConfigurator` of 0.5.23 with a window of 64 and 48 requests at pages of 128."""
    case = {
        "compress_ratios": [0, 0, 4, 128, 4],
        "available_bytes": 2**36,
        "page_size": 128,
        "max_running_requests": 48,
        "sliding_window_size": 64,
    }
    assert RUNNERS["pool_dsv4"](case, NEW)["swa_cap_tokens"] == 74_880


def test_a_window_pool_keeps_v_as_wide_as_the_other_layers():
    """`SWAKVPool` of 0.5.23 with only K's width given for its windows."""
    case = {
        "pool": "SWAKVPool",
        "size": 4096,
        "size_swa": 2752,
        "page_size": 64,
        "num_full_layers": 1,
        "num_swa_layers": 6,
        "head_num": 8,
        "head_dim": 128,
        "swa_head_dim": 64,
        "dtype": "fp8_e4m3",
    }
    answered = RUNNERS["device_buffers"](case, NEW)
    assert (answered["swa_v_buffer_shape"], answered["total_bytes"]) == ([2816, 8, 128], 34_471_936)


def test_pair_states_of_a_decode_server_are_those_of_all_its_slots():
    """`DeepSeekV4TokenToKVPool` of 0.5.23: 41 slots for 8 requests, (41 + 1) · 2 + 1 rows, made even."""
    case = {
        "pool": "DeepSeekV4TokenToKVPool",
        "page_size": 256,
        "swa_size": 104_192,
        "c4_size": 104_704,
        "c128_size": 3_272,
        "full_size": 418_816,
        "max_num_reqs": 8,
        "num_req_slots": 41,
        "compress_ratios": [0, 0, 2, 2, 2, 2, 2, 2],
        "kv_source_layer_ids": [2, 4, 6],
        "c4_state_pool_size": 3_256,
        "c128_state_pool_size": 5_248,
    }
    answered = RUNNERS["device_buffers"](case, NEW)
    assert (answered["c2_state_shape"], answered["c2_state_bytes"]) == ([86, 1024], 1_056_768)
