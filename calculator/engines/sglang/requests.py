"""How many requests run at once, and the map from their tokens to slots.

Source: SGLang 0.5.13 `model_executor/model_runner_kv_cache_mixin.py`, `mem_cache/memory_pool.py`.
"""

from ...errors import EngineError
from ...explain import Expression, least, lift, most, symbol, whole
from .buffers import Buffer
from .rules import Rules


def request_limit(
    tokens: int,
    context_length: int,
    rules: Rules,
    *,
    max_running_requests: int | None = None,
    data_parallel_size: int = 1,
    state_slots: int | None = None,
    slots_per_request: int = 1,
) -> Expression:
    """Requests of one data-parallel worker: by the tokens, or the user's limit; and by the state slots.

    Raises:
        EngineError: the state slots are not enough for one request.
    """
    held = symbol("tokens", tokens)
    contexts = whole(held / symbol("context", context_length) * rules.requests_per_context)
    estimated = least(most(contexts, rules.least_requests), rules.most_requests)
    if max_running_requests is None:
        limit = least(estimated, held // 2)
    else:
        given = symbol("max_running_requests", max_running_requests)
        limit = rules.limited(given // symbol("dp", data_parallel_size), estimated, held)
    if state_slots is None:
        return limit
    limit = least(limit, symbol("slots", state_slots) // symbol("r", slots_per_request))
    if limit.value <= 0:
        raise EngineError("sglang.no_slot", slots=state_slots, needed=slots_per_request)
    return limit


def request_map(requests: int, context_length: int, rules: Rules, draft_tokens: int = 0) -> Buffer:
    """ReqToTokenPool: one row per request and a spare one, one column per token and some for drafts."""
    columns = symbol("context", context_length) + (rules.extra_context + draft_tokens)
    return Buffer(
        name="req_to_token",
        shape=(symbol("requests", requests) + 1, columns),
        element="int32",
        layers=lift(1),
    )
