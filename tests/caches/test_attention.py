import pytest

from calculator.caches import CrossAttention, EncoderOnlyAttention, FullAttention, Growth, SinkAttention
from calculator.explain import symbol
from calculator.footprint import Parts, footprint
from calculator.formats import BF16, FP8, FP8_DS_MLA, FP32, Storage
from calculator.model import ModelPlan


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
    assert cache.tokens_per_unit == 1
    assert cache.stored_in(Storage(kv=FP8)) is FP8


@pytest.mark.parametrize(
    ("heads", "tp", "accepted"),
    [(8, 1, True), (8, 4, True), (8, 16, True), (8, 3, False), (8, 12, False), (6, 4, False)],
)
def test_the_engines_take_a_tp_that_divides_the_heads_or_is_a_multiple_of_them(heads, tp, accepted):
    assert attention(heads, 128, 128).accepts_tp(tp) is accepted


def test_heads_cannot_be_written_as_a_packed_latent():
    assert attention(8, 128, 128).accepts(Storage(kv=FP8))
    assert not attention(8, 128, 128).accepts(Storage(kv=FP8_DS_MLA))


BART = {"num_kv_heads": 12, "head_size": 64, "head_size_v": 64}  # 6 decoder layers of bart-base


def bart(tokens: int):
    layer = (FullAttention(**BART), CrossAttention(num_encoder_tokens=tokens, **BART))
    return footprint(ModelPlan(layers=(layer,) * 6), Storage(), 1)


def test_cross_attention_of_bart_base_takes_18_432_bytes_per_encoder_token_whatever_the_context():
    assert CrossAttention.growth is Growth.CONSTANT
    assert bart(1).parts(1) == Parts(linear=18_432, bounded=0, constant=18_432)
    assert bart(1_000).parts(7) == Parts(linear=7 * 18_432, bounded=0, constant=1_000 * 18_432)
    amounts = bart(1_000).amounts(7, 1)
    assert amounts.constant_bytes.symbols == "L · H · (d + d_v) · s · T_enc"
    assert amounts.constant_bytes.numbers == "6 · 12 · (64 + 64) · 2 · 1,000"


def test_an_encoder_of_unknown_length_counts_nothing_yet():
    unknown = CrossAttention(**BART)
    assert unknown.num_encoder_tokens == 0
    assert unknown.units(100_000) == 0
    assert unknown.units(symbol("T", 5)).value == 0
    assert bart(0).parts(1).constant == 0


def test_encoder_only_attention_keeps_nothing():
    cache = EncoderOnlyAttention(**BART)
    assert cache.growth is Growth.CONSTANT
    assert cache.units(1) == cache.units(100_000) == 0
    assert footprint(ModelPlan(layers=((cache,),)), Storage(), 1).amounts(100, 2).total_bytes.value == 0


@pytest.mark.parametrize("sink_len", [0, 4, 128])
def test_a_request_holds_no_sinks_of_its_own(sink_len):
    cache = SinkAttention(num_kv_heads=8, head_size=128, head_size_v=128, sink_len=sink_len)
    assert cache.growth is Growth.LINEAR
    assert cache.unit_bytes(Storage(), 1).value == 4_096
    assert cache.units(10) == 10
