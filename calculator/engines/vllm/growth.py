"""How many pages one request can need.

Source: vLLM 0.22.0 and 0.33.0 `max_memory_usage_bytes` of each spec.
"""

from ...errors import EngineError
from ...explain import Expression, ceiling, least, lift, symbol
from .rules import Rules
from .settings import MambaMode, Settings
from .spec import WINDOW_TYPES, LayerSpec, SpecType

FORGETTING = WINDOW_TYPES | {SpecType.CHUNKED_LOCAL}


def kept_tokens(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression:
    """The most tokens of one request that a layer keeps at once, before whole blocks; of any but a state."""
    tokens = symbol("T", settings.max_model_len)
    match spec.type:
        case SpecType.SLIDING_WINDOW | SpecType.SLIDING_WINDOW_MLA:
            held = symbol("w", spec.window or 1) - 1
            if spec.retained_tokens:
                held = held + symbol("x", spec.retained_tokens)
            return least(held + tokens_in_flight(settings, rules), tokens)
        case SpecType.CHUNKED_LOCAL:
            return least(symbol("c", spec.chunk or 1) + tokens_in_flight(settings, rules), tokens)
        case SpecType.CROSS:
            return symbol("T_enc", settings.encoder_tokens)
        case SpecType.RING:
            return symbol("ring", spec.block_size)
        case SpecType.ENCODER_ONLY:
            return lift(0)
        case _:
            shards = rules.context_shards(settings)
            alone = shards.value == 1 or not spec.dcp_sharded
            return tokens if alone else ceiling(tokens, shards)


def spare_pages(spec: LayerSpec) -> int:
    """Pages beside those of the kept tokens: a window may begin inside a block, and touch one more."""
    return int(spec.type in WINDOW_TYPES)


def tokens_in_flight(settings: Settings, rules: Rules) -> Expression:
    """C, the tokens of a step; times the batches under way, whose blocks are not freed yet."""
    step, batches = symbol("C", settings.max_num_batched_tokens), rules.batches_in_flight(settings)
    return step if batches == 1 else step * symbol("batches", batches)


def admission_cap(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression | None:
    """Blocks that one request may reserve in a layer that forgets; None for all others.

    Source: vLLM 0.22.0 and 0.33.0 `max_admission_blocks_per_request`.
    """
    return _token_pages(spec, settings, rules) if spec.type in FORGETTING else None


def request_pages(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression:
    """Pages that one request of `max_model_len` tokens can need in a layer.

    Raises:
        EngineError: a window whose tokens decode context parallelism shares out.
    """
    if spec.type in WINDOW_TYPES and settings.decode_context_parallel_size > 1 and spec.dcp_sharded:
        raise EngineError("vllm.cp_window", kind=spec.cache.kind)
    if spec.type is SpecType.MAMBA:
        return _state_pages(spec, settings)
    return _token_pages(spec, settings, rules)


def _token_pages(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression:
    pages = ceiling(kept_tokens(spec, settings, rules), symbol("B", spec.block_size))
    return pages + spare_pages(spec) if spare_pages(spec) else pages


def _state_pages(spec: LayerSpec, settings: Settings) -> Expression:
    drafts = symbol("spec", spec.num_speculative_blocks)
    match settings.mamba_cache_mode:
        case MambaMode.ALL:
            return ceiling(symbol("T", settings.max_model_len), symbol("B_m", spec.block_size)) + drafts
        case MambaMode.ALIGN:
            pages = 2 + drafts
            return pages if not spec.checkpoint_blocks else pages + symbol("k", spec.checkpoint_blocks)
        case _:
            return 1 + drafts


def request_bytes(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression:
    """Bytes that one request can need in a layer: pages · page."""
    return request_pages(spec, settings, rules) * symbol("page", spec.page)
