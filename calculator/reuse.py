"""Prefix reuse: what each cache kind needs for a hit, and the common hit of a model with several kinds.

vLLM looks blocks up by their hash, per group of layers; SGLang walks a radix tree. Both are given here as
what is present, and answer how many tokens need not be computed again.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import gcd, lcm

from .caches import (
    Cache,
    ChunkedLocal,
    CompressorState,
    CrossAttention,
    EncoderOnlyAttention,
    SlidingWindow,
    SlidingWindowMLA,
    State,
)
from .errors import EngineError, FieldError


class Need(StrEnum):
    """What must be present for a prefix to be reused. The words are under reuse.<need> in the catalogues."""

    LEADING_RUN = "leading_run"  # every token from the first
    WINDOW = "window"  # the last w - 1 tokens
    CHUNK = "chunk"  # every token of the chunk that the next token is in
    SNAPSHOT = "snapshot"  # the state at the end of the prefix
    NEVER = "never"


def need(cache: Cache) -> Need:
    """What a cache kind needs, in both engines."""
    match cache:
        case State():
            return Need.SNAPSHOT
        case SlidingWindow() | SlidingWindowMLA() | CompressorState():
            return Need.WINDOW
        case ChunkedLocal():
            return Need.CHUNK
        case CrossAttention() | EncoderOnlyAttention():
            return Need.NEVER
        case _:
            return Need.LEADING_RUN


def tokens_needed(cache: Cache, prefix: int) -> int:
    """How many of `prefix` tokens must be present for all to count as computed; a state counts as none."""
    match need(cache):
        case Need.LEADING_RUN:
            return prefix
        case Need.WINDOW:
            return min(prefix, getattr(cache, "sliding_window", 1) - 1)
        case Need.CHUNK:
            return prefix % getattr(cache, "attention_chunk_size", 1)
        case _:
            return 0


@dataclass(frozen=True, kw_only=True)
class CachedGroup:
    """A vLLM group of layers and its blocks that are cached, numbered in its own `block_size`.

    `reach` is the window or the chunk in tokens. Groups with equal `spec` are looked up together. `drafted`
    marks the groups of a drafter; if no group is marked, a drafter concerns all.
    """

    spec: Hashable
    need: Need
    block_size: int
    cached: frozenset[int]
    reach: int = 1
    drafted: bool = False


@dataclass(frozen=True, kw_only=True)
class Hit:
    """The reusable tokens, per group the blocks of them that hold data, and the alignment of a hit."""

    tokens: int
    real_blocks: tuple[int, ...]
    alignment: int


@dataclass(frozen=True)
class _Found:
    """A hit of one kind: blocks up to its end, and how many of the last of them hold data."""

    blocks: int
    real: int

    def without(self, dropped: int) -> "_Found":
        return _Found(self.blocks - dropped, max(0, self.real - dropped))

    def aligned(self, block_size: int, alignment: int) -> "_Found":
        """Shortened to a multiple of `alignment` tokens."""
        step = alignment // gcd(alignment, block_size)
        return self.without(self.blocks % step)


def common_hit(
    groups: Sequence[CachedGroup], longest: int, *, eagle: bool = False, context_parallel_size: int = 1
) -> Hit:
    """The longest prefix, up to `longest` tokens, that every group can reuse.

    Source: vLLM 0.22.0 `v1/core/kv_cache_coordinator.py`, `find_longest_cache_hit`.

    Raises:
        FieldError: no group, or a negative length.
        EngineError: context parallelism, a drafter or other block sizes that a kind refuses.
    """
    if not groups or longest < 0:
        raise FieldError("error.range", field="max_cache_hit_length", value=longest, lowest=0, highest=2**27)
    if len(groups) == 1:
        return _single(groups[0], longest, eagle, context_parallel_size)
    if context_parallel_size > 1:
        raise EngineError("vllm.cp_groups", groups=len(groups))
    alignment = lcm(*(group.block_size for group in groups))
    marked = any(group.drafted for group in groups)
    together: dict[Hashable, list[int]] = {}
    for number, group in enumerate(groups):
        together.setdefault(group.spec, []).append(number)
    lookups = [
        _Lookup(
            numbers=tuple(numbers),
            group=groups[numbers[0]],
            cached=frozenset.intersection(*(groups[number].cached for number in numbers)),
            drafted=eagle and any(groups[number].drafted or not marked for number in numbers),
        )
        for numbers in together.values()
    ]
    if len(lookups) == 1:
        raise EngineError("vllm.one_kind", groups=len(groups))
    # Full attention first: any shorter prefix of its hit is one as well.
    lookups.sort(key=lambda lookup: lookup.group.need is not Need.LEADING_RUN)
    return _fixed_point(lookups, longest, alignment, len(groups))


@dataclass(frozen=True, kw_only=True)
class _Lookup:
    """Groups that are looked up together."""

    numbers: tuple[int, ...]
    group: CachedGroup
    cached: frozenset[int]
    drafted: bool


def _fixed_point(lookups: Sequence[_Lookup], longest: int, alignment: int, count: int) -> Hit:
    """Every kind shortens the candidate until none does."""
    hit = longest
    found: dict[int, _Found] = {}
    dropped: set[int] = set()  # each drafted kind drops its block once per candidate
    simple = len(lookups) == 2 and lookups[0].group.need is Need.LEADING_RUN
    while True:
        current = hit
        for index, lookup in enumerate(lookups):
            size = lookup.group.block_size
            if lookup.group.need is Need.LEADING_RUN and index in found:
                current = current // size * size
                continue
            drop = lookup.drafted and index not in dropped
            limit = min(current + size, longest) if drop else current
            found[index] = _found(lookup.group, lookup.cached, limit, drop=drop, alignment=alignment)
            reached = found[index].blocks * size
            if drop:
                dropped.add(index)
            elif reached < current:
                dropped.clear()
            current = reached
        if current >= hit:
            break
        hit = current
        if simple:
            break
    real = [0] * count
    for index, lookup in enumerate(lookups):
        blocks = found[index].real
        if lookup.group.need is Need.LEADING_RUN and index == 0:
            blocks = min(blocks, hit // lookup.group.block_size)
        for number in lookup.numbers:
            real[number] = blocks
    return Hit(tokens=hit, real_blocks=tuple(real), alignment=alignment)


def _single(group: CachedGroup, longest: int, eagle: bool, shards: int) -> Hit:
    if shards > 1 and group.need is not Need.LEADING_RUN:
        raise EngineError("vllm.cp_reuse", need=group.need.value)
    size = group.block_size * shards
    group = CachedGroup(
        spec=group.spec, need=group.need, block_size=size, cached=group.cached, reach=group.reach
    )
    found = _found(group, group.cached, longest, drop=eagle, alignment=size)
    return Hit(tokens=found.blocks * size, real_blocks=(found.real,), alignment=size)


def _found(group: CachedGroup, cached: frozenset[int], limit: int, *, drop: bool, alignment: int) -> _Found:
    """The longest hit of one kind within `limit` tokens. Source: `find_longest_cache_hit` of its manager."""
    blocks = limit // group.block_size
    match group.need:
        case Need.LEADING_RUN:
            run = _run(cached, 0, blocks)
            return _Found(run, run).without(1 if drop and run else 0).aligned(group.block_size, alignment)
        case Need.WINDOW:
            return _window(group, cached, blocks, drop, alignment)
        case Need.CHUNK:
            if drop or group.block_size != alignment:
                raise EngineError("vllm.chunk_reuse", block_size=group.block_size, alignment=alignment)
            start = limit // group.reach * group.reach // group.block_size
            run = _run(cached, start, blocks)
            return _Found(start + run, run)
        case Need.SNAPSHOT:
            ends = (i + 1 for i in cached if i < blocks and (i + 1) * group.block_size % alignment == 0)
            end = max(ends, default=0)
            return _Found(end, min(end, 1))
        case _:
            raise EngineError("vllm.cross_reuse")


def _run(cached: frozenset[int], start: int, end: int) -> int:
    """Consecutive cached blocks from `start` on, before `end`."""
    block = start
    while block < end and block in cached:
        block += 1
    return block - start


def _window(group: CachedGroup, cached: frozenset[int], blocks: int, drop: bool, alignment: int) -> _Found:
    """From the right, the first run long enough for the window; a shorter one only from block 0."""
    size = group.block_size
    needed = -(-(group.reach - 1) // size) + drop
    run, previous = 0, -1
    for block in sorted((i for i in cached if i < blocks), reverse=True):
        if run and block != previous - 1:
            run = 0
        if run == 0 and (block + (not drop)) * size % alignment:
            continue
        run, previous = run + 1, block
        if run >= needed:
            found = _Found(block + run, run)
            break
    else:
        run = run if previous == 0 else 0
        found = _Found(run, run).aligned(size, alignment)
    return found.without(1 if drop and found.blocks else 0).aligned(size, alignment)


def resolve_block_sizes(
    block_sizes: Sequence[int],
    *,
    block_size: int,
    state_block_sizes: Sequence[int] = (),
    context_parallel_size: int = 1,
    hashes_used: bool = True,
    hash_block_size: int | None = None,
) -> tuple[int, int]:
    """(tokens that the scheduler aligns to, tokens per block hash).

    `block_sizes` are the groups' and `state_block_sizes` those of them that hold states; `block_size` is the
    cache's; `hashes_used`: prefix caching or a connector is on. Source: vLLM 0.22.0
    `resolve_kv_cache_block_sizes`.

    Raises:
        EngineError: context parallelism with several groups, or a hash size that does not divide.
    """
    if len(block_sizes) <= 1:
        return (block_size * context_parallel_size,) * 2
    if context_parallel_size > 1:
        raise EngineError("vllm.cp_groups", groups=len(block_sizes))
    scheduler = lcm(*block_sizes)
    if not hashes_used or any(size != block_size for size in state_block_sizes):
        return scheduler, scheduler
    hashed = gcd(*block_sizes) if hash_block_size is None else hash_block_size
    if any(size % hashed for size in block_sizes):
        raise EngineError("vllm.hash", hash=hashed, sizes=", ".join(map(str, block_sizes)))
    return scheduler, hashed


Span = tuple[int, int]  # tokens from the first number up to, not including, the second


def radix_hit(
    matched: int,
    *,
    page_size: int = 1,
    window: int | None = None,
    window_spans: Sequence[Span] = (),
    snapshots: Sequence[int] | None = None,
) -> int:
    """Tokens that SGLang reuses of `matched` ones that are in its radix tree.

    `window` is the engine's (often `sliding_window` - 1) and `window_spans` the stretches of the matched path
    whose window cache is still present; `snapshots` the depths at which a state was kept; None: the model has
    none. Source: SGLang 0.5.13 `mem_cache/radix_cache.py`, `swa_radix_cache.py`, `mamba_radix_cache.py`.
    """
    hit = matched // page_size * page_size
    if window is not None:
        hit = max((_reusable(span, hit, window, page_size) for span in window_spans), default=0)
    if snapshots is not None:
        hit = max((depth for depth in snapshots if depth <= hit and depth % page_size == 0), default=0)
    return hit


def _reusable(span: Span, limit: int, window: int, page_size: int) -> int:
    """The deepest end within a span: an unbroken path to the root, or `window` tokens behind it."""
    start, end = span
    end = min(end, limit) // page_size * page_size
    return end if start == 0 or end - start >= window else 0
