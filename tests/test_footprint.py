import pytest

from calculator.caches import MLA, CompressedLatent, FullAttention, GatedDeltaNet, IndexKey, SlidingWindow
from calculator.footprint import Parts, footprint
from calculator.formats import Storage
from calculator.model import ModelPlan

FULL = FullAttention(num_kv_heads=8, head_size=128, head_size_v=128)  # 4,096 bytes per token
WINDOW = SlidingWindow(num_kv_heads=8, head_size=128, head_size_v=128, sliding_window=1_024)
STATE = GatedDeltaNet(  # 4,268,032 bytes
    linear_num_key_heads=16,
    linear_num_value_heads=64,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    conv_kernel=4,
)
MIXED = footprint(ModelPlan(layers=((FULL,), (WINDOW,), (WINDOW,), (STATE,), ())), Storage(), 1)


@pytest.mark.parametrize(
    ("context", "linear", "bounded"),
    [
        (1, 4_096, 2 * 4_096),
        (1_024, 4_096 * 1_024, 2 * 4_096 * 1_024),
        (10_000, 4_096 * 10_000, 2 * 4_096 * 1_024),
    ],
)
def test_a_request_is_the_sum_of_what_grows_what_stops_and_what_stays(context, linear, bounded):
    parts = MIXED.parts(context)
    assert parts == Parts(linear=linear, bounded=bounded, constant=4_268_032)
    assert parts.total == linear + bounded + 4_268_032


def test_the_four_figures_and_their_formulas():
    amounts = MIXED.amounts(10_000, 3)
    assert amounts.bytes_per_token.value == 4_096
    assert amounts.bounded_bytes.value == 2 * 4_096 * 1_024
    assert amounts.constant_bytes.value == 4_268_032
    assert amounts.total_bytes.value == 3 * (4_096 * 10_000 + 2 * 4_096 * 1_024 + 4_268_032)
    assert amounts.bytes_per_token.symbols == "L · H · (d + d_v) · s"
    assert amounts.total_bytes.symbols == "N · (b · T + b_w · min(T, w) + S)"
    assert amounts.total_bytes.numbers == "3 · (4,096 · 10,000 + 8,192 · min(10,000, 1,024) + 4,268,032)"


def test_one_request_is_not_multiplied():
    plan = ModelPlan(layers=((MLA(kv_lora_rank=512, qk_rope_head_dim=64),),) * 61)
    amounts = footprint(plan, Storage(), 8).amounts(8_192, 1)
    assert amounts.bytes_per_token.numbers == "61 · (512 + 64) · 2"
    assert amounts.total_bytes.numbers == "70,272 · 8,192"
    assert amounts.total_bytes.value == 575_668_224


def test_a_latent_and_its_index_key_are_both_counted():
    layer = (MLA(kv_lora_rank=512, qk_rope_head_dim=64), IndexKey(index_head_dim=128))
    weighed = footprint(ModelPlan(layers=(layer,) * 61), Storage(), 16)
    assert weighed.amounts(1, 1).bytes_per_token.value == 61 * (1_152 + 132) == 78_324


def test_layers_without_a_cache_cost_nothing():
    weighed = footprint(ModelPlan(layers=((), ())), Storage(), 1)
    assert weighed.parts(100_000).total == 0
    assert weighed.amounts(100_000, 2).total_bytes.value == 0
    assert weighed.bounds() == ()


def test_the_bounds_are_the_contexts_at_which_a_line_bends():
    wider = SlidingWindow(num_kv_heads=8, head_size=128, head_size_v=128, sliding_window=4_096)
    weighed = footprint(ModelPlan(layers=((wider,), (WINDOW,), (FULL,), (WINDOW,))), Storage(), 1)
    assert weighed.bounds() == (1_024, 4_096)


def test_tokens_that_share_an_entry_grow_by_a_fraction_and_are_counted_whole():
    latent = CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=128)
    weighed = footprint(ModelPlan(layers=((latent,),) * 20 + ((FULL,),)), Storage(), 1)
    amounts = weighed.amounts(1_000, 1)
    assert amounts.bytes_per_token.value == 20 * 8 + 4_096
    assert amounts.bytes_per_token.symbols == "L · (d − D_r + D_r) · s / r + L · H · (d + d_v) · s"
    assert amounts.total_bytes.symbols == "b · T + b · ⌊T / 128⌋"
    assert amounts.total_bytes.value == 4_096 * 1_000 + 20 * 1_024 * 7
    assert weighed.parts(1_000) == Parts(linear=amounts.total_bytes.value, bounded=0, constant=0)
    assert weighed.parts(127).linear == 4_096 * 127
