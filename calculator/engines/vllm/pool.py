"""The pool of a set-up: blocks, whether a request fits, how many fit.

Source: vLLM 0.22.0 `v1/core/kv_cache_utils.py`, `get_kv_cache_configs`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from ...caches import SinkAttention
from ...errors import EngineError
from ...explain import Expression, most, symbol
from . import blocks
from .group import Group
from .rules import Rules
from .settings import Settings


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One pipeline stage: its part of every group, and the bytes that each of its ranks has for the cache."""

    groups: tuple[Group, ...]
    available_bytes: int


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One pool of blocks, equally many on every rank.

    `settings` has the context that auto-fit chose. Without `fits` the engine does not start; `num_blocks`
    then is what the memory would hold.
    """

    stages: tuple[Stage, ...]
    settings: Settings
    rules: Rules
    fits: bool

    @cached_property
    def request_bytes(self) -> tuple[Expression, ...]:
        """What one request of `max_model_len` tokens can need on a rank of each stage."""
        return tuple(blocks.request_bytes(stage.groups, self.settings, self.rules) for stage in self.stages)

    @cached_property
    def bytes_per_block(self) -> tuple[Expression, ...]:
        """Bytes of one block over all layers of each stage."""
        return tuple(blocks.bytes_per_block(stage.groups, self.settings, self.rules) for stage in self.stages)

    @cached_property
    def num_blocks(self) -> Expression:
        """Blocks of the pool: those of the tightest stage, or the number given."""
        override = self.settings.num_gpu_blocks_override
        if override is not None:
            return symbol("num_gpu_blocks_override", override)
        counts = [
            blocks.num_blocks(stage.groups, self.settings, self.rules, stage.available_bytes)
            for stage in self.stages
        ]
        return min(counts, key=lambda count: count.value)

    @cached_property
    def usable_blocks(self) -> Expression:
        """Blocks that can hold data: one is the null block."""
        return symbol("blocks", self.num_blocks) - 1

    @property
    def sink_blocks(self) -> int:
        """Blocks that attention sinks take for good, once per group. Source: `SinkFullAttentionManager`."""
        return sum(
            group.spec.cache.sink_len // group.spec.block_size
            for group in self.stages[0].groups
            if isinstance(group.spec.cache, SinkAttention)
        )

    @cached_property
    def blocks_per_request(self) -> Expression:
        """Blocks that one request of `max_model_len` tokens takes.

        Raises:
            EngineError: it takes none, and the engine would divide by zero.
        """
        needed = blocks.blocks_per_request(self.stages[0].groups, self.settings, self.rules)
        if not needed.value:
            raise EngineError("vllm.nothing")
        return needed

    @property
    def concurrency(self) -> Fraction:
        """The engine's "maximum concurrency"."""
        return Fraction(int(self.num_blocks.value), int(self.blocks_per_request.value))

    @property
    def whole_requests(self) -> Expression:
        """Requests of `max_model_len` tokens that fit at once, the null block and sinks set aside."""
        free = symbol("usable", self.usable_blocks)
        if self.sink_blocks:
            free = free - symbol("sinks", self.sink_blocks)
        return most(0, free // symbol("n_request", self.blocks_per_request))

    @property
    def reported_tokens(self) -> int:
        """The engine's "GPU KV cache size" in tokens."""
        return blocks.reported_tokens(
            int(self.num_blocks.value), int(self.blocks_per_request.value), self.settings.max_model_len
        )

    @cached_property
    def longest_context(self) -> int:
        """The longest context, up to `max_model_len`, of which one request fits on every stage; 0: none."""
        return min(
            blocks.longest_that_fits(stage.groups, self.settings, self.rules, stage.available_bytes)
            for stage in self.stages
        )


def open_pool(stages: Sequence[Stage], settings: Settings, rules: Rules) -> Pool:
    """The pool over pipeline stages, each with its memory.

    Raises:
        EngineError: auto-fit finds not even one token.
    """
    if settings.num_gpu_blocks_override is not None:
        stages = [
            replace(
                stage,
                available_bytes=settings.num_gpu_blocks_override
                * int(blocks.bytes_per_block(stage.groups, settings, rules).value)
                if stage.groups
                else stage.available_bytes,
            )
            for stage in stages
        ]
    if settings.auto_fit_max_model_len:
        longest = min(
            blocks.longest_that_fits(stage.groups, settings, rules, stage.available_bytes) for stage in stages
        )
        if longest == 0:
            raise EngineError("vllm.auto_fit")
        settings = replace(settings, max_model_len=longest)
    fits = all(blocks.fits(stage.groups, settings, rules, stage.available_bytes) for stage in stages)
    return Pool(stages=tuple(stages), settings=settings, rules=rules, fits=fits)
