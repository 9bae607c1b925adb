"""DeepSeek-V4-Flash: 43 layers, 2 of the window only, 21 with a C4 latent, 20 with a C128 latent."""

from fractions import Fraction

import pytest

from calculator.caches import (
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    Growth,
    SlidingWindowMLA,
)
from calculator.errors import FieldError
from calculator.explain import symbol
from calculator.footprint import footprint
from calculator.formats import BF16, FP8, FP8_INDEX, FP8_V4, FP32, NVFP4, Storage
from calculator.model import ModelPlan

WIDTHS = {"head_size": 512, "qk_rope_head_dim": 64}
WINDOW = SlidingWindowMLA(sliding_window=128, **WIDTHS)
C4, C128 = (CompressedLatent(compress_ratio=ratio, **WIDTHS) for ratio in (4, 128))
INDEX = CompressedIndexKey(index_head_dim=128, compress_ratio=4)
C4_STATE = CompressorState(state_width=2_048, sliding_window=8)
INDEX_STATE = CompressorState(state_width=512, sliding_window=8)
C128_STATE = CompressorState(state_width=1_024, sliding_window=128)
FLASH = ModelPlan(
    layers=((WINDOW,),) * 2
    + ((WINDOW, C4, INDEX, C4_STATE, INDEX_STATE),) * 21
    + ((WINDOW, C128, C128_STATE),) * 20
)


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize(
    ("storage", "rate", "windows"),
    [(BF16, 6_229, 5_636_096), (FP8_V4, Fraction("3850.25"), 3_214_336)],
    ids=["bf16", "fp8_v4"],
)
def test_deepseek_v4_flash(storage, rate, windows, tp):
    amounts = footprint(FLASH, Storage(kv=storage), tp).amounts(1_048_576, 1)
    assert amounts.bytes_per_token.value == rate
    assert amounts.bounded_bytes.value == windows
    assert amounts.constant_bytes.value == 12_206_080
    assert amounts.total_bytes.value == rate * 1_048_576 + windows + 12_206_080


def test_one_entry_takes_584_bytes_and_one_token_a_fraction_of_them():
    v4 = Storage(kv=FP8_V4)
    assert [cache.unit_bytes(v4, 1).value for cache in (WINDOW, C4, C128)] == [584, 584, 584]
    rates = footprint(ModelPlan(layers=((C4,),)), v4, 1), footprint(ModelPlan(layers=((C128,),)), v4, 1)
    assert [weighed.amounts(1, 1).bytes_per_token.value for weighed in rates] == [146, Fraction("4.5625")]
    assert rates[1].amounts(1, 1).bytes_per_token.symbols.endswith(" / r")


@pytest.mark.parametrize(
    ("tokens", "entries", "far_entries"),
    [(1, 0, 0), (3, 0, 0), (4, 1, 0), (127, 31, 0), (1_048_576, 262_144, 8_192)],
)
def test_an_entry_is_written_when_its_tokens_are_complete(tokens, entries, far_entries):
    assert C4.growth is C128.growth is INDEX.growth is Growth.LINEAR
    assert C4.units(tokens) == INDEX.units(tokens) == entries
    assert C128.units(tokens) == far_entries
    assert footprint(ModelPlan(layers=((C128,),)), Storage(), 1).parts(tokens).linear == far_entries * 1_024


def test_the_formulas_in_symbols():
    assert C4.unit_bytes(Storage(), 1).symbols == "(d − D_r + D_r) · s"
    assert C4.units(symbol("T", 10)).numbers == "⌊10 / 4⌋"
    weighed = footprint(ModelPlan(layers=((WINDOW, C4, C4_STATE),)), Storage(), 1)
    assert (
        weighed.amounts(100, 2).total_bytes.numbers
        == "2 · (1,024 · ⌊100 / 4⌋ + 1,024 · min(100, 128) + 65,536)"
    )


def test_the_last_tokens_are_kept_as_they_are():
    assert WINDOW.growth is Growth.BOUNDED
    assert [WINDOW.units(tokens) for tokens in (1, 128, 129)] == [1, 128, 128]
    assert WINDOW.bound.value == 128


@pytest.mark.parametrize("storage", [BF16, FP8, FP8_V4])
@pytest.mark.parametrize(
    ("state", "size"), [(C4_STATE, 65_536), (INDEX_STATE, 16_384), (C128_STATE, 524_288)], ids=str
)
def test_compressor_states_are_float32_whatever_the_kv_dtype(state, size, storage):
    assert state.growth is Growth.CONSTANT
    assert state.unit_bytes(Storage(kv=storage), 8).value == size
    assert state.stored_in(Storage(kv=storage)) is FP32
    assert state.units(1) == state.units(100_000) == state.units(symbol("T", 5)).value == 1


def test_the_index_key_has_a_format_of_its_own():
    assert INDEX.unit_bytes(Storage(kv=FP8_V4), 4).value == 132
    assert INDEX.stored_in(Storage(kv=NVFP4)) is FP8_INDEX
    assert not C4.accepts(Storage(kv=NVFP4))


@pytest.mark.parametrize("kind", [SlidingWindowMLA, CompressedLatent])
def test_the_rope_key_is_within_the_vector(kind):
    other = "sliding_window" if kind is SlidingWindowMLA else "compress_ratio"
    assert kind(head_size=64, qk_rope_head_dim=64, **{other: 4}).unit_bytes(Storage(), 1).value == 128
    with pytest.raises(FieldError, match="65 is outside 0 to 64") as caught:
        kind(head_size=64, qk_rope_head_dim=65, **{other: 4})
    assert caught.value.field == "qk_rope_head_dim"
