import pytest

from calculator.caches import FullAttention, Growth
from calculator.formats import BF16, FP8, FP32, Storage


def attention(heads: int, size: int, size_v: int) -> FullAttention:
    return FullAttention(num_kv_heads=heads, head_size=size, head_size_v=size_v)


@pytest.mark.parametrize(
    ("cache", "storage", "tp", "per_token"),
    [
        (attention(32, 128, 128), BF16, 1, 16_384),  # LLaMA-7B
        (attention(8, 128, 128), BF16, 1, 4_096),  # Llama-3.1-8B
        (attention(8, 128, 128), FP8, 1, 2_048),
        (attention(8, 128, 128), FP32, 1, 8_192),
        (attention(128, 192, 128), BF16, 1, 81_920),  # DeepSeek-V3 if it were plain multi-head attention
        (attention(2, 256, 256), BF16, 1, 2_048),  # a full layer of Qwen3.5-397B-A17B
        (attention(8, 128, 128), BF16, 8, 512),
        (attention(8, 128, 128), BF16, 16, 512),  # one head per rank is the least
    ],
)
def test_bytes_of_one_token(cache, storage, tp, per_token):
    assert cache.unit_bytes(Storage(kv=storage), tp).value == per_token


def test_the_formula_in_symbols():
    assert attention(8, 128, 64).unit_bytes(Storage(), 1).symbols == "H · (d + d_v) · s"
    assert attention(8, 128, 64).unit_bytes(Storage(), 4).numbers == "max(1, ⌊8 / 4⌋) · (128 + 64) · 2"


def test_it_grows_with_every_token_and_has_no_bound():
    cache = attention(8, 128, 128)
    assert cache.growth is Growth.LINEAR
    assert cache.units(100_000) == 100_000
    assert cache.bound is None
    assert cache.format_name(Storage(kv=FP8)) == "fp8"


@pytest.mark.parametrize(
    ("heads", "tp", "accepted"),
    [(8, 1, True), (8, 4, True), (8, 16, True), (8, 3, False), (8, 12, False), (6, 4, False)],
)
def test_the_engines_take_a_tp_that_divides_the_heads_or_is_a_multiple_of_them(heads, tp, accepted):
    assert attention(heads, 128, 128).accepts_tp(tp) is accepted
