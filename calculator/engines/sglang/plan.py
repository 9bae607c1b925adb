"""What SGLang allocates for any model: the pool it gets, what fits, every buffer, or why it refuses.

Source: SGLang 0.5.13 `model_executor/model_runner_kv_cache_mixin.py`; 0.5.23
`mem_cache/kv_cache_configurator.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...caches import State
from ...errors import EngineError
from ...explain import Derivation, Expression, double, least, symbol, total, whole
from ...formats import FP8, FP8_V4, Storage
from ...model import ModelPlan
from .buffers import Buffer, Pool
from .cell import aligned
from .choice import attention_window, check_supported, has_window_pool, server_limit, sizing_of
from .held import Family, Held, Part, family, read
from .pools import joined, state_pool
from .requests import request_limit, request_map
from .rules import Rules, rules_of
from .settings import Settings
from .sizing import Sizes, Sizing, Span, TokenSizing
from .state import StateSplit, divide, state_shape

SOURCE = "SGLang {version} {function}"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One pipeline stage, layers [first, end): bytes per token planned and allocated, buffers per rank."""

    first: int
    end: int
    planned_bytes_per_token: Expression
    allocated_bytes_per_token: Expression
    fitting_tokens: Expression  # what would fit on this stage alone
    sizes: Sizes
    pool: Pool


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """What one rank of each stage allocates, per data-parallel worker.

    `tokens` is what requests may take together, `logical_tokens` counts those in host memory too (HiSparse).
    `notes` are sentences (catalogue key, values): where planned and allocated differ.
    """

    version: str
    family: Family
    pool: str
    page_size: int
    attention_tp: int  # ranks that share the heads of one request
    attention_window: int  # tokens that a later token may need of a window layer; 0 without windows
    stages: tuple[Stage, ...]
    tokens: Expression
    logical_tokens: Expression
    states: StateSplit | None
    requests: Expression
    request_map: Buffer
    notes: tuple[tuple[str, Mapping[str, object]], ...]

    @property
    def tightest(self) -> Stage:
        """The stage that decides how many tokens fit."""
        return min(self.stages, key=lambda stage: stage.fitting_tokens.value)

    @property
    def sizes(self) -> Sizes:
        """Tokens and entries of each pool, on the tightest stage."""
        return self.tightest.sizes

    @property
    def allocated_bytes(self) -> Expression:
        """Bytes of the largest stage's buffers, on each of its ranks."""
        return max((stage.pool.total_bytes for stage in self.stages), key=lambda sum_of: sum_of.value)

    def derivations(self) -> list[Derivation]:
        """How every figure was made, of the tightest stage."""
        stage = self.tightest
        lines = [
            ("planned_bytes_per_token", stage.planned_bytes_per_token, "pool_configurator"),
            ("allocated_bytes_per_token", stage.allocated_bytes_per_token, self.pool),
            ("tokens", self.tokens, "_apply_token_constraints"),
            ("requests", self.requests, "_resolve_max_num_reqs"),
        ]
        if self.sizes.window is not None:
            lines.append(("window_tokens", self.sizes.window, "pool_configurator"))
        if self.states is not None:
            lines.append(("state_bytes_per_request", self.states.per_request, "mamba_cache_per_req"))
            lines.append(("state_slots", self.states.slots, "handle_max_mamba_cache"))
            lines.append(("token_bytes", self.states.token_bytes, "handle_max_mamba_cache"))
        lines += [(f"buffers.{buffer.name}", buffer.bytes, self.pool) for buffer in stage.pool.buffers]
        return [
            Derivation(
                quantity=f"sglang.{name}",
                expression=expression,
                source=SOURCE.format(version=self.version, function=function),
            )
            for name, expression, function in lines
        ]


def allocate(plan: ModelPlan, storage: Storage, settings: Settings, version: str) -> Allocation:
    """What SGLang `version` allocates for `plan`.

    Raises:
        FieldError: a version that is not known, or settings that do not fit the plan.
        EngineError: the engine does not start with this, for the reason in the sentence.
    """
    return allocate_under(plan, storage, settings, rules_of(version))


def allocate_under(plan: ModelPlan, storage: Storage, settings: Settings, rules: Rules) -> Allocation:
    """The same under `rules`, those of a version or a step between two. Raises what `allocate` raises."""
    check_supported(plan, storage, settings, rules)
    held = read(plan, window_pool=has_window_pool(plan, settings, rules))
    kind = family(held)
    settings = replace(settings, max_running_requests=server_limit(kind, settings, rules))
    sizing = sizing_of(plan, held, kind, storage, settings, rules)
    states = _states(held, storage, settings, rules, settings.stages(len(plan.layers)))
    available = settings.available_memory_bytes if states is None else int(states.token_bytes.value)
    spans = settings.stages(len(plan.layers))
    fits = [_fit(sizing, span, available) for span in spans]
    tokens = _constrained([fit.tokens for fit in fits], settings)
    if tokens.value <= 0:
        raise EngineError("sglang.memory", value=settings.available_memory_bytes)
    sizes = [sizing.resize(span, tokens) for span in spans]
    requests = request_limit(
        int(tokens.value),
        settings.context_length,
        rules,
        max_running_requests=settings.max_running_requests,
        data_parallel_size=settings.data_parallel_size,
        state_slots=None if states is None else int(states.slots.value),
        slots_per_request=1 if states is None else states.slots_per_request,
    )
    stages = tuple(
        Stage(
            first=span[0],
            end=span[1],
            planned_bytes_per_token=sizing.planned(span),
            allocated_bytes_per_token=sizing.allocated(span, size),
            fitting_tokens=fit.tokens,
            sizes=size,
            pool=_pool(sizing, span, size, held, storage, settings, states, requests),
        )
        for span, fit, size in zip(spans, fits, sizes, strict=True)
    )
    ratio = settings.hisparse_host_to_device_ratio if kind is Family.SPARSE else None
    return Allocation(
        version=rules.name,
        family=kind,
        pool=stages[0].pool.name,
        page_size=settings.page_size,
        attention_tp=settings.attention_tp,
        attention_window=attention_window(plan),
        stages=stages,
        tokens=tokens,
        logical_tokens=tokens if ratio is None else symbol("tokens", tokens) * symbol("ratio", ratio),
        states=states,
        requests=requests,
        request_map=request_map(
            int(requests.value), settings.context_length, rules, settings.speculative_num_draft_tokens
        ),
        notes=_notes(plan, kind, stages, storage, sizing.fixed(spans[0], sizes[0])),
    )


