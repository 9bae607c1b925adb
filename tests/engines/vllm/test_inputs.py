"""What the golden file's inputs can say beyond its own cases; figures of formulas.md, or plain arithmetic."""

import pytest

from calculator.engines.vllm.cases import RUNNERS
from calculator.engines.vllm.inputs import given_state

VERSION = "0.22.0"
HEADS = {"block_size": 16, "num_kv_heads": 8, "head_size": 128, "dtype": "bfloat16"}
FULL = {"type": "FullAttentionSpec", **HEADS}
WINDOW = {"type": "SlidingWindowSpec", **HEADS, "sliding_window": 64}


def run(kind, **given):
    return RUNNERS[kind](given, VERSION)


@pytest.mark.parametrize(
    ("spec", "page"),
    [
        ({**FULL, "sliding_window": 64}, 65_536),
        ({**FULL, "attention_chunk_size": 64}, 65_536),
        ({"type": "SinkFullAttentionSpec", **HEADS, "sink_len": 16}, 65_536),
        ({"type": "TQFullAttentionSpec", **HEADS, "tq_slot_size": 0}, 65_536),
        ({"type": "HiddenStateCacheSpec", **HEADS, "num_kv_heads": 4, "head_size": 4_096}, 524_288),
        (
            {
                "type": "MLAAttentionSpec",
                **HEADS,
                "num_kv_heads": 1,
                "head_size": 576,
                "dtype": "uint8",
                "cache_dtype_str": "fp8_ds_mla",
                "compress_ratio": 4,
            },
            16 * 656,
        ),
    ],
)
def test_specs(spec, page):
    assert run("spec_page", spec=spec)["page_size_bytes"] == page


def test_a_full_attention_spec_that_was_a_window_keeps_every_token():
    given = {"spec": {**FULL, "sliding_window": 64}, "config": {"max_model_len": 1_600}}
    assert run("spec_max_memory", **given)["max_pages"] == 100


@pytest.mark.parametrize(
    ("calculator", "args", "shapes"),
    [
        ("linear_attention", {"num_heads": 64, "tp_size": 8, "head_dim": 96}, [[8, 96, 96]]),
        (
            "kda",
            {"tp_world_size": 1, "num_heads": 32, "head_dim": 128, "conv_kernel_size": 4, "num_spec": 2},
            [[3, 4_096]] * 3 + [[32, 128, 128]],
        ),
        (
            "kda",
            {"tp_world_size": 2, "num_heads": 32, "head_dim": 128, "num_k_heads": 16, "head_k_dim": 64},
            [[3, 2_048], [3, 512], [3, 512], [16, 128, 128]],
        ),
    ],
)
def test_states(calculator, args, shapes):
    found = run("mamba_state", calculator=calculator, args=args, dtypes=["bfloat16"] * len(shapes))
    assert found["shapes"] == shapes


def test_given_tensors_are_those_of_a_rank():
    assert given_state([[4, 4]], ["float32"]).accepts_tp(3)


@pytest.mark.parametrize(
    ("cache_dtype", "use_mla", "token_page"),
    [
        ("auto", False, 1_024),
        ("fp8_e4m3", False, 512),
        ("float16", False, 1_024),
        ("fp8_per_token_head", False, 528),
        ("nvfp4", False, 288),
        ("turboquant_4bit_nc", False, 268),
        ("fp8", True, 256),
    ],
)
def test_a_token_beside_a_state(cache_dtype, use_mla, token_page):
    found = run(
        "hybrid_align",
        mamba_shapes=[[1]],
        mamba_dtypes=["float32"],
        cache_dtype=cache_dtype,
        block_size=16,
        model_dtype="bfloat16",
        use_mla=use_mla,
        num_kv_heads=2,
        head_size=128,
        kernel_block_alignment=16,
    )
    assert found["mamba_page_size_padded"] == 16 * token_page


@pytest.mark.parametrize(
    ("other", "config", "error"),
    [
        ({**FULL, "head_size": 96}, {}, "page_size_not_unifiable"),
        (
            {"type": "MambaSpec", "block_size": 16, "shapes": [[4]], "dtypes": ["float32"]},
            {"disable_hybrid_kv_cache_manager": True},
            "vllm.hybrid_manager",
        ),
    ],
)
def test_a_refused_grouping_is_an_answer(other, config, error):
    specs = {"s": WINDOW, "o": other}
    found = run("kv_cache_config", layers=["s", "o"], specs=specs, available_memory=10**9, config=config)
    assert found == {"error": error}


def test_a_prompt_without_an_answer():
    config = {"max_num_batched_tokens": 1_000}
    found = run("blocks_held", spec=WINDOW, prompt_tokens=2_500, output_tokens=0, config=config)
    # 500 tokens after 2,000: blocks from token 1,937 on
    assert (found["final_blocks"], found["peak_blocks_decode"]) == (157 - 121, 0)
