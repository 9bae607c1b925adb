"""A scenario on SGLang."""

from ..engines import sglang
from ..explain import symbol
from ..footprint import Amounts, Parts, footprint
from ..model import ModelPlan
from ..scenario import Scenario
from ..serving import SGLANG
from ..transfer.sglang import transfer
from .form import Allocated, Figure, difference_derivations, max_model_len, of_all, split
from .sglang_difference import Held, reasons


def settings(scenario: Scenario, plan: ModelPlan) -> sglang.Settings:
    """The scenario under SGLang's names."""
    serving = scenario.serving
    return sglang.Settings(
        available_memory_bytes=serving.available_memory_bytes,
        context_length=max_model_len(scenario),
        tensor_parallel_size=scenario.tensor_parallel_size,
        data_parallel_size=serving.data_parallel_size,
        pipeline_parallel_size=serving.pipeline_parallel_size,
        page_size=serving.page_size or sglang.default_page_size(plan, scenario.storage),
        swa_full_tokens_ratio=serving.swa_full_tokens_ratio or None,
        dsa_backend=serving.dsa_backend,
        hisparse_host_to_device_ratio=serving.hisparse_host_to_device_ratio or None,
    )


def allocated(scenario: Scenario, plan: ModelPlan, rules: sglang.Rules) -> Allocated:
    """What SGLang makes of the scenario under `rules`. Raises what `allocate` raises."""
    made = sglang.allocate_under(plan, scenario.storage, settings(scenario, plan), rules)
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
    sent = transfer(made, scenario.context_tokens, stage=made.stages.index(made.tightest))
    windows = footprint(plan, scenario.storage, 1).bounds()
    held = Held.of(made, scenario.context_tokens, windows)
    parts = split(reasons(made, held, scenario, plan), scenario.num_sequences)
    return Allocated(
        engine=SGLANG,
        version=rules.name,
        per_rank=_amounts(held, scenario),
        difference=parts,
        capacity=tuple(capacity),
        transfer=(
            Figure(name="pages", unit="pages", value=sent.pages),
            Figure(name="kv_bytes", unit="bytes", value=sent.kv_bytes),
            Figure(name="extra_bytes", unit="bytes", value=sent.extra_bytes + sent.request_bytes),
        ),
        request=lambda tokens: _parts(Held.of(made, tokens, windows)),
        # Windows are freed page by page too; SGLang's own moment of freeing depends on what else is running.
        held=lambda tokens: _parts(Held.of(made, tokens, windows)),
        steps=(made.page_size,),
        fits=True,
        notes=made.notes,
        derivations=(*made.derivations(), *difference_derivations(parts, f"{SGLANG} {rules.name}")),
    )


def _parts(held: Held) -> Parts:
    windows = int((symbol("pages_w", held.window_pages) * held.window_bytes).value)
    states = int(held.state_bytes.value)
    total = int(held.total_bytes.value)
    return Parts(linear=total - windows - states, bounded=windows, constant=states)


def _amounts(held: Held, scenario: Scenario) -> Amounts:
    """Whole pages of the token pools, index keys and windows, and one state slot, as a request holds them."""
    return Amounts(
        bytes_per_token=held.page_bytes / symbol("P", held.page_size),
        bounded_bytes=held.window_bytes * symbol("pages_w", held.most_window_pages),
        constant_bytes=held.states(held.most_slots),
        total_bytes=of_all(scenario, held.total_bytes),
    )
