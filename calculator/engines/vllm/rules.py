"""What one release of vLLM does and another does otherwise: each rule by its name, here alone.

A function that needs a rule takes the `Rules` of a version; what is not here is the same in every version.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...caches import KDA, GatedDeltaNet, Mamba2, ShortConvolution, State
from ...explain import Expression, ceiling, symbol, total
from ..versions import of_version
from . import deepseek_v4, equal_pages, promotion, side_by_side
from .block_bytes import in_tuples, in_tuples_here, largest_group
from .group import Group
from .settings import CacheLayout, MambaMode, Settings
from .spec import LayerSpec, SpecType

BlockBytes = Callable[[Sequence[Group], CacheLayout], Expression]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """One version: its numbers and sets, and functions where formulas differ."""

    name: str
    planning: str  # the file that groups layers and counts blocks
    # Batches under way at once: a window keeps its own tokens beside all of theirs.
    batches_in_flight: Callable[[Settings], int]
    # Ranks that share the tokens of a request.
    context_shards: Callable[[Settings], Expression]
    # Whether a state is kept whole on every rank that shares tokens, or context parallelism refuses it.
    states_beside_shards: bool
    # Spec classes without a size of V: they store it as wide as K.
    without_value_size: frozenset[SpecType]
    formats_to_come: frozenset[str]  # of later versions
    kinds_to_come: frozenset[str]
    # Whether the attention backend packs a page: scales lie in it, and specs are equal in all their fields.
    packed: bool
    mamba_modes: frozenset[MambaMode]
    # Whether a model with attention and states reuses prefixes unless it is told not to.
    states_reused: bool
    drafted_states: tuple[type[State], ...]  # whose convolutions keep columns for drafted tokens
    kda_convolutions: int  # tensors of a KDA layer's convolutions
    least_latent_block: int  # tokens of the shortest block of latents beside states
    # A window or chunk with blocks for all tokens.
    promote: promotion.Promote
    # Groups of layers of several types, all in model order.
    group_mixed: Callable[[Sequence[LayerSpec], CacheLayout], tuple[Group, ...]]
    # Bytes of one block over all layers of a stage, and those that its memory is divided by.
    block_bytes: BlockBytes
    divided_by: BlockBytes
    # Blocks that the fit check adds to those of a request.
    blocks_beside_requests: int
    # Blocks of a request in the engine's concurrency, from (pages, bytes of one page) of every group.
    weigh: Callable[[Sequence[tuple[Expression, Expression]]], Expression]
    # Hits may end inside a block of attention where a state was kept at a finer boundary.
    fine_grained_hits: bool
    host_page_bytes: int  # that a block of the host pool is rounded up to
    shared_host_copy: bool  # whether all ranks use one host copy of latents that all of them keep


def _one(settings: Settings) -> int:  # noqa: ARG001 - whatever is chosen
    return 1


def _batches(settings: Settings) -> int:
    return settings.batches


def _all_context_ranks(settings: Settings) -> Expression:
    dcp, pcp = settings.decode_context_parallel_size, settings.prefill_context_parallel_size
    return symbol("dcp", dcp) if pcp == 1 else symbol("dcp", dcp) * symbol("pcp", pcp)


def _decode_ranks(settings: Settings) -> Expression:
    return symbol("dcp", settings.decode_context_parallel_size)


def _by_type(specs: Sequence[LayerSpec], layout: CacheLayout) -> tuple[Group, ...]:  # noqa: ARG001 - one layout
    """DeepSeek-V4 has windows of latents; all others share one page size."""
    if any(spec.type is SpecType.SLIDING_WINDOW_MLA for spec in specs):
        return deepseek_v4.group_layers(specs)
    return equal_pages.group_layers(specs)


def _by_layout(specs: Sequence[LayerSpec], layout: CacheLayout) -> tuple[Group, ...]:
    """Pages of several sizes lie side by side where the layout lets them; else they are made equal."""
    pages = {spec.page_size_bytes for spec in specs if spec.type is not SpecType.HIDDEN_STATE}
    if layout.block_outer and len(pages) > 1:
        return side_by_side.group_layers(specs)
    return equal_pages.group_padded_layers(specs)


def _in_first_pages(groups: Sequence[tuple[Expression, Expression]]) -> Expression:
    """Groups with other pages than the first count by their bytes."""
    first = groups[0][1]
    if all(page.value == first.value for _, page in groups):
        return _in_blocks(groups)
    weighed = (symbol("n", pages) * symbol("page_g", page) for pages, page in groups)
    return ceiling(total(weighed), symbol("page_1", first))


def _in_blocks(groups: Sequence[tuple[Expression, Expression]]) -> Expression:
    return total(symbol("n", pages) for pages, _ in groups)


RULES: Mapping[str, Rules] = {
    "0.22.0": Rules(
        name="0.22.0",
        planning="v1/core/kv_cache_utils.py",
        batches_in_flight=_one,
        context_shards=_all_context_ranks,
        states_beside_shards=False,
        without_value_size=frozenset({SpecType.CHUNKED_LOCAL, SpecType.CROSS, SpecType.ENCODER_ONLY}),
        formats_to_come=frozenset({"int4_per_token_head", "nvfp4_ds_mla"}),
        kinds_to_come=frozenset({"reference_window", "sparse_index_key"}),
        packed=False,
        mamba_modes=frozenset(MambaMode),
        states_reused=False,
        drafted_states=(GatedDeltaNet, Mamba2),
        kda_convolutions=3,
        least_latent_block=1,
        promote=promotion.losing_quantisation,
        group_mixed=_by_type,
        block_bytes=in_tuples,
        divided_by=in_tuples_here,
        blocks_beside_requests=0,
        weigh=_in_first_pages,
        fine_grained_hits=False,
        host_page_bytes=1,
        shared_host_copy=False,
    ),
    "0.33.0": Rules(
        name="0.33.0",
        planning="v1/core/kv_cache_planning.py",
        batches_in_flight=_batches,
        context_shards=_decode_ranks,
        states_beside_shards=True,
        without_value_size=frozenset(),
        formats_to_come=frozenset(),
        kinds_to_come=frozenset(),
        packed=True,
        mamba_modes=frozenset({MambaMode.NONE, MambaMode.ALIGN}),
        states_reused=True,
        drafted_states=(GatedDeltaNet, Mamba2, KDA, ShortConvolution),
        kda_convolutions=1,
        least_latent_block=128,
        promote=promotion.keeping_all_else,
        group_mixed=_by_layout,
        block_bytes=largest_group,
        divided_by=largest_group,
        blocks_beside_requests=1,  # the null block
        weigh=_in_blocks,
        fine_grained_hits=True,
        host_page_bytes=4096,
        shared_host_copy=True,
    ),
}


def rules_of(version: str) -> Rules:
    """The rules of a version. Raises FieldError for one that is not in `RULES`."""
    return of_version(RULES, version)
