"""A scenario on vLLM."""

from collections.abc import Callable
from dataclasses import replace

from ..caches import Growth
from ..engines import vllm
from ..engines.vllm import blocks
from ..engines.vllm.group import Group
from ..engines.vllm.held import blocks_held
from ..explain import Expression, lift, symbol, total
from ..footprint import Amounts, Parts
from ..model import ModelPlan
from ..scenario import Scenario
from ..serving import VLLM
from ..transfer.vllm import request_bytes
from .form import Allocated, Figure, difference_derivations, max_model_len, of_all, split
from .vllm_difference import reasons

LONGEST = 2**27  # tokens: what a window or a state takes at this context, it takes at any longer one


def settings(scenario: Scenario) -> vllm.Settings:
    """The scenario under vLLM's names."""
    serving = scenario.serving
    return vllm.Settings(
        tensor_parallel_size=scenario.tensor_parallel_size,
        pipeline_parallel_size=serving.pipeline_parallel_size,
        decode_context_parallel_size=serving.decode_context_parallel_size,
        block_size=serving.block_size or None,
        max_model_len=max_model_len(scenario),
        max_num_batched_tokens=serving.max_num_batched_tokens,
        mamba_cache_mode=None
        if serving.mamba_cache_mode == "auto"
        else vllm.MambaMode(serving.mamba_cache_mode),
        enable_prefix_caching={"auto": None, "on": True, "off": False}[serving.enable_prefix_caching],
        available_memory_bytes=serving.available_memory_bytes,
    )


def allocated(scenario: Scenario, plan: ModelPlan, rules: vllm.Rules) -> Allocated:
    """What vLLM makes of the scenario under `rules`. Raises what `allocate` raises."""
    made = vllm.allocate_under(plan, scenario.storage, settings(scenario), rules)
    pool = made.pool
    capacity: list[Figure] = [Figure(name="bytes_per_block", unit="bytes", value=made.bytes_per_block)]
    if pool is not None and made.groups:
        capacity += [
            Figure(name="num_blocks", unit="blocks", value=pool.num_blocks),
            Figure(name="blocks_per_request", unit="blocks", value=pool.blocks_per_request),
            Figure(name="concurrency", unit="times", value=_concurrency(pool)),
            Figure(name="whole_requests", unit="requests", value=pool.whole_requests),
            Figure(name="reported_tokens", unit="tokens", value=lift(pool.reported_tokens)),
            Figure(name="longest_context", unit="tokens", value=lift(pool.longest_context)),
        ]
    parts = split(reasons(made, scenario, plan), scenario.num_sequences)
    sent = request_bytes(made.widest.groups, scenario.context_tokens)
    return Allocated(
        engine=VLLM,
        version=rules.name,
        per_rank=_amounts(made, scenario),
        difference=parts,
        capacity=tuple(capacity),
        transfer=(Figure(name="request_bytes", unit="bytes", value=sent),),
        request=lambda tokens: _reserved(made, tokens),
        held=lambda tokens: _held(made, tokens),
        steps=tuple({group.spec.block_size * made.shards_of(group.spec) for group in made.widest.groups}),
        fits=pool is None or pool.fits,
        notes=(),
        derivations=(*made.derivations(), *difference_derivations(parts, f"{VLLM} {rules.name}")),
    )


def _concurrency(pool: vllm.Pool) -> Expression:
    return symbol("blocks", pool.num_blocks) / symbol("n_request", pool.blocks_per_request)


def _reserved(made: vllm.Allocation, tokens: int) -> Parts:
    """The pages that a request of `tokens` may need, before its windows forget."""
    here = replace(made.settings, max_model_len=tokens)
    return _by_growth(made, lambda group: int(made.request_pages(group, here).value))


def _held(made: vllm.Allocation, tokens: int) -> Parts:
    """The blocks that a request holds while its `tokens`-th token is decoded."""

    def blocks_of(group: Group) -> int:
        return max(
            blocks_held(
                spec,
                tokens - 1,
                1,
                shards=made.shards_of(spec),
                encoder_tokens=made.settings.encoder_tokens,
            )
            for spec, _ in group.members
        )

    return _by_growth(made, blocks_of)


def _by_growth(made: vllm.Allocation, pages: Callable[[Group], int]) -> Parts:
    """Bytes of as many blocks as `pages` says of each group."""
    sums = dict.fromkeys(Growth, 0)
    for group in made.widest.groups:
        sums[_growth(made, group)] += pages(group) * int(made.bytes_per_block.value)
    return Parts(linear=sums[Growth.LINEAR], bounded=sums[Growth.BOUNDED], constant=sums[Growth.CONSTANT])


def _growth(made: vllm.Allocation, group: Group) -> Growth:
    """How the blocks of a group follow the context: a state grows too where one is kept for every block."""
    if made.grows(group):
        return Growth.LINEAR
    return Growth.BOUNDED if group.spec.cache.growth is Growth.BOUNDED else Growth.CONSTANT


def _amounts(made: vllm.Allocation, scenario: Scenario) -> Amounts:
    """Every group pays the bytes of a whole block for each of its pages."""
    stage, chosen = made.widest, made.settings
    block = symbol("block", made.bytes_per_block)
    here = replace(chosen, max_model_len=scenario.context_tokens)
    longest = replace(chosen, max_model_len=LONGEST)
    # A group that has no layer on this stage takes blocks of its pool all the same.
    growing, windows, states = (
        [group for group in stage.groups if _growth(made, group) is growth] for growth in Growth
    )
    rate = total(block / symbol("B", group.spec.block_size * made.shards_of(group.spec)) for group in growing)
    return Amounts(
        bytes_per_token=rate,
        bounded_bytes=total(block * made.request_pages(group, longest) for group in windows),
        constant_bytes=total(block * made.request_pages(group, longest) for group in states),
        total_bytes=of_all(scenario, blocks.request_bytes(stage.groups, here, made.rules)),
    )
