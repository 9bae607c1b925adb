"""What tensor parallelism splits and what it copies.

Source: get_num_kv_heads in vLLM 0.22.0 `config/model.py` and SGLang 0.5.13 `configs/model_config.py`.
"""

from .explain import Expression, most, symbol


def per_rank(name: str, count: int, tp: int) -> Expression:
    """Heads (or columns of a state) of one of `tp` ranks: floored as the engines do, never below one."""
    if tp == 1:
        return symbol(name, count)
    return most(1, symbol(name, count) // symbol("tp", tp))
