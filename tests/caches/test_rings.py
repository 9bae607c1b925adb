"""Rings of DeepSeek-V4.1, index keys that are not pooled yet, and windows over generated tokens alone."""

from calculator.caches import FullAttention, Growth, IndexTail, ReferenceWindow, RingBuffer
from calculator.formats import Storage


def test_a_ring_is_held_whole_from_the_first_token_on():
    ring = RingBuffer(ring_width=1024, ring_tokens=2)
    assert ring.growth is Growth.CONSTANT
    assert ring.units(1) == ring.units(10_000) == 1
    assert ring.unit_bytes(Storage(), 1).value == 2 * 1024 * 4
    assert ring.unit_bytes(Storage(), 8).value == 2 * 1024 * 4


def test_a_tail_keeps_keys_and_their_gates():
    tail = IndexTail(ring_width=128, ring_tokens=4)
    assert tail.unit_bytes(Storage(), 1).value == 4 * 2 * 128 * 2


def test_a_reference_window_is_priced_like_full_attention():
    sizes = {"num_kv_heads": 8, "head_size": 128, "head_size_v": 128}
    one = ReferenceWindow(**sizes, reference_window=64)
    assert one.unit_bytes(Storage(), 2).value == FullAttention(**sizes).unit_bytes(Storage(), 2).value
