"""What an engine allocates for a scenario, in one form for both engines: four figures, capacity, reasons.

The engines are asked, never merged: they give different capacities for the same input.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from .caches import Growth
from .engines import sglang, vllm
from .engines.vllm import blocks as vllm_blocks
from .engines.vllm.growth import request_pages
from .explain import Derivation, Expression, ceiling, least, lift, symbol, total
from .footprint import Amounts, footprint
from .model import ModelPlan
from .scenario import Scenario
from .serving import VLLM
from .transfer.sglang import transfer

LONGEST = 2**27  # tokens: a window's bound is what it takes at this context

Sentence = tuple[str, Mapping[str, object]]  # a key of the catalogues and what fills it


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of the capacity; `unit` is "bytes", "blocks", "tokens", "requests" or "times"."""

    name: str
    unit: str
    value: Expression


@dataclass(frozen=True, kw_only=True)
class Allocated:
    """What one rank of the fullest pipeline stage allocates.

    `per_rank` are the four figures with an engine's scales, padding and block rounding; `capacity` says what fits
    into `available_memory_bytes`; `fits` is False where the engine would not start for lack of memory.
    """

    engine: str
    version: str
    per_rank: Amounts
    capacity: tuple[Figure, ...]
    fits: bool
    notes: tuple[Sentence, ...]
    derivations: tuple[Derivation, ...]


def allocate(scenario: Scenario, plan: ModelPlan) -> Allocated | None:
    """What the scenario's engine allocates; None for logical bytes.

    Raises:
        EngineError: the engine refuses this, for the reason in the sentence.
        FieldError: settings that do not go together.
    """
    version = scenario.serving.version
    if version is None:
        return None
    made = _vllm if scenario.serving.engine == VLLM else _sglang
    return made(scenario, plan, version)


def _max_model_len(scenario: Scenario) -> int:
    return scenario.serving.max_model_len or scenario.context_tokens


# ---- vLLM -----------------------------------------------------------------------------------------------------


def vllm_settings(scenario: Scenario) -> vllm.Settings:
    """The scenario under vLLM's names."""
    serving = scenario.serving
    return vllm.Settings(
        tensor_parallel_size=scenario.tensor_parallel_size,
        pipeline_parallel_size=serving.pipeline_parallel_size,
        decode_context_parallel_size=serving.decode_context_parallel_size,
        block_size=serving.block_size or None,
        max_model_len=_max_model_len(scenario),
        max_num_batched_tokens=serving.max_num_batched_tokens,
        mamba_cache_mode=None
        if serving.mamba_cache_mode == "auto"
        else vllm.MambaMode(serving.mamba_cache_mode),
        enable_prefix_caching={"auto": None, "on": True, "off": False}[serving.enable_prefix_caching],
        available_memory_bytes=serving.available_memory_bytes,
    )


def _vllm(scenario: Scenario, plan: ModelPlan, version: str) -> Allocated:
    made = vllm.allocate(plan, scenario.storage, vllm_settings(scenario), version)
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
    return Allocated(
        engine=VLLM,
        version=version,
        per_rank=_vllm_amounts(made, scenario),
        capacity=tuple(capacity),
        fits=pool is None or pool.fits,
        notes=(),
        derivations=tuple(made.derivations()),
    )


def _concurrency(pool: vllm.Pool) -> Expression:
    return symbol("blocks", pool.num_blocks) / symbol("n_request", pool.blocks_per_request)


def _vllm_amounts(made: vllm.Allocation, scenario: Scenario) -> Amounts:
    """Every group pays the bytes of a whole block for each of its pages."""
    stage, settings = made.widest, made.settings
    block = symbol("block", stage.bytes_per_block)
    here = replace(settings, max_model_len=scenario.context_tokens)
    longest = replace(settings, max_model_len=LONGEST)
    groups = [group for group in stage.groups if group.present]
    growing = [group for group in groups if made.grows(group)]
    fixed = [group for group in groups if not made.grows(group)]
    windows = [group for group in fixed if group.spec.cache.growth is Growth.BOUNDED]
    states = [group for group in fixed if group.spec.cache.growth is not Growth.BOUNDED]
    shards = settings.context_parallel_size
    rate = total(block / symbol("B", group.spec.block_size * shards) for group in growing)
    request = symbol("request", vllm_blocks.request_bytes(stage.groups, here))
    return Amounts(
        bytes_per_token=rate,
        bounded_bytes=total(block * request_pages(group.spec, longest) for group in windows),
        constant_bytes=total(block * request_pages(group.spec, here) for group in states),
        total_bytes=request if scenario.num_sequences == 1 else symbol("N", scenario.num_sequences) * request,
    )


