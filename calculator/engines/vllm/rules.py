"""What one release of vLLM does and another does otherwise: each rule by its name, here alone.

A function that needs a rule takes the `Rules` of a version; what is not here is the same in every version.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...explain import Expression, ceiling, symbol, total
from ..versions import of_version
from . import deepseek_v4, equal_pages
from .group import Group
from .settings import MambaMode, Settings
from .spec import LayerSpec, SpecType


@dataclass(frozen=True, kw_only=True)
class Rules:
    """One version: its numbers and sets, and functions where formulas differ."""

    name: str
    # C: tokens of the steps under way, beside which a window keeps its own.
    tokens_in_flight: Callable[[Settings], Expression]
    # Ranks that share the tokens of a request.
    context_shards: Callable[[Settings], Expression]
    # Spec classes without a size of V: they store it as wide as K.
    without_value_size: frozenset[SpecType]
    mamba_modes: frozenset[MambaMode]
    # Groups of layers of several types, all in model order.
    group_mixed: Callable[[Sequence[LayerSpec]], tuple[Group, ...]]
    # Blocks that the fit check adds to those of a request.
    blocks_beside_requests: int
    # Blocks of a request in the engine's concurrency, from (pages, bytes of one page) of every group.
    weigh: Callable[[Sequence[tuple[Expression, Expression]]], Expression]


def _one_step(settings: Settings) -> Expression:
    return symbol("C", settings.max_num_batched_tokens)


def _all_context_ranks(settings: Settings) -> Expression:
    dcp, pcp = settings.decode_context_parallel_size, settings.prefill_context_parallel_size
    return symbol("dcp", dcp) if pcp == 1 else symbol("dcp", dcp) * symbol("pcp", pcp)


def _by_type(specs: Sequence[LayerSpec]) -> tuple[Group, ...]:
    """DeepSeek-V4 has windows of latents; all others share one page size."""
    if any(spec.type is SpecType.SLIDING_WINDOW_MLA for spec in specs):
        return deepseek_v4.group_layers(specs)
    return equal_pages.group_layers(specs)


def _in_first_pages(groups: Sequence[tuple[Expression, Expression]]) -> Expression:
    """Groups with other pages than the first count by their bytes."""
    first = groups[0][1]
    if all(page.value == first.value for _, page in groups):
        return total(symbol("n", pages) for pages, _ in groups)
    weighed = (symbol("n", pages) * symbol("page_g", page) for pages, page in groups)
    return ceiling(total(weighed), symbol("page_1", first))


RULES: Mapping[str, Rules] = {
    "0.22.0": Rules(
        name="0.22.0",
        tokens_in_flight=_one_step,
        context_shards=_all_context_ranks,
        without_value_size=frozenset({SpecType.CHUNKED_LOCAL, SpecType.CROSS, SpecType.ENCODER_ONLY}),
        mamba_modes=frozenset(MambaMode),
        group_mixed=_by_type,
        blocks_beside_requests=0,
        weigh=_in_first_pages,
    )
}


def rules_of(version: str) -> Rules:
    """The rules of a version. Raises FieldError for one that is not in `RULES`."""
    return of_version(RULES, version)
