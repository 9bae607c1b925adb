import pytest

from calculator.caches import MLA, FullAttention, IndexKey, SlidingWindow
from calculator.model import LayerGroup, ModelPlan, ranges

FULL = FullAttention(num_kv_heads=8, head_size=128, head_size_v=128)
WINDOW = SlidingWindow(num_kv_heads=8, head_size=128, head_size_v=128, sliding_window=1024)
LATENT = MLA(kv_lora_rank=512, qk_rope_head_dim=64)
INDEX = IndexKey(index_head_dim=128)


def test_layers_with_equal_caches_form_a_group_in_order_of_first_appearance():
    plan = ModelPlan(layers=((WINDOW,), (FULL,), (WINDOW,), (), (FULL,), (LATENT, INDEX)))
    assert plan.groups() == (
        LayerGroup(indices=(0, 2), caches=(WINDOW,)),
        LayerGroup(indices=(1, 4), caches=(FULL,)),
        LayerGroup(indices=(3,), caches=()),
        LayerGroup(indices=(5,), caches=(LATENT, INDEX)),
    )


def test_the_same_numbers_in_another_kind_are_another_group():
    assert len(ModelPlan(layers=((FULL,), (WINDOW,))).groups()) == 2


def test_a_latent_alone_is_not_the_group_of_a_latent_with_an_index_key():
    assert len(ModelPlan(layers=((LATENT,), (LATENT, INDEX))).groups()) == 2


def test_where_numbers_came_from_does_not_make_another_model():
    read = ModelPlan(
        layers=((FULL,),), provenance={"head_size": "head_dim"}, warnings=(("notice.tp", {"tp": 2}),)
    )
    assert read == ModelPlan(layers=((FULL,),))


@pytest.mark.parametrize(
    ("indices", "text"),
    [
        ([], ""),
        ([5], "5"),
        ([0, 1, 2], "0–2"),
        ([0, 1, 2, 5, 11], "0–2, 5, 11"),
        ([5, 11], "5, 11"),
        ([5, 11, 17], "5, 11, 17"),
        (range(5, 60, 6), "5, 11, …, 59"),
        (range(61), "0–60"),
        ([1, 2, 4, 5], "1–2, 4–5"),
    ],
)
def test_layer_numbers_are_written_as_runs_or_as_a_step(indices, text):
    assert ranges(indices) == text
