from dataclasses import dataclass

import pytest

from calculator.caches import KINDS, MLA, Cache, FullAttention, TokenCache, bounds
from calculator.caches.base import size
from calculator.errors import FieldError


@dataclass(frozen=True, kw_only=True)
class Labelled(FullAttention):
    """A kind without a name of its own, so that it is not registered."""

    sink_tokens: int = size(0, 64, default=4)
    note: str = ""


SIZES = {"num_kv_heads": 8, "head_size": 128, "head_size_v": 128}


def test_kinds_are_known_by_their_names_in_the_order_of_their_definition():
    assert list(KINDS) == [
        "full_attention",
        "sink_attention",
        "reference_window",
        "cross_attention",
        "encoder_only_attention",
        "mla",
        "hidden_state",
        "index_key",
        "sparse_index_key",
        "sliding_window",
        "chunked_local",
        "sliding_window_mla",
        "compressed_latent",
        "compressed_index_key",
        "compressor_state",
        "ring_buffer",
        "index_tail",
        "gated_delta_net",
        "kda",
        "linear_attention",
        "mamba1",
        "mamba2",
        "short_convolution",
        "rg_lru",
        "rwkv5",
    ]
    assert all(KINDS[name].kind == name for name in KINDS)


def test_a_class_without_a_kind_of_its_own_is_not_registered():
    assert not {Cache, TokenCache, Labelled} & set(KINDS.values())


def test_what_is_not_finished_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        TokenCache()


def test_the_bounds_of_a_field_are_those_that_its_class_gave():
    assert bounds(FullAttention, "num_kv_heads") == (1, 1024)
    assert bounds(MLA, "qk_rope_head_dim") == (0, 4096)
    assert bounds(Labelled, "sink_tokens") == (0, 64)


def test_a_size_may_have_a_default_and_other_fields_need_no_bounds():
    assert [name for name, _ in Labelled.sized()] == [
        "num_kv_heads",
        "head_size",
        "head_size_v",
        "sink_tokens",
    ]
    made = Labelled(**SIZES, note="a word")
    assert (made.sink_tokens, made.note) == (4, "a word")
    with pytest.raises(FieldError, match="sink_tokens: 65 is outside 0 to 64"):
        Labelled(**SIZES, sink_tokens=65)


def test_sizes_are_named_never_counted_off():
    with pytest.raises(TypeError):
        FullAttention(8, 128, 128)


def test_a_cache_does_not_change():
    with pytest.raises(AttributeError):
        FullAttention(**SIZES).num_kv_heads = 4
