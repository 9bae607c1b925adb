"""What vLLM allocates for a model: the function that an estimate calls, and its answer."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

from ...errors import EngineError
from ...explain import Derivation, Expression, symbol
from ...formats import Storage
from ...model import ModelPlan
from . import blocks, parallel
from .group import Group
from .grouping import group_layers
from .growth import admission_cap, request_pages
from .held import Run
from .layout import check_expressible
from .model import ModelSpecs, model_specs
from .pool import Pool, Stage, open_pool
from .rules import Rules, rules_of
from .settings import Settings
from .spec import LayerSpec


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """What one rank allocates for a model under the `rules` of a version.

    `groups` are those of the whole model, `stages` what each pipeline stage holds of them; `pool` is None as
    long as neither memory nor a number of blocks is given. `settings` are those that the engine works with.
    """

    rules: Rules
    model: ModelSpecs
    groups: tuple[Group, ...]
    stages: tuple[Stage, ...]
    pool: Pool | None

    @property
    def version(self) -> str:
        """The version of the engine."""
        return self.rules.name

    @property
    def settings(self) -> Settings:
        """The settings with what the engine chose, auto-fit's context included."""
        return self.model.settings if self.pool is None else self.pool.settings

    @cached_property
    def widest(self) -> Stage:
        """The pipeline stage whose blocks have the most bytes."""
        return max(self.stages, key=lambda stage: self._block(stage).value)

    @cached_property
    def bytes_per_block(self) -> Expression:
        """Bytes of one block on a rank of the widest stage."""
        return self._block(self.widest)

    def _block(self, stage: Stage) -> Expression:
        return blocks.bytes_per_block(stage.groups, self.settings, self.rules)

    @cached_property
    def request_bytes(self) -> Expression:
        """The most bytes that one request of `max_model_len` tokens can need on a rank."""
        requests = (blocks.request_bytes(stage.groups, self.settings, self.rules) for stage in self.stages)
        return max(requests, key=lambda request: request.value)

    def held_blocks(self, tokens: int) -> int:
        """Blocks of a request while its token number `tokens` is decoded, over all groups; 0 for none."""
        return sum(count * self._held(spec, tokens) for spec, count in self._tables.items()) if tokens else 0

    def held_bytes(self, tokens: int) -> int:
        """Bytes of these blocks on a rank of the widest stage."""
        return self.held_blocks(tokens) * int(self.bytes_per_block.value)

    def prefill_peak_bytes(self, prompt: int) -> int:
        """The most bytes held while a prompt is computed; a bound if groups peak at different steps."""
        run = self._run(prompt)
        held = sum(count * run.prefill_peak(spec) for spec, count in self._tables.items())
        return held * int(self.bytes_per_block.value)

    def _run(self, prompt: int) -> Run:
        return Run(
            prompt=prompt,
            step=self.settings.max_num_batched_tokens,
            shards=self.shards,
            encoder_tokens=self.settings.encoder_tokens,
            batches=self.rules.batches_in_flight(self.settings),
        )

    @cached_property
    def _tables(self) -> Counter[LayerSpec]:
        """How many groups have each spec: equal ones hold equally many blocks."""
        return Counter(group.spec for group in self.groups)

    def _held(self, spec: LayerSpec, tokens: int) -> int:
        """While token number `tokens` is decoded, long after its prompt of one token."""
        return self._run(1).held(spec, tokens - 1)

    def different_specs(self) -> tuple[LayerSpec, ...]:
        """Every different spec once, as it is allocated."""
        return tuple(dict.fromkeys(spec for group in self.groups for spec, _ in group.members))

    def derivations(self) -> list[Derivation]:
        """Pages and growth of every different spec, then what the groups and the pool come to."""
        made = f"vLLM {self.version}"
        lines = []
        for number, spec in enumerate(self.different_specs()):
            name = f"vllm.specs.{number}.{spec.cache.kind}"
            source = f"{made} {spec.type.value}"
            lines += [
                Derivation(quantity=f"{name}.real_page_size_bytes", expression=spec.real_page, source=source),
                Derivation(quantity=f"{name}.page_size_bytes", expression=spec.page, source=source),
                Derivation(
                    quantity=f"{name}.request_pages",
                    expression=request_pages(spec, self.settings, self.rules),
                    source=source,
                ),
            ]
        planned = f"{made} {self.rules.planning}"
        sums = {"bytes_per_block": self.bytes_per_block, "request_bytes": self.request_bytes}
        if self.pool is not None and self.groups:
            sums |= {
                "num_blocks": self.pool.num_blocks,
                "usable_blocks": self.pool.usable_blocks,
                "blocks_per_request": self.pool.blocks_per_request,
                "whole_requests": self.pool.whole_requests,
            }
        return lines + [
            Derivation(quantity=f"vllm.{name}", expression=expression, source=planned)
            for name, expression in sums.items()
        ]

    @property
    def shards(self) -> int:
        """Ranks that share the tokens of a request."""
        return int(self.rules.context_shards(self.settings).value)

    def shards_of(self, spec: LayerSpec) -> int:
        """Ranks that share the tokens of a request in a layer."""
        return self.shards if spec.dcp_sharded else 1

    def layer_pages(self, spec: LayerSpec, settings: Settings) -> Expression:
        """Pages that one request can need in a layer, under other `settings` than its own."""
        return request_pages(spec, settings, self.rules)

    def request_pages(self, group: Group, settings: Settings) -> Expression:
        """Pages that one request can need in a group."""
        return blocks.group_pages(group, settings, self.rules)

    def grows(self, group: Group) -> bool:
        """Whether a request takes ever more blocks of this group as its context grows."""
        longer = replace(self.settings, max_model_len=2**27)
        longest = replace(self.settings, max_model_len=2**26)
        return self.request_pages(group, longer).value > self.request_pages(group, longest).value

    def admission_caps(self) -> tuple[Expression | None, ...]:
        """Per group, the most blocks that one request may reserve; None where nothing caps it."""
        return tuple(admission_cap(group.spec, self.settings, self.rules) for group in self.groups)

    def padding_bytes(self, spec: LayerSpec) -> Expression:
        """What a page has beside its entries: scales and padding."""
        return symbol("page", spec.page) - symbol("real", spec.real_page)


