"""Why vLLM takes more, or less, than is stored: step by step from a request's logical bytes to its blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from ..caches import Growth
from ..engines import vllm
from ..engines.vllm.group import Group
from ..engines.vllm.growth import kept_tokens, spare_pages
from ..engines.vllm.parallel import layers_per_stage
from ..engines.vllm.spec import LayerSpec, SpecType
from ..explain import Expression, lift, symbol, total
from ..footprint import footprint
from ..model import ModelPlan
from ..scenario import Scenario
from .form import Reason, Step

# Why a layer keeps other tokens than the model needs; any other may share them with other ranks.
KEPT = {
    SpecType.SLIDING_WINDOW: Reason.STEPS_UNDER_WAY,
    SpecType.SLIDING_WINDOW_MLA: Reason.STEPS_UNDER_WAY,
    SpecType.CHUNKED_LOCAL: Reason.STEPS_UNDER_WAY,
    SpecType.CROSS: Reason.ENCODER_TOKENS,
    SpecType.MAMBA: Reason.STATE_COPIES,
}


@dataclass(frozen=True, kw_only=True)
class _Level:
    """Bytes of a layer so far on the way: per token of context, and of one request."""

    rate: Expression
    request: Expression


def reasons(made: vllm.Allocation, scenario: Scenario, plan: ModelPlan) -> Iterator[Step]:
    """Every reason of every layer on the widest pipeline stage."""
    tp, context = scenario.tensor_parallel_size, scenario.context_tokens
    sizes = layers_per_stage(len(plan.layers), len(made.stages))
    number = made.stages.index(made.widest)
    end = list(accumulate(sizes))[number]
    here = ModelPlan(layers=plan.layers[end - sizes[number] : end])
    stored, stage = (footprint(held, scenario.storage, tp).amounts(context, 1) for held in (plan, here))
    stored_level, stage_level = (
        _Level(rate=symbol(name, found.bytes_per_token), request=symbol(name, found.total_bytes))
        for name, found in (("stored", stored), ("stage", stage))
    )
    yield _step(Reason.OTHER_STAGES, lift(1), stored_level, stage_level)
    members = [
        (group, spec, len(layers))
        for group in made.widest.groups
        if group.present
        for spec, layers in group.members
    ]
    owners = {spec: group for group, spec, _ in members}  # groups of equal layers share one way
    known = {spec: _way(made, spec, group, context) for spec, group in owners.items()}
    ways = [(group, spec, count, known[spec]) for group, spec, count in members]
    formed = _Level(
        rate=total(symbol("L", count) * way[0][1].rate for _, _, count, way in ways),
        request=total(symbol("L", count) * way[0][1].request for _, _, count, way in ways),
    )
    yield Reason.STORED_FORM, formed.rate - stage_level.rate, formed.request - stage_level.request
    for _, _, count, way in ways:
        for (_, before), (reason, after) in pairwise(way):
            yield _step(reason, symbol("L", count), before, after)
    yield from _shared(made, context, ways)


def _step(reason: Reason, layers: Expression, before: _Level, after: _Level) -> Step:
    return reason, layers * (after.rate - before.rate), layers * (after.request - before.request)


def _way(made: vllm.Allocation, spec: LayerSpec, group: Group, context: int) -> list[tuple[Reason, _Level]]:
    """The levels of one layer, each with what leads to it: as stored, kept, in whole blocks, padded."""
    settings = replace(made.settings, max_model_len=context)
    pages = symbol("n", made.layer_pages(spec, settings))
    grows = made.grows(group)
    unit, ratio = symbol("u", spec.cache.unit_bytes(spec.storage, spec.tp)), spec.cache.tokens_per_unit
    held = symbol("units", spec.cache.units(symbol("T", context)))
    linear = spec.cache.growth is Growth.LINEAR
    nothing = lift(0)
    per_block = symbol("B", spec.block_size * made.shards_of(spec))
    page = symbol("page", spec.page)
    stored = _Level(rate=unit / symbol("r", ratio) if linear else nothing, request=unit * held)
    if spec.type is SpecType.MAMBA:
        kept = _Level(rate=unit / per_block if grows else nothing, request=unit * pages)
        whole = spared = kept
    else:
        tokens, spare = symbol("kept", kept_tokens(spec, settings, made.rules)), spare_pages(spec)
        entries = symbol("entries", spec.entries)
        share = unit / (symbol("r", ratio) * symbol("ranks", made.shards_of(spec)))
        kept = _Level(rate=share if grows else nothing, request=unit * (tokens // symbol("r", ratio)))
        rounded = entries * unit / per_block if grows else nothing
        whole = _Level(rate=rounded, request=(pages - spare) * entries * unit)
        spared = _Level(rate=rounded, request=pages * entries * unit)
    return [
        (Reason.STORED_FORM, stored),
        (KEPT.get(spec.type, Reason.CONTEXT_RANKS if linear else Reason.WINDOWS_KEPT), kept),
        (Reason.BLOCK_ROUNDING, whole),
        (Reason.WINDOW_BLOCK, spared),
        (Reason.PAGE_PADDING, _Level(rate=page / per_block if grows else nothing, request=pages * page)),
    ]


def _shared(
    made: vllm.Allocation,
    context: int,
    ways: list[tuple[Group, LayerSpec, int, list[tuple[Reason, _Level]]]],
) -> Iterator[Step]:
    """A block is as large as the largest group needs: the others take it whole, too."""
    settings = replace(made.settings, max_model_len=context)
    block = symbol("block", made.bytes_per_block)
    for group in made.widest.groups:
        own = [(count, way[-1][1]) for other, _, count, way in ways if other is group]
        taken = block * made.request_pages(group, settings)
        tokens = symbol("B", group.spec.block_size * made.shards_of(group.spec))
        grown = block / tokens if made.grows(group) else lift(0)
        yield (
            Reason.SHARED_BLOCKS,
            grown - total(symbol("L", count) * level.rate for count, level in own),
            taken - total(symbol("L", count) * level.request for count, level in own),
        )
