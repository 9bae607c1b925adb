"""What SGLang does not start with, and what is no legal setting: a test per refusal."""

from dataclasses import replace

import pytest

from calculator.caches import (
    MLA,
    RGLRU,
    CrossAttention,
    FullAttention,
    GatedDeltaNet,
    IndexKey,
    SinkAttention,
    SlidingWindow,
    SlidingWindowMLA,
)
from calculator.engines.sglang import Settings, allocate, host
from calculator.engines.sglang.buffers import Extent
from calculator.engines.sglang.cases import RUNNERS
from calculator.engines.sglang.pools import vectorised_pool
from calculator.engines.sglang.rules import rules_of
from calculator.engines.sglang.sending import chunk_tokens
from calculator.errors import EngineError, FieldError
from calculator.formats import BF16, FP4_E2M1, FP8_DS_MLA, FP8_PER_TOKEN_HEAD, FP8_V4, NVFP4, Storage
from calculator.model import ModelPlan

V = "0.5.13"
HEADS = {"num_kv_heads": 8, "head_size": 128, "head_size_v": 128}
FULL = FullAttention(**HEADS)
WINDOW = SlidingWindow(**HEADS, sliding_window=128)
LATENT = MLA(kv_lora_rank=512, qk_rope_head_dim=64)
INDEX = IndexKey(index_head_dim=128)
DELTA = GatedDeltaNet(
    conv_kernel=4,
    linear_num_key_heads=16,
    linear_num_value_heads=64,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
)
V4 = SlidingWindowMLA(head_size=512, qk_rope_head_dim=64, sliding_window=128)
MEMORY = 2**34


def run(*layers, kv=BF16, storage=None, version=V, **chosen):
    chosen = {"available_memory_bytes": MEMORY, "page_size": 64, **chosen}
    return allocate(ModelPlan(layers=layers), storage or Storage(kv=kv), Settings(**chosen), version)


@pytest.mark.parametrize(
    ("key", "layers", "chosen"),
    [
        ("sglang.swa_fp4", [(FULL,), (WINDOW,)], {"kv": FP4_E2M1}),
        ("sglang.format_since", [(FULL,)], {"kv": NVFP4}),
        ("sglang.format", [(FULL,)], {"kv": FP8_PER_TOKEN_HEAD}),
        ("sglang.format", [(FULL,)], {"kv": FP8_DS_MLA}),
        ("sglang.format", [(LATENT,)], {"kv": FP8_V4}),
        ("sglang.format", [(V4,)], {"kv": FP4_E2M1, "page_size": 256}),
        ("sglang.format", [(DELTA,), (FULL,)], {"storage": Storage(recurrent=NVFP4)}),
        ("sglang.sparse_format", [(LATENT, INDEX)], {"kv": FP4_E2M1}),
        ("sglang.plain_rows", [(LATENT,)], {"kv": FP8_DS_MLA}),
        ("sglang.plain_rows", [(LATENT, INDEX)], {"kv": FP8_DS_MLA, "dsa_backend": "trtllm"}),
        ("sglang.tp", [(FULL,)], {"tensor_parallel_size": 3}),
        ("sglang.platform", [(FULL,)], {"platform": "plug-in"}),
        ("sglang.platform", [(FULL,)], {"attention_backend": "ascend"}),
        ("sglang.kind", [(CrossAttention(**HEADS),)], {}),
        ("sglang.kind", [(SinkAttention(**HEADS, sink_len=16),)], {}),
        ("sglang.kind", [(FULL,), (RGLRU(conv_kernel=4, lru_width=64),)], {}),
        ("sglang.shapes", [(FULL,), (FullAttention(num_kv_heads=4, head_size=64, head_size_v=64),)], {}),
        ("sglang.mixture", [(FULL,), (LATENT,)], {}),
        ("sglang.mixture", [(DELTA,)], {}),
        ("sglang.mixture", [()], {}),
        ("sglang.memory", [(FULL,)], {"available_memory_bytes": 100}),
        ("sglang.state_memory", [(FULL,), (DELTA,)], {"available_memory_bytes": 100}),
        ("sglang.stage_window", [(FULL,), (WINDOW,)], {"pipeline_parallel_size": 2}),
        ("sglang.stage_empty", [(FULL,), (DELTA,)], {"pipeline_parallel_size": 2}),
        ("sglang.hybrid_fp4", [(FULL,), (DELTA,)], {"kv": FP4_E2M1}),
        ("sglang.hybrid_fp4", [(LATENT,), (DELTA,)], {"kv": FP4_E2M1}),
        ("sglang.page", [(V4,)], {"page_size": 64}),
        ("sglang.page", [(V4,)], {"page_size": 128}),
        ("sglang.page", [(LATENT, INDEX)], {"page_size": 1}),
        ("sglang.page", [(LATENT, INDEX)], {"page_size": 128}),
        ("sglang.page", [(LATENT, INDEX)], {"page_size": 8, "platform": "hip"}),
        ("sglang.index_width", [(LATENT, IndexKey(index_head_dim=64))], {}),
        ("sglang.v4_entry", [(replace(V4, head_size=576),)], {"page_size": 256}),
        ("sglang.v4_entry", [(replace(V4, qk_rope_head_dim=32),)], {"page_size": 256}),
        ("sglang.prefill_only", [(LATENT,)], {"prefill_only": True}),
        ("sglang.prefill_only", [(FULL,)], {"prefill_only": True, "kv": FP4_E2M1}),
        ("sglang.hisparse", [(FULL,)], {"hisparse_host_to_device_ratio": 2}),
        ("sglang.vectorized", [(FULL,)], {"kv_cache_layout": "vectorized_5d"}),
        (
            "sglang.vectorized",
            [(FULL,)],
            {"kv_cache_layout": "vectorized_5d", "platform": "hip", "kv": FP4_E2M1},
        ),
        (
            "sglang.vectorized",
            [(FULL,)],
            {"kv_cache_layout": "vectorized_5d", "platform": "hip", "page_size": 1},
        ),
    ],
)
def test_the_engine_refuses(key, layers, chosen):
    with pytest.raises(EngineError) as refusal:
        run(*layers, **chosen)
    assert refusal.value.key == key
    assert refusal.value.message("zh")


