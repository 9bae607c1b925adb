"""How layers, heads and tokens are split over ranks."""

from ...caches import FullAttention, State
from ...errors import EngineError, FieldError
from ...explain import Expression, lift
from ...model import ModelPlan
from ...parallel import per_rank
from .rules import Rules
from .settings import Settings


def num_kv_heads(total: int, tensor_parallel_size: int, *, use_mla: bool = False) -> Expression:
    """KV heads that one rank stores. Source: vLLM 0.22.0 `config/model.py`, `get_num_kv_heads`."""
    return lift(1) if use_mla else per_rank("H", total, tensor_parallel_size)


def layers_per_stage(num_layers: int, stages: int) -> tuple[int, ...]:
    """The default split over pipeline stages: the rest goes to the stages before the last, never to it.

    Source: vLLM 0.22.0 `distributed/utils.py`, `get_pp_indices`.

    Raises:
        FieldError: no stage at all, or fewer layers than none.
    """
    if stages < 1:
        raise FieldError("error.range", field="pipeline_parallel_size", value=stages, lowest=1, highest=1024)
    if num_layers < 0:
        raise FieldError("error.range", field="num_layers", value=num_layers, lowest=0, highest=2**20)
    share, rest = divmod(num_layers, stages)
    return tuple(share + (stages - 1 - rest <= stage < stages - 1) for stage in range(stages))


def check(plan: ModelPlan, settings: Settings, rules: Rules) -> None:
    """Refuse what vLLM refuses about parallel sizes before it looks at the caches.

    Source: vLLM 0.22.0 `config/parallel.py`, `config/model.py` `verify_with_parallel_config`, the model
    code's head splits, `SlidingWindowSpec.max_memory_usage_bytes`.

    Raises:
        EngineError: with the engine's reason.
    """
    tp, dcp = settings.tensor_parallel_size, settings.decode_context_parallel_size
    if settings.pipeline_parallel_size > max(1, len(plan.layers)):
        raise EngineError("vllm.pp", pp=settings.pipeline_parallel_size, layers=len(plan.layers))
    for cache in plan.caches():
        if not cache.accepts_tp(tp):
            raise EngineError("vllm.tp", tp=tp, kind=cache.kind, heads=", ".join(map(str, cache.split_heads)))
    if tp % dcp:
        raise EngineError("vllm.dcp_tp", tp=tp, dcp=dcp)
    if settings.context_parallel_size == 1:
        return
    for cache in plan.caches():
        if isinstance(cache, State) and rules.states_beside_shards:
            if settings.prefill_context_parallel_size > 1:
                raise EngineError("vllm.pcp_state", kind=cache.kind)
            continue
        if isinstance(cache, State):
            raise EngineError("vllm.cp_state", kind=cache.kind)
        if cache.bound is not None:
            raise EngineError("vllm.cp_window", kind=cache.kind)
        heads = cache.num_kv_heads if isinstance(cache, FullAttention) else None
        if dcp > 1 and heads is not None and (tp <= heads or dcp > tp // heads):
            raise EngineError("vllm.dcp_heads", tp=tp, dcp=dcp, heads=heads)
