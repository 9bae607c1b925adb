import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator import catalogue
from calculator.caches import (
    CompressedIndexKey,
    CompressedLatent,
    FullAttention,
    SlidingWindow,
    SlidingWindowMLA,
)
from calculator.engines.sglang import Settings, allocate
from calculator.engines.sglang.sending import Extra
from calculator.errors import FieldError
from calculator.formats import BF16, FP8, Storage
from calculator.model import ModelPlan
from calculator.transfer.sglang import transfer

V4_WINDOW = SlidingWindowMLA(head_size=512, qk_rope_head_dim=64, sliding_window=128)
C4 = (
    V4_WINDOW,
    CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=4),
    CompressedIndexKey(index_head_dim=128, compress_ratio=4),
)
C128 = (V4_WINDOW, CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=128))
FLASH = ModelPlan(layers=((V4_WINDOW,),) * 2 + (C4, C128) * 20 + (C4,))
HEADS = {"num_kv_heads": 8, "head_size": 128, "head_size_v": 128}
WINDOWS = ModelPlan(
    layers=((FullAttention(**HEADS),),) * 12 + ((SlidingWindow(**HEADS, sliding_window=4097),),) * 36
)


def allocated(plan, kv=BF16, **chosen):
    plan = catalogue.plan(plan) if isinstance(plan, str) else plan
    chosen = {"available_memory_bytes": 60 * 2**30, "page_size": 64, **chosen}
    return allocate(plan, Storage(kv=kv), Settings(**chosen), "0.5.13")


@pytest.mark.parametrize(
    ("plan", "kv", "chosen", "sent", "extra", "extra_sent"),
    [
        ("deepseek-v3", BF16, {}, 7_029_448_704, None, 0),
        ("deepseek-v3.2", FP8, {}, 4_002_880_512, Extra.DSA, 805_457_664),
        ("qwen3.5-397b-a17b", BF16, {}, 1563 * 1_966_080, Extra.MAMBA, 192_061_440),
        (FLASH, FP8, {"page_size": 256}, 390_299_328, Extra.SWA, 18_645_760),
        (WINDOWS, BF16, {}, 4_916_772_864, Extra.SWA, 613_416_960),
    ],
)
def test_100000_tokens(plan, kv, chosen, sent, extra, extra_sent):
    got = transfer(allocated(plan, kv, **chosen), 100_000)
    assert (got.kv_bytes.value, got.extra, got.extra_bytes.value) == (sent, extra, extra_sent)
    assert got.total_bytes.value == sent + extra_sent
    assert [line.value for line in got.derivations()][1:] == [sent, extra_sent]


def test_regions_are_tensors_of_one_layer():
    got = transfer(allocated("llama-3.1-8b"), 1)
    assert [(region.name, region.layers) for region in got.regions] == [("k_buffer", 32), ("v_buffer", 32)]
    assert all(region.item_bytes.value == 131_072 for region in got.regions)
    sparse = transfer(allocated("deepseek-v3.2", FP8), 1)
    assert sparse.extra_regions[0].item_bytes.value == 8_448


def test_a_middle_chunk_ends_at_a_page():
    got = transfer(allocated("deepseek-v3"), 1000)
    assert got.chunk(0, 700, last_chunk=False).value == 640
    assert got.chunk(640, 1000, last_chunk=True).value == 360


@pytest.mark.parametrize(("tokens", "stage"), [(0, 0), (2**27 + 1, 0), (1, 1), (1, -1), (1.5, 0)], ids=repr)
def test_a_request_outside_its_bounds(tokens, stage):
    with pytest.raises(FieldError):
        transfer(allocated("deepseek-v3"), tokens, stage=stage)


@given(st.integers(1, 2**20), st.integers(0, 2**10))
def test_more_tokens_never_send_fewer_bytes(tokens, more):
    held = allocated("llama-3.1-8b", pipeline_parallel_size=2)
    for stage in (0, 1):
        less = transfer(held, tokens, stage=stage).total_bytes.value
        assert less <= transfer(held, tokens + more, stage=stage).total_bytes.value