@pytest.mark.parametrize(
    ("field", "chosen"),
    [
        ("tensor_parallel_size", {"tensor_parallel_size": 0}),
        ("tensor_parallel_size", {"tensor_parallel_size": 8, "data_parallel_size": 3}),
        ("page_size", {"page_size": 1.5}),
        ("page_size", {"page_size": True}),
        ("page_size", {"page_size": None}),
        ("swa_full_tokens_ratio", {"swa_full_tokens_ratio": 1.5}),
        ("swa_full_tokens_ratio", {"swa_full_tokens_ratio": 0}),
        ("hisparse_host_to_device_ratio", {"hisparse_host_to_device_ratio": 0}),
        ("max_total_tokens", {"max_total_tokens": 0}),
        ("context_length", {"context_length": 0}),
        ("available_memory_bytes", {"available_memory_bytes": 2**60}),
        ("dsa_backend", {"dsa_backend": "unknown"}),
        ("platform", {"platform": "tpu"}),
        ("pipeline_parallel_size", {"pipeline_parallel_size": 3}),
        ("stage_layers", {"pipeline_parallel_size": 2, "stage_layers": (2, 1)}),
        ("stage_layers", {"pipeline_parallel_size": 2, "stage_layers": (2, 0)}),
        ("stage_layers", {"pipeline_parallel_size": 2, "stage_layers": (2,)}),
        ("engine_version", {"version": "0.4"}),
    ],
)
def test_a_setting_outside_its_bounds_is_named(field, chosen):
    with pytest.raises(FieldError) as error:
        run((FULL,), (FULL,), **chosen)
    assert error.value.field == field
    assert error.value.message("zh")


@pytest.mark.parametrize("page_size", [1, 16, 64, 128])
def test_pages_beside_index_keys_on_rocm(page_size):
    assert run((LATENT, INDEX), page_size=page_size, platform="hip").page_size == page_size


def test_the_configurator_of_deepseek_v4_needs_pages_of_whole_entries():
    case = {"compress_ratios": [4, 128], "page_size": 64, "available_bytes": MEMORY}
    with pytest.raises(EngineError, match="128·n tokens; the page size is 64"):
        RUNNERS["pool_dsv4"](case, V)


