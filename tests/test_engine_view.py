"""What the engines make of a plan: figures are products of the sizes beside them."""

import json
from pathlib import Path

import pytest

from calculator.cli import main
from calculator.engine_view import LONGEST, engine_views
from calculator.formats import Storage
from calculator.hf_config import read_config
from calculator.serving import SGLANG, VLLM, Serving

CONFIGS = Path(__file__).parent / "hf_config" / "configs"
LLAMA = "meta-llama__Meta-Llama-3.1-8B"


def told(capsys, name: str, *options: str) -> dict[str, dict]:
    assert main(["plan", str(CONFIGS / f"{name}.json"), "--json", *options]) == 0
    return {view["engine"]: view for view in json.loads(capsys.readouterr().out)["engines"]}


def lines(capsys, name: str, *options: str) -> list[str]:
    assert main([*options, "plan", str(CONFIGS / f"{name}.json")]) == 0
    return capsys.readouterr().out.splitlines()


def test_vllm_groups_windows_apart(capsys):
    view = told(capsys, "openai__gpt-oss-20b", "--vllm-version", "0.22.0")[VLLM]
    page = 16 * 8 * (64 + 64) * 2
    assert (view["version"], view["refused"], view["block_bytes"]) == ("0.22.0", None, 12 * page)
    assert [[part["type"] for part in group] for group in view["groups"]] == [
        ["SlidingWindowSpec"],
        ["FullAttentionSpec"],
    ]
    sliding = view["groups"][0][0]
    assert sliding["layers"] == list(range(0, 24, 2))
    assert (sliding["block_size"], sliding["page_bytes"], sliding["padding_bytes"]) == (16, page, 0)


def test_caches_of_one_layer_in_one_group(capsys):
    view = told(capsys, "zai-org__GLM-5.1", "--vllm-version", "0.22.0")[VLLM]
    (group,) = view["groups"]
    assert [part["page_bytes"] for part in group] == [64 * 1_152, 64 * 132]
    assert all(part["layers"] == list(range(78)) for part in group)
    assert view["block_bytes"] == 78 * 64 * (1_152 + 132)


def test_padding_is_what_a_state_leaves_of_its_page(capsys):
    groups = told(capsys, "Qwen__Qwen3.5-9B", "--vllm-version", "0.22.0")[VLLM]["groups"]
    state = (32 * 128 * 128) * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2
    padded = {part["type"]: part["padding_bytes"] for group in groups for part in group}
    page = groups[0][0]["page_bytes"]
    assert padded == {"MambaSpec": page - state, "FullAttentionSpec": 0}
    assert page == 528 * 4 * (256 + 256) * 2


def test_sglang_names_its_pool(capsys):
    view = told(capsys, LLAMA, "--sglang-version", "0.5.13")[SGLANG]
    assert (view["pool"], view["page_size"], view["buffers"]) == (
        "MHATokenToKVPool",
        1,
        ["k_buffer", "v_buffer"],
    )
    assert view["planned_bytes_per_token"] == view["allocated_bytes_per_token"] == 131_072
    assert view["state_bytes"] == 0
    hybrid = told(capsys, "Qwen__Qwen3.5-9B")[SGLANG]
    assert hybrid["state_bytes"] == 24 * ((32 * 128 * 128) * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2)
    assert told(capsys, "zai-org__GLM-5.1")[SGLANG]["page_size"] == 64


def test_the_format_can_be_chosen(capsys):
    assert told(capsys, LLAMA, "--kv-cache-dtype", "fp8")[VLLM]["block_bytes"] == 131_072 // 2 * 16


def test_a_refusal_gives_the_engines_reason(capsys):
    views = told(capsys, "deepseek-ai__DeepSeek-V4-Flash", "--vllm-version", "0.22.0")
    assert views[VLLM]["refused"]["key"] == "vllm.v4_format"
    assert "FP8" in views[VLLM]["refused"]["reason"]
    assert "groups" not in views[VLLM]
    assert views[SGLANG]["refused"] is None


def test_the_report_says_the_same(capsys):
    out = lines(capsys, "openai__gpt-oss-20b")
    assert any(line.endswith("393,216 B per block; groups of layers: 2") for line in out)
    page = "layers 1, 3, …, 23 (12): FullAttentionSpec, block of 16 tokens, page 32,768 B, of it padding 0 B"
    assert f"  group 2, {page}" in out
    assert any("SWAKVPool, page size 1" in line for line in out)
    out = lines(capsys, "deepseek-ai__DeepSeek-V4-Flash", "--language", "zh")
    assert any(line.startswith("vLLM") and "拒绝此模型：" in line for line in out)
    assert any(line.startswith("  ") and "预留" in line for line in out)


def test_a_context_beyond_what_engines_take_is_cut():
    plan = read_config(CONFIGS / f"{LLAMA}.json")
    assert plan.context_hint is not None
    servings = (Serving(engine=VLLM), Serving(), Serving(engine=SGLANG))
    views = list(engine_views(plan, Storage(), servings))
    assert [view.engine for view in views] == [VLLM, SGLANG]  # logical bytes belong to no engine
    far = read_config({"model_type": "llama", "max_position_embeddings": 2 * LONGEST})
    assert all("refused" in view.as_json() for view in engine_views(far, Storage(), servings))


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.json")), ids=lambda path: path.stem)
def test_every_model_has_an_answer_of_both(path):
    servings = (Serving(engine=VLLM), Serving(engine=SGLANG))
    for view in engine_views(read_config(path), Storage(), servings):
        assert json.loads(json.dumps(view.as_json(), allow_nan=False)) == view.as_json()
        assert all(line.isprintable() for line in view.report("en"))


def test_a_sliding_latent_is_no_part_of_deepseek_v4():
    config = {"model_type": "dots3_note_text", "num_hidden_layers": 3}
    (view,) = engine_views(read_config(config), Storage(), [Serving(engine=VLLM, engine_version="0.22.0")])
    assert getattr(view.answer, "key", None) == "vllm.sliding_latent"