# ---- SGLang ---------------------------------------------------------------------------------------------------


def sglang_settings(scenario: Scenario, plan: ModelPlan) -> sglang.Settings:
    """The scenario under SGLang's names."""
    serving = scenario.serving
    return sglang.Settings(
        available_memory_bytes=serving.available_memory_bytes,
        context_length=_max_model_len(scenario),
        tensor_parallel_size=scenario.tensor_parallel_size,
        data_parallel_size=serving.data_parallel_size,
        pipeline_parallel_size=serving.pipeline_parallel_size,
        page_size=serving.page_size or sglang.default_page_size(plan),
        swa_full_tokens_ratio=serving.swa_full_tokens_ratio or None,
        dsa_backend=serving.dsa_backend,
        hisparse_host_to_device_ratio=serving.hisparse_host_to_device_ratio or None,
    )


def _sglang(scenario: Scenario, plan: ModelPlan, version: str) -> Allocated:
    made = sglang.allocate(plan, scenario.storage, sglang_settings(scenario, plan), version)
    capacity = [
        Figure(name="planned_bytes_per_token", unit="bytes", value=made.tightest.planned_bytes_per_token),
        Figure(name="allocated_bytes_per_token", unit="bytes", value=made.tightest.allocated_bytes_per_token),
        Figure(name="max_total_num_tokens", unit="tokens", value=made.tokens),
    ]
    if made.sizes.window is not None:
        capacity.append(Figure(name="window_tokens", unit="tokens", value=made.sizes.window))
    if made.states is not None:
        capacity.append(Figure(name="state_slots", unit="requests", value=made.states.slots))
    capacity += [
        Figure(name="max_num_reqs", unit="requests", value=made.requests),
        Figure(name="allocated_bytes", unit="bytes", value=made.allocated_bytes),
    ]
    return Allocated(
        engine=scenario.serving.engine,
        version=version,
        per_rank=_sglang_amounts(made, scenario, footprint(plan, scenario.storage, 1).bounds()),
        capacity=tuple(capacity),
        fits=True,
        notes=made.notes,
        derivations=tuple(made.derivations()),
    )


def _sglang_amounts(made: sglang.Allocation, scenario: Scenario, bounds: tuple[int, ...]) -> Amounts:
    """Whole pages of the token pools, of index keys and windows, and one state slot, as a request holds them."""
    tokens, page = symbol("T", scenario.context_tokens), symbol("P", made.page_size)
    stage = made.stages.index(made.tightest)
    sent = transfer(made, scenario.context_tokens, stage=stage)
    extra = symbol("extra", made.stages[stage].pool.extra_bytes)
    rate, windows, states, held = symbol("page", sent.page_bytes) / page, lift(0), lift(0), sent.extra_bytes
    match sent.extra:
        case sglang.Extra.DSA:
            rate = rate + extra / page
        case sglang.Extra.SWA:
            # A window may begin inside a page, so its tokens can touch one page more.
            most = ceiling(symbol("w", max(bounds)), page) + (made.page_size > 1)
            windows, held = extra * most, extra * least(ceiling(tokens, page), most)
        case sglang.Extra.MAMBA:
            states = held
    request = symbol("request", sent.kv_bytes + held)
    return Amounts(
        bytes_per_token=rate,
        bounded_bytes=windows,
        constant_bytes=states,
        total_bytes=request if scenario.num_sequences == 1 else symbol("N", scenario.num_sequences) * request,
    )
