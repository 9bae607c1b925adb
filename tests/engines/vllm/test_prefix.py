"""Prefix hits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.caches import ChunkedLocal, SlidingWindow
from calculator.engines.vllm.prefix import CachedGroup, common_hit, resolve_block_sizes
from calculator.errors import EngineError, FieldError
from tests.engines.vllm.shapes import CROSS, FULL, GDN, HEADS, spec


def full(cached, block_size=16):
    return CachedGroup(spec=spec(FULL, block_size), cached=frozenset(cached))


def window(cached, reach=64, block_size=16, *, drafted=False):
    layer = spec(SlidingWindow(**HEADS, sliding_window=reach), block_size)
    return CachedGroup(spec=layer, cached=frozenset(cached), drafted=drafted)


def chunk(cached):
    return CachedGroup(spec=spec(ChunkedLocal(**HEADS, attention_chunk_size=256)), cached=frozenset(cached))


def state(cached, block_size=16):
    return CachedGroup(spec=spec(GDN, block_size), cached=frozenset(cached))


def test_a_leading_run():
    hit = common_hit([full([0, 1, 2, 4, 5])], 400)
    assert (hit.tokens, hit.real_blocks, hit.alignment) == (48, (3,), 16)
    assert common_hit([full([0, 1, 2])], 400, eagle=True).tokens == 32
    assert common_hit([full([])], 400, eagle=True).tokens == 0
    assert common_hit([full([0, 1, 2])], 400, context_parallel_size=4).tokens == 192


@pytest.mark.parametrize(("reach", "blocks"), [(64, 4), (65, 4), (66, 5), (1, 1)])
def test_a_window_needs_one_token_less(reach, blocks):
    """formulas.md 4.7."""
    assert common_hit([window(range(10, 10 + blocks), reach)], 400).tokens == (10 + blocks) * 16
    if blocks > 1:
        assert common_hit([window(range(10, 9 + blocks), reach)], 400).tokens == 0


def test_a_short_run_of_a_window_counts_from_the_start():
    assert common_hit([window([0, 1, 2])], 400).tokens == 48
    assert common_hit([window([0, 1, 2])], 400, eagle=True).tokens == 32
    assert common_hit([window([10, 11, 12, 13, 14])], 400, eagle=True).tokens == 224
    assert common_hit([window([10, 12, 13])], 400).tokens == 0


def test_every_kind_shortens_the_hit_until_none_does():
    hit = common_hit([full(range(20)), window([4, 5, 6, 7, 12, 13])], 400)
    assert (hit.tokens, hit.real_blocks) == (128, (8, 4))
    three = common_hit([full(range(20)), window([4, 5, 6, 7, 12]), window([2, 3, 8, 9], reach=33)], 400)
    assert three.tokens == 0
    apart = common_hit([window(range(20), 17), window(range(20), 33)], 400)
    assert apart.tokens == 320


def test_other_block_sizes_align_a_hit():
    hit = common_hit([full(range(20)), window(range(9), reach=33, block_size=32)], 300)
    assert (hit.tokens, hit.alignment) == (288, 32)
    unaligned = common_hit(
        [full(range(20)), window([2, 3, 5, 6], reach=17), window([2], reach=9, block_size=32)], 300
    )
    assert unaligned.tokens == 96
    odd = common_hit([full(range(7)), window([1, 2, 3], reach=17, block_size=32)], 300)
    assert odd.tokens == 96


def test_equal_groups_are_looked_up_together():
    hit = common_hit([window(range(10)), window(range(4)), full(range(10))], 400)
    assert (hit.tokens, hit.real_blocks) == (64, (4, 4, 4))


def test_a_drafter_drops_a_block_of_its_groups():
    both = common_hit([full(range(10)), window(range(10))], 160, eagle=True)
    marked = common_hit([full(range(10)), window(range(10), drafted=True)], 160, eagle=True)
    assert both.tokens == marked.tokens == 144


def test_a_chunk_counts_everything_before_it():
    hit = common_hit([full(range(40)), chunk([])], 512)
    assert (hit.tokens, hit.real_blocks) == (512, (32, 0))
    assert common_hit([full(range(40)), chunk([32])], 560).tokens == 528


def test_a_state_is_taken_where_it_was_kept():
    kept = state([3, 6], 528)
    hit = common_hit([full(range(10), block_size=528), kept], 6_000)
    assert (hit.tokens, hit.real_blocks) == (3_696, (7, 1))
    assert common_hit([state([])], 100).real_blocks == (0,)


@pytest.mark.parametrize(
    ("groups", "options", "reason"),
    [
        ([CachedGroup(spec=spec(CROSS), cached=frozenset([0]))], {}, "cross attention"),
        ([chunk([0])], {"eagle": True}, "drafter"),
        ([chunk([]), full([0], block_size=32)], {}, "same blocks"),
        ([window([0])], {"context_parallel_size": 2}, "sliding_window"),
        ([window([0]), full([0])], {"context_parallel_size": 2}, "2"),
        ([full([0]), full([1])], {}, "two kinds"),
    ],
)
def test_what_is_refused(groups, options, reason):
    with pytest.raises(EngineError, match=reason):
        common_hit(groups, 400, **options)


def test_a_hit_needs_a_group_and_a_length():
    with pytest.raises(FieldError):
        common_hit([], 1)
    with pytest.raises(FieldError):
        common_hit([full([])], -1)


MAKERS = (full, window, state)


@given(
    st.lists(
        st.tuples(st.sampled_from(MAKERS), st.frozensets(st.integers(0, 12))),
        min_size=2,
        max_size=4,
        unique_by=lambda found: found[0],
    ),
    st.integers(0, 220),
)
def test_a_hit_is_within_its_bounds(found, longest):
    groups = [make(cached) for make, cached in found]
    hit = common_hit(groups, longest)
    assert 0 <= hit.tokens <= longest
    assert hit.tokens % 16 == 0
    for group, real in zip(groups, hit.real_blocks, strict=True):
        if group.full:
            assert set(range(hit.tokens // 16)) <= group.cached
        assert real <= len(group.cached)


@pytest.mark.parametrize(
    ("specs", "options", "expected"),
    [
        ([spec()], {"block_size": 16, "context_parallel_size": 8}, (128, 128)),
        ([spec(FULL, size) for size in (256, 64, 4, 8)], {"block_size": 256}, (256, 4)),
        ([spec(FULL, 256), spec(FULL, 64)], {"block_size": 256, "hashes_used": False}, (256, 256)),
        ([spec(FULL, 256), spec(FULL, 64)], {"block_size": 256, "hash_block_size": 32}, (256, 32)),
        ([spec(FULL, 2_096), spec(GDN, 262_144)], {"block_size": 2_096}, (34_340_864,) * 2),
        ([spec(FULL, 2_096), spec(GDN, 2_096)], {"block_size": 2_096}, (2_096, 2_096)),
    ],
)
def test_alignment_and_hashes(specs, options, expected):
    assert resolve_block_sizes(specs, **options) == expected


def test_block_sizes_that_do_not_go_together():
    specs = [spec(FULL, 16), spec(FULL, 32)]
    with pytest.raises(EngineError, match="48"):
        resolve_block_sizes(specs, block_size=16, hash_block_size=48)
    with pytest.raises(EngineError, match="context parallelism"):
        resolve_block_sizes(specs, block_size=16, context_parallel_size=2)
