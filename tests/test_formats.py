from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.explain import symbol
from calculator.formats import (
    BF16,
    FORMATS,
    FP4_E2M1,
    FP4_INDEX,
    FP4_MX_BLOCK16,
    FP4_V41,
    FP8,
    FP8_DS_MLA,
    FP8_INDEX,
    FP8_PER_TOKEN_HEAD,
    FP8_V4,
    FP8_V41,
    FP16,
    FP32,
    INT4_PER_TOKEN_HEAD,
    INT8_PER_TOKEN_HEAD,
    KV_FORMATS,
    NVFP4,
    NVFP4_DS_MLA,
    PLAIN,
    STATE_FORMATS,
    TURBOQUANT,
    GroupScaled,
    HeadScaled,
    Row,
    Storage,
    StorageFormat,
)
from tests.strategies import formats


def row(*widths: int, heads: int | None = None) -> Row:
    vectors = {f"v{number}": symbol(f"d_{number}", width) for number, width in enumerate(widths)}
    return Row(vectors=vectors, heads=None if heads is None else symbol("H", heads))


@pytest.mark.parametrize(
    ("storage", "latent", "attention"),
    [
        (FP32, 2_304, 8_192),
        (BF16, 1_152, 4_096),  # the latent of DeepSeek-V3; 8 KV heads of 128
        (FP16, 1_152, 4_096),
        (FP8, 576, 2_048),
    ],
)
def test_plain_formats_weigh_every_element_alike(storage, latent, attention):
    assert storage.row_bytes(row(512, 64)).value == latent
    assert storage.row_bytes(row(128, 128, heads=8)).value == attention


@pytest.mark.parametrize(
    ("width", "weight"),
    [
        (128, 132),  # the index key of DeepSeek Sparse Attention: 128 FP8 elements and one float32 scale
        (127, 127),  # d_i + floor(d_i / 128) * 4
        (255, 259),
        (256, 264),
    ],
)
def test_the_index_format_adds_a_scale_for_each_full_group(width, weight):
    assert FP8_INDEX.row_bytes(row(width)).value == weight


def test_a_scaled_format_counts_its_scales_in_every_head_and_vector():
    assert FP8_INDEX.row_bytes(row(128, 256, heads=3)).value == 3 * (132 + 264)


def test_the_formula_names_what_it_multiplies():
    assert BF16.row_bytes(row(128, 64, heads=8)).symbols == "H · (d_0 + d_1) · s"
    assert BF16.row_bytes(row(512, 64)).numbers == "(512 + 64) · 2"
    assert FP8_INDEX.row_bytes(row(128)).numbers == "128 · 1 + ⌊128 / 128⌋ · 4"


def test_every_format_that_can_be_chosen_exists_under_its_own_name():
    assert all(name == FORMATS[name].name for name in FORMATS)
    assert set(KV_FORMATS) | set(STATE_FORMATS) <= set(FORMATS)


def test_the_default_storage_is_that_of_the_engines():
    assert Storage() == Storage(kv=BF16, recurrent=FP32, convolution=BF16)


LATENT = Row(vectors={"latent": symbol("R", 512), "rope": symbol("D_r", 64)})
V4 = Row(vectors={"latent": symbol("R", 448), "rope": symbol("D_r", 64)})
INDEX = Row(vectors={"index": symbol("d_i", 128)})


def heads(count: int, key: int = 128, value: int = 128) -> Row:
    return Row(heads=symbol("H", count), vectors={"key": symbol("d", key), "value": symbol("d_v", value)})


EIGHT = heads(8)  # 4,096 bytes in 16 bits


def test_a_packed_latent_takes_656_bytes_and_one_of_deepseek_v4_584():
    assert FP8_DS_MLA.row_bytes(LATENT).value == 512 + 4 * 4 + 2 * 64 == 656
    assert FP8_V4.row_bytes(V4).value == 448 + 7 + 2 * 64 + 1 == 584
    assert 64 * FP8_DS_MLA.row_bytes(LATENT).value == 41_984  # a page of 64
    assert FP8_DS_MLA.row_bytes(LATENT).numbers == "512 · 1 + ⌊512 / 128⌋ · 4 + 64 · 2"
    assert FP8_V4.row_bytes(V4).numbers == "448 · 1 + ⌊448 / 64⌋ · 1 + 64 · 2 + 1"


