"""Heads, architecture, format: the steps against arithmetic by hand."""

import pytest

from calculator import catalogue
from calculator.caches import Mamba2
from calculator.factors import factors
from calculator.formats import KV_FORMATS, Storage
from calculator.model import ModelPlan
from tests.arithmetic import evaluate

T = 100_000
MAMBA = Mamba2(mamba_num_heads=128, mamba_head_dim=64, state_size=128, n_groups=8, conv_kernel=4)


def steps(model, tokens=T):
    found = factors(catalogue.plan(model), catalogue.entry(model).config, Storage(), tokens)
    return {step.name: step for step in found}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            "deepseek-v3",
            {
                "mha": (128, 61 * 128 * (128 + 64 + 128) * 2 * T),  # 81,920 bytes per layer and token
                "gqa": (8, 61 * 8 * (128 + 128) * 2 * T),
                "architecture": (None, 70_272 * T),
                "fp8": (None, 70_272 // 2 * T),
                "fp8_ds_mla": (None, 61 * 656 * T),
            },
        ),
        (
            "gemma-3-27b",
            {
                "mha": (32, 62 * 32 * 256 * 2 * T),
                "gqa": (16, 62 * 16 * 256 * 2 * T),
                "architecture": (None, 81_920 * T + 436_207_616),
                "fp8": (None, (81_920 * T + 436_207_616) // 2),
                "fp8_per_token_head": (None, 16 * (128 + 128 + 8) * (10 * T + 52 * 1024)),
                "nvfp4": (None, 16 * 2 * (64 + 8) * (10 * T + 52 * 1024)),
            },
        ),
        (
            # 15 of 60 layers keep keys and values; the others would, too.
            "qwen3.5-397b-a17b",
            {
                "mha": (32, 60 * 32 * 512 * 2 * T),
                "gqa": (2, 60 * 2 * 512 * 2 * T),
                "architecture": (None, 30_720 * T + 192_061_440),
                "fp8": (None, 15_360 * T + 192_061_440),
            },
        ),
        (
            "llama-7b",
            {"mha": (32, 524_288 * T), "gqa": (32, 524_288 * T), "architecture": (None, 524_288 * T)},
        ),
    ],
)
def test_each_step_is_what_arithmetic_by_hand_gives(model, expected):
    found = steps(model)
    for name, (heads, amount) in expected.items():
        assert (found[name].heads, found[name].total_bytes.value) == (heads, amount), name
        assert evaluate(found[name].total_bytes.numbers) == amount


def test_deepseek_v3_as_mha_is_71_times_its_latents_and_as_gqa_3_56_times():
    found = steps("deepseek-v3")
    latents = found["architecture"].total_bytes.value
    assert round(found["mha"].total_bytes.value / latents, 1) == 71.1
    assert round(found["gqa"].total_bytes.value / latents, 2) == 3.56


@pytest.mark.parametrize("model", catalogue.ids())
def test_heads_come_first_then_the_architecture_then_the_formats_that_fit(model):
    names = list(steps(model))
    first = names.index("architecture")
    assert names[:first] in ([], ["mha", "gqa"])
    assert names[first + 1 :] == [name for name in KV_FORMATS if name in names[first + 1 :]]
    assert {"fp16", "fp32", "fp8"} <= set(names)


@pytest.mark.parametrize("model", catalogue.ids())
def test_no_model_keeps_more_than_all_its_heads_would(model):
    found = steps(model)
    if "mha" in found:
        assert found["mha"].total_bytes.value >= found["gqa"].total_bytes.value


@pytest.mark.parametrize("config", [None, {}, {"num_attention_heads": "128"}, {"num_attention_heads": 128}])
def test_without_the_published_sizes_the_steps_begin_with_the_architecture(config):
    found = factors(catalogue.plan("deepseek-v3"), config, Storage(), T)
    assert found[0].name == "architecture"


@pytest.mark.parametrize(("model", "heads"), [("gpt2", 12), ("deepseek-vl2-tiny", 10), ("llama-3.1-8b", 32)])
def test_heads_are_found_under_every_name_and_in_every_part_that_the_importer_reads(model, heads):
    assert steps(model)["mha"].heads == heads


def test_a_model_of_states_alone_has_no_heads_to_begin_with():
    found = factors(ModelPlan(layers=((MAMBA,),) * 4), {"num_attention_heads": 32}, Storage(), T)
    assert found[0].name == "architecture"
    assert len({step.total_bytes.value for step in found}) == 1  # no format of K and V changes a state
