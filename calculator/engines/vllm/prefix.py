"""Prefix hits: the longest prefix whose blocks, in every group of layers, are still there.

Source: vLLM 0.22.0 `v1/core/kv_cache_coordinator.py`, `v1/core/single_type_kv_cache_manager.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, lcm

from ...errors import EngineError, FieldError
from .spec import FULL_TYPES, WINDOW_TYPES, LayerSpec, SpecType


@dataclass(frozen=True, kw_only=True)
class CachedGroup:
    """A group of layers and its blocks that are cached, numbered in the block size of its `spec`.

    Groups with equal specs are looked up together. `drafted` marks the groups of a drafter; if no group is
    marked, a drafter concerns all. `units` are boundaries inside a block that are cached, in units of the
    block hashes (since 0.33.0).
    """

    spec: LayerSpec
    cached: frozenset[int]
    drafted: bool = False
    units: frozenset[int] = frozenset()

    @property
    def full(self) -> bool:
        """Whether any shorter prefix of a hit is a hit as well."""
        return self.spec.type in FULL_TYPES


@dataclass(frozen=True, kw_only=True)
class Hit:
    """The reusable tokens, per group the blocks of them that hold data, and the scheduler's alignment.

    A hit ends at a multiple of `ends_at` (since 0.33.0; None: of the alignment).
    """

    tokens: int
    real_blocks: tuple[int, ...]
    alignment: int
    ends_at: int | None = None


@dataclass(frozen=True)
class Found:
    """A hit of one kind: blocks up to its end, and how many of the last of them hold data."""

    blocks: int
    real: int

    def without(self, dropped: int) -> "Found":
        """Some blocks shorter."""
        return Found(self.blocks - dropped, max(0, self.real - dropped))

    def aligned(self, block_size: int, alignment: int) -> "Found":
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
    alignment = lcm(*(group.spec.block_size for group in groups))
    marked = any(group.drafted for group in groups)
    together: dict[LayerSpec, list[int]] = {}
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
    lookups.sort(key=lambda lookup: not lookup.group.full)
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
    found: dict[int, Found] = {}
    dropped: set[int] = set()  # each drafted kind drops its block once per candidate
    simple = len(lookups) == 2 and lookups[0].group.full
    while True:
        current = hit
        for index, lookup in enumerate(lookups):
            size = lookup.group.spec.block_size
            if lookup.group.full and index in found:
                current = current // size * size
                continue
            drop = lookup.drafted and index not in dropped
            limit = min(current + size, longest) if drop else current
            found[index] = found_blocks(
                lookup.group.spec, lookup.cached, limit, drop=drop, alignment=alignment
            )
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
        if lookup.group.full and index == 0:
            blocks = min(blocks, hit // lookup.group.spec.block_size)
        for number in lookup.numbers:
            real[number] = blocks
    return Hit(tokens=hit, real_blocks=tuple(real), alignment=alignment)


def _single(group: CachedGroup, longest: int, eagle: bool, shards: int) -> Hit:
    if shards > 1 and not group.full:
        raise EngineError("vllm.cp_reuse", kind=group.spec.cache.kind)
    size = group.spec.block_size * shards
    found = found_blocks(group.spec.resized(size), group.cached, longest, drop=eagle, alignment=size)
    return Hit(tokens=found.blocks * size, real_blocks=(found.real,), alignment=size)


def found_blocks(spec: LayerSpec, cached: frozenset[int], limit: int, *, drop: bool, alignment: int) -> Found:
    """The longest hit of one kind within `limit` tokens. Source: `find_longest_cache_hit` of its manager."""
    size, blocks = spec.block_size, limit // spec.block_size
    if spec.type in FULL_TYPES:
        run = _run(cached, 0, blocks)
        return Found(run, run).without(1 if drop and run else 0).aligned(size, alignment)
    if spec.type in WINDOW_TYPES:
        return _window(spec, cached, blocks, drop, alignment)
    if spec.type is SpecType.CHUNKED_LOCAL:
        if drop or size != alignment:
            raise EngineError("vllm.chunk_reuse", block_size=size, alignment=alignment)
        # What lies before the chunk of the next token counts as present.
        start = (limit - limit % (spec.chunk or 1)) // size
        run = _run(cached, start, blocks)
        return Found(start + run, run)
    if spec.type is SpecType.MAMBA:
        ends = (block + 1 for block in cached if block < blocks and (block + 1) * size % alignment == 0)
        end = max(ends, default=0)
        return Found(end, min(end, 1))
    raise EngineError("vllm.cross_reuse")


def _run(cached: frozenset[int], start: int, end: int) -> int:
    """Consecutive cached blocks from `start` on, before `end`."""
    block = start
    while block < end and block in cached:
        block += 1
    return block - start


def _window(spec: LayerSpec, cached: frozenset[int], blocks: int, drop: bool, alignment: int) -> Found:
    """From the right, the first run long enough for the window; a shorter one only from block 0."""
    size = spec.block_size
    needed = -(-((spec.window or 1) - 1) // size) + drop
    run, previous = 0, -1
    for block in sorted((i for i in cached if i < blocks), reverse=True):
        if run and block != previous - 1:
            run = 0
        if run == 0 and (block + (not drop)) * size % alignment:
            continue
        run, previous = run + 1, block
        if run >= needed:
            found = Found(block + run, run)
            break
    else:
        run = run if previous == 0 else 0
        found = Found(run, run).aligned(size, alignment)
    return found.without(1 if drop and found.blocks else 0).aligned(size, alignment)


def resolve_block_sizes(
    specs: Sequence[LayerSpec],
    *,
    block_size: int,
    context_parallel_size: int = 1,
    hashes_used: bool = True,
    hash_block_size: int | None = None,
) -> tuple[int, int]:
    """(tokens that the scheduler aligns to, tokens per block hash).

    `specs` are the groups', `block_size` is the cache's; `hashes_used`: prefix caching or a connector is on.
    Source: vLLM 0.22.0 `v1/core/kv_cache_utils.py`, `resolve_kv_cache_block_sizes`.

    Raises:
        EngineError: context parallelism with several groups, or a hash size that does not divide.
    """
    if len(specs) <= 1:
        return (block_size * context_parallel_size,) * 2
    if context_parallel_size > 1:
        raise EngineError("vllm.cp_groups", groups=len(specs))
    sizes = [spec.block_size for spec in specs]
    scheduler = lcm(*sizes)
    apart = any(spec.type is SpecType.MAMBA and spec.block_size != block_size for spec in specs)
    if apart or not hashes_used:
        return scheduler, scheduler
    hashed = gcd(*sizes) if hash_block_size is None else hash_block_size
    if any(size % hashed for size in sizes):
        raise EngineError("vllm.hash", hash=hashed, sizes=", ".join(map(str, sizes)))
    return scheduler, hashed
