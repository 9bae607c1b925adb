"""Prefix hits since vLLM 0.33.0: a hit may end inside a block, at a boundary of the hashes.

Source: vLLM 0.33.0 `v1/core/kv_cache_coordinator.py`, `v1/core/single_type_kv_cache_manager.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, lcm

from ...errors import EngineError, FieldError
from .prefix import CachedGroup, Found, Hit, found_blocks
from .settings import MambaMode
from .spec import FULL_TYPES, LayerSpec, SpecType

# The managers that can look up a boundary inside a block.
FINE_TYPES = FULL_TYPES | {SpecType.MAMBA}


def common_hit(
    groups: Sequence[CachedGroup],
    longest: int,
    *,
    eagle: bool = False,
    context_parallel_size: int = 1,
    hash_block_size: int | None = None,
) -> Hit:
    """The longest prefix, up to `longest` tokens, that every group can reuse.

    Rings and windows that are recomputed take no part. `hash_block_size` is that of the block hashes (None:
    as `resolve_block_sizes` has it).

    Raises:
        FieldError: no group, or a negative length.
        EngineError: context parallelism, a drafter or block sizes that a kind refuses; nothing to look up.
    """
    if not groups or longest < 0:
        raise FieldError("error.range", field="max_cache_hit_length", value=longest, lowest=0, highest=2**27)
    if any(_unaligned(group.spec) for group in groups):
        raise EngineError("vllm.state_reuse")
    sizes = [_block(group.spec, context_parallel_size) for group in groups]
    if len(groups) == 1:
        return _single(groups[0], sizes[0], longest, eagle)
    hashing = [size for size, group in zip(sizes, groups, strict=True) if group.spec.prefix_cached]
    if not hashing:
        raise EngineError("vllm.nothing_reused", groups=len(groups))
    hashed = hash_block_size or gcd(*hashing)
    if any(size % hashed for size in hashing):
        raise EngineError("vllm.hash", hash=hashed, sizes=", ".join(map(str, hashing)))
    scheduler = lcm(*sizes)
    fine = _fine(groups, sizes, hashed, context_parallel_size)
    marked = any(group.drafted for group in groups)
    together: dict[LayerSpec, list[int]] = {}
    for number, group in enumerate(groups):
        if context_parallel_size > 1 and group.spec.dcp_sharded and not group.full:
            raise EngineError("vllm.cp_reuse", kind=group.spec.cache.kind)
        if group.spec.prefix_cached:
            together.setdefault(group.spec, []).append(number)
    lookups = [
        _Lookup(
            numbers=tuple(numbers),
            spec=spec,
            block=sizes[numbers[0]],
            units=frozenset.intersection(*(_units(groups[n], sizes[n], hashed) for n in numbers)),
            drafted=eagle and any(groups[n].drafted or not marked for n in numbers),
        )
        for spec, numbers in together.items()
    ]
    # Full attention first: any shorter prefix of its hit is one as well.
    lookups.sort(key=lambda lookup: lookup.spec.type not in FULL_TYPES)
    search = _Search(
        lookups=lookups,
        hashed=hashed,
        alignment=hashed if fine else scheduler,
        fine=fine,
        # A request has hashes of whole units, and the last of its tokens is computed in any case.
        hashes=(longest + 1) // hashed * hashed,
    )
    return search.run(longest, len(groups), scheduler)


@dataclass(frozen=True, kw_only=True)
class _Lookup:
    """Groups that are looked up together, with the hash units at whose end something is cached."""

    numbers: tuple[int, ...]
    spec: LayerSpec
    block: int
    units: frozenset[int]
    drafted: bool

    @property
    def full(self) -> bool:
        return self.spec.type in FULL_TYPES


@dataclass(frozen=True, kw_only=True)
class _Search:
    lookups: Sequence[_Lookup]
    hashed: int
    alignment: int
    fine: bool
    hashes: int

    def run(self, longest: int, count: int, scheduler: int) -> Hit:
        """Every kind shortens the candidate until none does."""
        hit = longest
        reached: dict[int, int] = {}  # tokens by kind
        real: dict[int, int] = {}  # blocks that hold data by kind
        dropped: set[int] = set()  # each drafted kind drops its tokens once per candidate
        simple = len(self.lookups) == 2 and self.lookups[0].full
        while True:
            current = hit
            for index, lookup in enumerate(self.lookups):
                if lookup.full and index in reached:
                    current = min(current, reached[index])
                    continue
                drop = lookup.drafted and index not in dropped
                limit = current
                if drop and lookup.spec.type is not SpecType.MAMBA:
                    limit = min(current + self._margin(lookup), self.hashes)
                reached[index], real[index] = self._find(lookup, limit, drop=drop)
                if drop:
                    dropped.add(index)
                elif reached[index] < current:
                    dropped.clear()
                current = reached[index]
            if current >= hit:
                break
            hit = current
            if simple:
                break
        blocks = [0] * count
        for index, lookup in enumerate(self.lookups):
            held = min(real[index], -(-hit // lookup.block)) if lookup.full else real[index]
            for number in lookup.numbers:
                blocks[number] = held
        return Hit(tokens=hit, real_blocks=tuple(blocks), alignment=scheduler, ends_at=self.alignment)

    def _margin(self, lookup: _Lookup) -> int:
        """Tokens beyond the candidate that a drafter matches and then drops. Source: `eagle_proof_margin`."""
        fine = self.fine and lookup.spec.type in FINE_TYPES and lookup.block > self.hashed
        return self.hashed if fine else lookup.block

    def _find(self, lookup: _Lookup, limit: int, *, drop: bool) -> tuple[int, int]:
        """(tokens, blocks that hold data) of the longest hit of one kind within `limit` tokens."""
        scale = lookup.block // self.hashed
        fine = self.fine and lookup.spec.type in FINE_TYPES and self.alignment < lookup.block
        if fine and lookup.spec.type is SpecType.MAMBA:
            unit = max((unit for unit in lookup.units if unit < limit // self.hashed), default=-1)
            return (unit + 1) * self.hashed, min(unit + 1, 1)
        if fine:
            return self._fine_run(lookup, limit, scale, drop=drop)
        cached = frozenset(unit // scale for unit in lookup.units if (unit + 1) % scale == 0)
        spec = lookup.spec.resized(lookup.block)
        drop = drop and spec.type is not SpecType.MAMBA
        found = found_blocks(spec, cached, limit, drop=drop, alignment=self.alignment)
        return found.blocks * lookup.block, found.real

    def _fine_run(self, lookup: _Lookup, limit: int, scale: int, *, drop: bool) -> tuple[int, int]:
        """Whole blocks from the first on, then the last boundary that is cached in the block behind them."""
        whole = 0
        while whole < limit // lookup.block and (whole + 1) * scale - 1 in lookup.units:
            whole += 1
        tokens, last = whole * lookup.block, min((whole + 1) * scale - 1, limit // self.hashed)
        inside = [unit for unit in range(whole * scale, last) if unit in lookup.units]
        if inside:
            tokens = (inside[-1] + 1) * self.hashed
        if drop and tokens:
            tokens -= self.hashed
        return tokens, -(-tokens // lookup.block)


def _single(group: CachedGroup, size: int, longest: int, eagle: bool) -> Hit:
    if size != group.spec.block_size and not group.full:
        raise EngineError("vllm.cp_reuse", kind=group.spec.cache.kind)
    if not group.spec.prefix_cached:
        return Hit(tokens=0, real_blocks=(0,), alignment=size, ends_at=size)
    found: Found = found_blocks(group.spec.resized(size), group.cached, longest, drop=eagle, alignment=size)
    return Hit(tokens=found.blocks * size, real_blocks=(found.real,), alignment=size, ends_at=size)


def _block(spec: LayerSpec, context_parallel_size: int) -> int:
    return spec.block_size * (context_parallel_size if spec.dcp_sharded else 1)


def _unaligned(spec: LayerSpec) -> bool:
    """A state that is kept only at the end of its request."""
    return spec.type is SpecType.MAMBA and spec.mamba_cache_mode is not MambaMode.ALIGN


def _units(group: CachedGroup, block: int, hashed: int) -> frozenset[int]:
    """The hash units at whose end a block, or a part of one, is cached."""
    scale = block // hashed
    return frozenset((index + 1) * scale - 1 for index in group.cached) | group.units


def _fine(groups: Sequence[CachedGroup], sizes: Sequence[int], hashed: int, shards: int) -> bool:
    """Whether hits may end inside a block. Source: `partial_hash_hits_enabled`."""
    states = any(
        group.spec.type is SpecType.MAMBA
        and group.spec.mamba_cache_mode is MambaMode.ALIGN
        and (group.spec.block_size > hashed or (shards > 1 and group.spec.block_size == hashed))
        for group in groups
    )
    return states and all(
        group.spec.type in FINE_TYPES or size == hashed
        for group, size in zip(groups, sizes, strict=True)
        if group.spec.prefix_cached
    )


def resolve_block_sizes(
    specs: Sequence[LayerSpec],
    *,
    block_size: int,
    context_parallel_size: int = 1,
    hashes_used: bool = True,
    prefix_caching: bool = True,
    hash_block_size: int | None = None,
) -> tuple[int, int, int]:
    """(tokens that the scheduler aligns to, tokens per block hash, tokens that a hit is a multiple of).

    `specs` are the groups', `block_size` is the cache's; `hashes_used`: `prefix_caching` or a connector is
    on; `hash_block_size` is `prefix_match_unit`. Source: vLLM 0.33.0 `resolve_kv_cache_block_sizes`.

    Raises:
        EngineError: a hash size that does not divide.
    """
    if len(specs) <= 1:
        shards = context_parallel_size if all(spec.dcp_sharded for spec in specs) else 1
        whole = block_size * shards
        if hash_block_size not in (None, whole) and specs and hashes_used:
            raise EngineError("vllm.hash", hash=hash_block_size, sizes=str(whole))
        return whole, whole, whole
    sizes = [_block(spec, context_parallel_size) for spec in specs]
    scheduler = lcm(*sizes)
    if any(map(_unaligned, specs)) or not hashes_used:
        return scheduler, scheduler, scheduler
    hashing = [size for size, spec in zip(sizes, specs, strict=True) if spec.prefix_cached] or sizes
    hashed = hash_block_size or gcd(*hashing)
    if any(size % hashed for size in hashing):
        raise EngineError("vllm.hash", hash=hashed, sizes=", ".join(map(str, sizes)))
    groups = [CachedGroup(spec=spec, cached=frozenset()) for spec in specs]
    fine = prefix_caching and _fine(groups, sizes, hashed, context_parallel_size)
    return scheduler, hashed, hashed if fine else scheduler
