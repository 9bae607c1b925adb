"""What one rank has for its cache. Source: vLLM 0.22.0 `v1/worker/gpu_worker.py`."""

import math
from dataclasses import replace

from ...errors import FieldError
from ...explain import Expression, ceiling, symbol

MOST_BYTES = 2**53


def available_bytes(
    *,
    total_bytes: int,
    gpu_memory_utilization: float,
    weights_bytes: int = 0,
    activation_bytes: int = 0,
    non_torch_bytes: int = 0,
    graph_bytes: int = 0,
    kv_cache_memory_bytes: int | None = None,
) -> Expression:
    """⌈total · utilisation⌉ less weights, peak activations, non-torch growth and CUDA graphs.

    What is set outright counts instead. Negative where the other uses leave nothing.

    Raises:
        FieldError: a size below zero or above 2^53, a utilisation outside 0 to 1.
    """
    sizes = {
        "total_bytes": total_bytes,
        "weights_bytes": weights_bytes,
        "activation_bytes": activation_bytes,
        "non_torch_bytes": non_torch_bytes,
        "graph_bytes": graph_bytes,
        "kv_cache_memory_bytes": kv_cache_memory_bytes or 0,
    }
    for field, value in sizes.items():
        if not 0 <= value <= MOST_BYTES:
            raise FieldError("error.range", field=field, value=value, lowest=0, highest=MOST_BYTES)
    if not 0 < gpu_memory_utilization <= 1:
        raise FieldError(
            "error.range", field="gpu_memory_utilization", value=gpu_memory_utilization, lowest=0, highest=1
        )
    if kv_cache_memory_bytes is not None:
        return symbol("kv_cache_memory_bytes", kv_cache_memory_bytes)
    share = ceiling(symbol("memory", total_bytes) * symbol("utilisation", gpu_memory_utilization), 1)
    return (
        # The engine multiplies in doubles and rounds up to an integer.
        replace(share, value=math.ceil(total_bytes * gpu_memory_utilization))
        - symbol("weights", weights_bytes)
        - symbol("activations", activation_bytes)
        - symbol("other", non_torch_bytes)
        - symbol("graphs", graph_bytes)
    )