def _fit(sizing: Sizing, span: Span, available_bytes: int) -> Sizes:
    """What fits on one stage.

    Raises:
        EngineError: a stage whose layers store no tokens, so that nothing limits them.
    """
    if isinstance(sizing, TokenSizing) and not sizing.layers(span):
        raise EngineError("sglang.stage_empty", first=span[0], last=span[1] - 1)
    return sizing.fit(span, available_bytes)


def _constrained(fits: list[Expression], settings: Settings) -> Expression:
    """The least over all stages and the user's limit, in whole pages."""
    tokens = fits[0]
    for other in fits[1:]:
        tokens = least(tokens, other)
    if settings.max_total_tokens is not None:
        tokens = least(tokens, symbol("max_total_tokens", settings.max_total_tokens))
    return aligned(tokens, settings.page_size) if tokens is not fits[0] else tokens


def _states(
    held: Held, storage: Storage, settings: Settings, rules: Rules, spans: tuple[Span, ...]
) -> StateSplit | None:
    """State slots, priced for all layers of the model on every stage; since 0.5.23 for the largest stage."""
    if not held.states:
        return None
    per_request = total(
        state_shape(part.cache, storage, settings.attention_tp).layer_bytes
        * symbol("L_state", len(part.indices))
        for part in held.states
    )
    if rules.states_of_stage and len(spans) > 1:
        most = max(sum(part.layers(*span) for part in held.states) for span in spans)
        layers = sum(len(part.indices) for part in held.states)
        share = double(symbol("L_stage", most) / symbol("L_state", layers))
        per_request = whole(symbol("b", per_request) * share)
    return divide(settings.available_memory_bytes, per_request, settings.state_options, rules)


def _pool(
    sizing: Sizing,
    span: Span,
    sizes: Sizes,
    held: Held,
    storage: Storage,
    settings: Settings,
    states: StateSplit | None,
    requests: Expression,
) -> Pool:
    """The stage's buffers, with those of its recurrent layers."""
    tokens = sizing.pool(span, sizes)
    if states is None:
        return tokens
    pools = [
        _state_pool(part, span, storage, settings, states, requests, sizing.rules)
        for part in held.states
        if part.layers(*span)
    ]
    return joined("HybridLinearKVPool", tokens, *pools)


def _state_pool(
    part: Part[State],
    span: Span,
    storage: Storage,
    settings: Settings,
    states: StateSplit,
    requests: Expression,
    rules: Rules,
) -> Pool:
    shape = state_shape(part.cache, storage, settings.attention_tp)
    return state_pool(
        shape,
        part.layers(*span),
        int(states.slots.value),
        settings.speculative_num_draft_tokens,
        int(requests.value),
        chained=rules.spare_state_slot,
    )


def _notes(
    plan: ModelPlan,
    kind: Family,
    stages: tuple[Stage, ...],
    storage: Storage,
    fixed: Mapping[str, object] | None,
) -> tuple[tuple[str, Mapping[str, object]], ...]:
    """Where planned and allocated differ, and what else a reader must know."""
    stage = stages[0]
    planned, allocated = stage.planned_bytes_per_token.value, stage.allocated_bytes_per_token.value
    figures = {"planned": round(planned), "allocated": round(allocated)}
    notes: list[tuple[str, Mapping[str, object]]] = []
    if kind is Family.V4:
        if fixed is None:
            notes.append(("sglang.note_v4_padding", figures))
        else:
            notes.append(("sglang.note_v4_fixed", {"planned": figures["planned"], **fixed}))
        if storage.kv not in (FP8, FP8_V4):
            notes.append(("sglang.note_v4_rows", {"format": storage.kv.name}))
    elif kind is Family.SPARSE and planned != allocated:
        notes.append(("sglang.note_sparse", figures))
    elif planned < allocated:
        notes.append(("sglang.note_wide_values", figures))
    windows = any(cache.bound is not None for cache in plan.caches())
    if kind is Family.WINDOW and plan.architecture is None:
        notes.append(("sglang.note_window_pool", {}))
    if windows and kind not in (Family.WINDOW, Family.V4):
        notes.append(("sglang.note_no_window_pool", {"architecture": plan.architecture}))
    return tuple(notes)
