import pytest

from calculator.caches import MLA, FullAttention, Growth, HiddenState, IndexKey, SparseIndexKey
from calculator.footprint import footprint
from calculator.formats import (
    BF16,
    FORMATS,
    FP8,
    FP8_DS_MLA,
    FP8_INDEX,
    NVFP4,
    TURBOQUANT,
    Storage,
)
from calculator.model import ModelPlan

DEEPSEEK = MLA(kv_lora_rank=512, qk_rope_head_dim=64)
INDEX = IndexKey(index_head_dim=128)


@pytest.mark.parametrize("tp", [1, 2, 4, 8, 16, 1024])
def test_every_rank_keeps_the_whole_latent(tp):
    assert DEEPSEEK.unit_bytes(Storage(), tp).value == 1_152
    assert DEEPSEEK.unit_bytes(Storage(kv=FP8), tp).value == 576
    assert DEEPSEEK.accepts_tp(tp)
    assert DEEPSEEK.split_heads == ()


def test_the_formula_in_symbols():
    assert DEEPSEEK.unit_bytes(Storage(), 8).symbols == "(R + D_r) · s"
    assert DEEPSEEK.unit_bytes(Storage(), 8).numbers == "(512 + 64) · 2"


@pytest.mark.parametrize("storage", FORMATS.values(), ids=FORMATS)
def test_an_index_key_takes_132_bytes_whatever_the_kv_dtype(storage):
    assert INDEX.unit_bytes(Storage(kv=storage), 8).value == 132
    assert INDEX.stored_in(Storage(kv=storage)) is FP8_INDEX
    assert INDEX.accepts(Storage(kv=storage))


def test_the_indexer_adds_11_point_5_per_cent_to_a_16_bit_latent_and_22_point_9_to_an_8_bit_one():
    index = INDEX.unit_bytes(Storage(), 1).value
    assert round(100 * index / DEEPSEEK.unit_bytes(Storage(), 1).value, 1) == 11.5
    assert round(100 * index / DEEPSEEK.unit_bytes(Storage(kv=FP8), 1).value, 1) == 22.9


def test_latents_grow_with_every_token():
    assert DEEPSEEK.growth is INDEX.growth is Growth.LINEAR
    assert DEEPSEEK.units(8_192) == INDEX.units(8_192) == 8_192


def test_a_latent_may_have_no_rope_key():
    assert MLA(kv_lora_rank=512, qk_rope_head_dim=0).unit_bytes(Storage(), 1).value == 1_024


@pytest.mark.parametrize(
    ("storage", "layers", "indexed", "rate"),
    [
        (BF16, 78, 78, 100_152),  # GLM-5.1
        (BF16, 78, 21, 92_628),  # GLM-5.2: 57 layers reuse the selection of another
        (FP8_DS_MLA, 78, 78, 61_464),
        (BF16, 61, 61, 78_324),  # DeepSeek-V3.2
        (FP8_DS_MLA, 61, 61, 48_068),
        (FP8, 61, 61, 43_188),
        (BF16, 7, 0, 8_064),  # Kimi-Linear's full layers
        (BF16, 56, 0, 64_512),  # LongCat-Flash: 28 layers of two attentions
    ],
)
def test_published_models_per_token(storage, layers, indexed, rate):
    plan = ModelPlan(layers=((DEEPSEEK, INDEX),) * indexed + ((DEEPSEEK,),) * (layers - indexed))
    for tp in (1, 8):
        weighed = footprint(plan, Storage(kv=storage), tp)
        assert weighed.amounts(1, 1).bytes_per_token.value == rate


def test_formats_of_heads_cannot_hold_a_latent():
    assert DEEPSEEK.accepts(Storage(kv=FP8_DS_MLA))
    assert not DEEPSEEK.accepts(Storage(kv=NVFP4))
    assert not DEEPSEEK.accepts(Storage(kv=TURBOQUANT[0]))


def test_minimax_m3_keeps_a_16_bit_index_key_beside_57_of_60_layers():
    full = FullAttention(num_kv_heads=4, head_size=128, head_size_v=128)
    plan = ModelPlan(layers=((full,),) * 3 + ((full, SparseIndexKey(index_head_dim=128)),) * 57)
    assert footprint(plan, Storage(), 1).amounts(1, 1).bytes_per_token.value == 137_472
    assert footprint(plan, Storage(kv=FP8), 1).amounts(1, 1).bytes_per_token.value == 60 * 1_024 + 57 * 256


@pytest.mark.parametrize("tp", [1, 8])
def test_hidden_states_are_whole_vectors_on_every_rank(tp):
    states = HiddenState(num_hidden_states=4, hidden_size=4_096)
    assert 16 * states.unit_bytes(Storage(), tp).value == 524_288
    assert states.unit_bytes(Storage(), tp).symbols == "n · d · s"