def allocate(plan: ModelPlan, storage: Storage, settings: Settings, version: str) -> Allocation:
    """What vLLM allocates for `plan`, its caches in the formats of `storage`.

    A request that does not fit is no error: the pool then says so, and which context would.

    Raises:
        FieldError: a version that is not known.
        EngineError: the engine refuses the model, a format or the parallel sizes.
    """
    return allocate_under(plan, storage, settings, rules_of(version))


def allocate_under(plan: ModelPlan, storage: Storage, settings: Settings, rules: Rules) -> Allocation:
    """The same under `rules`, those of a version or a step between two. Raises what `allocate` raises."""
    parallel.check(plan, settings, rules)
    made = model_specs(plan, storage, settings, rules)
    settings = made.settings
    groups = group_layers(
        made.specs,
        rules,
        hybrid_manager=not settings.disable_hybrid_kv_cache_manager,
        layout=settings.layout,
    )
    if settings.context_parallel_size > 1 and len(groups) > 1 and not rules.states_beside_shards:
        raise EngineError("vllm.cp_groups", groups=len(groups))
    if rules.packed:
        check_expressible(settings.layout, groups)
    memory = settings.available_memory_bytes
    stages = _stages(groups, made, len(plan.layers), memory or 0)
    known = memory is not None or settings.num_gpu_blocks_override is not None
    return Allocation(
        rules=rules,
        model=made,
        groups=groups,
        stages=stages,
        pool=open_pool(stages, settings, rules) if known else None,
    )


def _stages(
    groups: tuple[Group, ...], made: ModelSpecs, num_layers: int, available_bytes: int
) -> tuple[Stage, ...]:
    """The groups as each pipeline stage holds them."""
    found, first = [], 0
    for count in parallel.layers_per_stage(num_layers, made.settings.pipeline_parallel_size):
        here = frozenset(number for number, layer in enumerate(made.layers) if first <= layer < first + count)
        if groups and not here:
            raise EngineError("vllm.pp_empty", first=first, last=first + count - 1)
        first += count
        held = tuple(group.on_stage(here) for group in groups)
        found.append(Stage(groups=held, available_bytes=available_bytes))
    return tuple(found)