def test_a_ratio_may_be_whole():
    assert (
        run((FULL,), (WINDOW,), swa_full_tokens_ratio=1).sizes.window.value
        == run((FULL,), (WINDOW,), swa_full_tokens_ratio=1.0).tokens.value
    )


def test_a_drafter_of_a_state_model_needs_a_request_limit():
    with pytest.raises(FieldError) as error:
        run((FULL,), (DELTA,), speculative_num_draft_tokens=4)
    assert error.value.field == "max_running_requests"


def test_widths_that_tp_does_not_divide():
    args = {
        "tp_world_size": 3,
        "intermediate_size": 8192,
        "n_groups": 1,
        "num_heads": 64,
        "head_dim": 128,
        "state_size": 128,
        "conv_kernel": 4,
    }
    with pytest.raises(EngineError) as refusal:
        RUNNERS["mamba_state"]({"kind": "mamba2", "num_linear_layers": 1, "args": args}, V)
    assert refusal.value.key == "sglang.divide"


EXTENT = Extent(tokens=640, page_size=64, layers=2)


@pytest.mark.parametrize(
    ("key", "storage", "size"),
    [
        ("sglang.host_fp4", FP4_E2M1, host.HostSize()),
        ("sglang.layout", BF16, host.HostSize(layout="page_first_kv_split")),
        ("sglang.host_small", BF16, host.HostSize(ratio=0.5)),
        ("sglang.host_small", BF16, host.HostSize(size_gb=0.001)),
    ],
)
def test_host_pools_that_do_not_exist(key, storage, size):
    with pytest.raises(EngineError) as refusal:
        host.attention_host(FULL.row(1), storage, EXTENT, size, rules_of(V))
    assert refusal.value.key == key


def test_latents_have_no_layout_by_heads():
    with pytest.raises(EngineError, match="no layout page_head"):
        host.latent_host(LATENT.row(1), BF16, EXTENT, host.HostSize(layout="page_head"), rules_of(V))


@pytest.mark.parametrize("given", [("by_layer", "kernel"), ("layer_first", "rdma")])
def test_layouts_and_paths_that_do_not_exist(given):
    with pytest.raises(FieldError):
        host.resolved_layout(*given)


def test_heads_of_whole_vectors():
    odd = FullAttention(num_kv_heads=1, head_size=100, head_size_v=100)
    with pytest.raises(EngineError, match="vectorized_5d"):
        vectorised_pool(odd.row(1), BF16, EXTENT)


DEVICE = {"size": 64, "page_size": 64, "layer_num": 1, "kv_lora_rank": 512, "qk_rope_head_dim": 64}


def test_a_pool_that_is_not_known():
    with pytest.raises(EngineError, match="Unheard"):
        RUNNERS["device_buffers"]({"pool": "UnheardOfPool"}, V)


@pytest.mark.parametrize(
    "case",
    [
        {**DEVICE, "pool": "MLATokenToKVPool", "dtype": "int3"},
        {**DEVICE, "pool": "DSATokenToKVPool", "dtype": "bfloat16", "kv_cache_dim": 600},
        {"pool": "MambaPool", "page_size": 1},
    ],
)
def test_inputs_that_describe_nothing(case):
    with pytest.raises(FieldError):
        RUNNERS["device_buffers"](case, V)


@pytest.mark.parametrize("chunk", [(-1, 10), (0, 101)])
def test_a_chunk_outside_the_prompt(chunk):

    sent, end = chunk
    with pytest.raises(FieldError):
        chunk_tokens(100, 64, already_sent_tokens=sent, chunk_end_tokens=end, last_chunk=True)


def test_the_split_pools_are_never_of_fp4():
    device = {"size": 64, "size_swa": 64, "page_size": 64, "num_full_layers": 1, "num_swa_layers": 1}
    heads = {"head_num": 1, "head_dim": 64, "dtype": "fp4_e2m1"}
    with pytest.raises(EngineError, match="no FP4 pool"):
        RUNNERS["device_buffers"]({**device, **heads, "pool": "SWAKVPool"}, V)
