import pytest

from calculator.caches import MLA, Growth, IndexKey
from calculator.formats import FORMATS, FP8, FP8_INDEX, Storage

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
    assert INDEX.format_name(Storage(kv=storage)) == FP8_INDEX.name


def test_the_indexer_adds_11_point_5_per_cent_to_a_16_bit_latent_and_22_point_9_to_an_8_bit_one():
    index = INDEX.unit_bytes(Storage(), 1).value
    assert round(100 * index / DEEPSEEK.unit_bytes(Storage(), 1).value, 1) == 11.5
    assert round(100 * index / DEEPSEEK.unit_bytes(Storage(kv=FP8), 1).value, 1) == 22.9


def test_latents_grow_with_every_token():
    assert DEEPSEEK.growth is INDEX.growth is Growth.LINEAR
    assert DEEPSEEK.units(8_192) == INDEX.units(8_192) == 8_192


def test_a_latent_may_have_no_rope_key():
    assert MLA(kv_lora_rank=512, qk_rope_head_dim=0).unit_bytes(Storage(), 1).value == 1_024