@pytest.mark.parametrize(
    "storage", [FP8_PER_TOKEN_HEAD, INT8_PER_TOKEN_HEAD], ids=lambda storage: storage.name
)
def test_a_scale_for_every_token_and_head_makes_32_768_bytes_33_792(storage):
    assert 16 * FP8.row_bytes(EIGHT).value == 32_768
    assert 16 * storage.row_bytes(EIGHT).value == 33_792
    assert storage.row_bytes(EIGHT).numbers == "8 · (128 · 1 + 4 + 128 · 1 + 4)"


@pytest.mark.parametrize(
    ("storage", "latent"),
    [
        (INT4_PER_TOKEN_HEAD, 576 // 2 + 8),
        (INT8_PER_TOKEN_HEAD, 576 + 8),
        (NVFP4_DS_MLA, 256 + 32 + 64),
        (FP4_MX_BLOCK16, 288 + 36),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_latent_in_the_formats_of_vllm_0_33_0_and_sglang_0_5_23(storage, latent):
    assert storage.row_bytes(LATENT).value == latent


def test_int4_packs_two_elements_beside_its_scales():
    assert INT4_PER_TOKEN_HEAD.row_bytes(EIGHT).numbers == "8 · (⌊128 / 2⌋ + 4 + ⌊128 / 2⌋ + 4)"


def test_records_of_deepseek_v4_1_take_528_and_288_bytes_and_an_fp4_index_key_68():
    assert FP8_V41.row_bytes(row(512)).value == 528
    assert FP4_V41.row_bytes(row(512)).value == 288
    assert FP4_INDEX.row_bytes(row(128)).value == 68


def test_nvfp4_of_16_tokens_and_8_heads_of_128_takes_18_432_bytes():
    assert 16 * NVFP4.row_bytes(EIGHT).value == 18_432
    assert NVFP4.row_bytes(heads(1, 192, 128)).value == 96 + 12 + 64 + 8


@pytest.mark.parametrize(
    ("layers", "row", "cell", "cell_16_bit"),
    [
        (32, heads(32), 147_456, 524_288),  # LLaMA-7B
        (60, LATENT, 19_440, 69_120),  # DeepSeek-V2
    ],
)
def test_fp4_of_sglang_is_28_125_per_cent_of_16_bit_and_56_25_of_8_bit(layers, row, cell, cell_16_bit):
    assert layers * FP4_E2M1.row_bytes(row).value == cell
    assert layers * BF16.row_bytes(row).value == cell_16_bit
    assert Fraction(cell, cell_16_bit) == Fraction("0.28125")
    assert FP4_E2M1.row_bytes(row).value == FP8.row_bytes(row).value * Fraction("0.5625")


@pytest.mark.parametrize(
    ("row", "row_bytes"),
    [
        (heads(1, 24, 24), 2 * (12 + 1)),  # K and V have scales of their own, of whole groups
        (heads(2, 24, 24), 2 * (2 * 12 + 3)),  # of all heads together
        (heads(3, 25, 32), (3 * 12 + 4) + (3 * 16 + 6)),  # an odd element is not stored
    ],
)
def test_fp4_of_rows_that_are_not_whole_groups(row, row_bytes):
    # SGLang 0.5.13 MHATokenToKVPoolFP4: data [S, H, ⌊d / 2⌋], scales [S, ⌊H · d / 16⌋].
    assert FP4_E2M1.row_bytes(row).value == row_bytes


@pytest.mark.parametrize(
    ("preset", "slot"),
    [
        ("turboquant_k8v4", 196),
        ("turboquant_4bit_nc", 134),
        ("turboquant_k3v4_nc", 118),
        ("turboquant_3bit_nc", 102),
    ],
)
def test_a_turboquant_slot_of_a_head_of_128(preset, slot):
    assert FORMATS[preset].row_bytes(heads(1)).value == slot
    assert FORMATS[preset].row_bytes(EIGHT).value == 8 * slot


def test_a_block_of_16_in_4_bit_turboquant_takes_17_152_bytes():
    assert 16 * FORMATS["turboquant_4bit_nc"].row_bytes(EIGHT).value == 17_152


def test_a_turboquant_slot_is_rounded_up_to_even_bytes():
    # ceil(3 · 3 / 8) + 2 = 4 and ceil(3 · 3 / 8) + 4 = 6; of 1: 3 and 5; of 3 and 1: 4 and 5
    three = FORMATS["turboquant_3bit_nc"]
    assert [three.row_bytes(heads(1, *sizes)).value for sizes in ((3, 3), (1, 1), (3, 1))] == [10, 8, 10]


REFUSED = {
    FP8_DS_MLA: [EIGHT, INDEX],
    FP8_V4: [EIGHT, INDEX],
    NVFP4_DS_MLA: [EIGHT, INDEX],
    FP8_PER_TOKEN_HEAD: [INDEX],
    INT8_PER_TOKEN_HEAD: [INDEX],
    INT4_PER_TOKEN_HEAD: [INDEX],
    NVFP4: [LATENT, V4, INDEX],
    **{preset: [LATENT, V4, INDEX] for preset in TURBOQUANT},
}


@pytest.mark.parametrize("storage", FORMATS.values(), ids=FORMATS)
def test_a_format_refuses_rows_without_the_vectors_that_it_packs(storage):
    for given_row in (EIGHT, LATENT, V4, INDEX):
        assert storage.accepts(given_row) == (given_row not in REFUSED.get(storage, []))


def test_every_format_can_be_chosen_but_those_of_a_cache_that_has_its_own():
    own = {storage.name for storage in (FP8_INDEX, FP4_INDEX, FP8_V41, FP4_V41)}
    assert set(FORMATS) - set(KV_FORMATS) == own
    assert {FORMATS[name] for name in STATE_FORMATS} <= set(PLAIN)


def of_one_shape(sizes: list[int], count: int | None) -> Row:
    """Rows as the kinds have them: K and V of heads, a latent with its rope key, or one vector."""
    if len(sizes) == 1:
        return row(*sizes, heads=count)
    names = ("latent", "rope") if count is None else ("key", "value")
    vectors = {name: symbol(name, size) for name, size in zip(names, sizes, strict=True)}
    return Row(vectors=vectors, heads=None if count is None else symbol("H", count))


widths = st.lists(st.integers(0, 4096), min_size=1, max_size=2)
counts = st.one_of(st.none(), st.integers(1, 128))
LEAST_BITS = 3  # per element, of the shortest format


def held_vectors(held: Row) -> int:
    """Vectors, each of which may leave a half-filled byte."""
    return int((held.heads.value if held.heads else 1) * len(held.vectors))


@given(formats, widths, counts)
def test_a_row_takes_at_least_the_bits_of_its_elements(storage, sizes, count):
    held = of_one_shape(sizes, count)
    elements = held.elements.value
    assert elements == (count or 1) * sum(sizes)
    if storage.accepts(held):
        assert 8 * (storage.row_bytes(held).value + held_vectors(held)) >= LEAST_BITS * elements
    plain = type(storage) is StorageFormat or isinstance(storage, GroupScaled | HeadScaled)
    if plain and getattr(storage, "per_byte", 1) == 1:
        assert not storage.accepts(held) or storage.row_bytes(held).value >= elements * storage.element_bytes


@given(formats, widths, counts, st.integers(0, 4096))
def test_a_longer_vector_never_weighs_less(storage, sizes, count, more):
    held, longer = of_one_shape(sizes, count), of_one_shape([sizes[0] + more, *sizes[1:]], count)
    if storage.accepts(held):
        assert storage.row_bytes(longer).value >= storage.row_bytes(held).value


@given(formats, widths, st.integers(1, 128))
def test_heads_weigh_alike_where_they_share_no_byte_and_a_row_is_whole_bytes(storage, sizes, count):
    held, one = of_one_shape(sizes, count), of_one_shape(sizes, 1)
    if not storage.accepts(held):
        return
    together = storage.row_bytes(held).value
    assert Fraction(together).denominator == 1
    assert together >= count * storage.row_bytes(one).value
    if storage not in (FP4_E2M1, FP4_MX_BLOCK16) or all(size % 16 == 0 for size in sizes):
        assert together == count * storage.row_bytes(one).value
