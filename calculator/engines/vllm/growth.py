"""How many pages one request can need. Source: vLLM 0.22.0 `max_memory_usage_bytes` of each spec."""

from ...errors import EngineError
from ...explain import Expression, ceiling, least, lift, symbol
from .rules import Rules
from .settings import MambaMode, Settings
from .spec import WINDOW_TYPES, LayerSpec, SpecType


def admission_cap(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression | None:
    """Blocks that one request may reserve in a layer that forgets; None for all others.

    Source: vLLM 0.22.0 `max_admission_blocks_per_request`.
    """
    tokens, block = symbol("T", settings.max_model_len), symbol("B", spec.block_size)
    step = rules.tokens_in_flight(settings)
    match spec.type:
        case SpecType.SLIDING_WINDOW | SpecType.SLIDING_WINDOW_MLA:
            window = symbol("w", spec.window or 1)
            # The window may begin inside a block, so its tokens can touch one block more.
            return ceiling(least(window - 1 + step, tokens), block) + 1
        case SpecType.CHUNKED_LOCAL:
            return ceiling(least(symbol("c", spec.chunk or 1) + step, tokens), block)
        case _:
            return None


def request_pages(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression:
    """Pages that one request of `max_model_len` tokens can need in a layer.

    Raises:
        EngineError: a window under decode context parallelism.
    """
    if spec.type in WINDOW_TYPES and settings.decode_context_parallel_size > 1:
        raise EngineError("vllm.cp_window", kind=spec.cache.kind)
    cap = admission_cap(spec, settings, rules)
    if cap is not None:
        return cap
    tokens, block = symbol("T", settings.max_model_len), symbol("B", spec.block_size)
    match spec.type:
        case SpecType.MAMBA:
            return _state_pages(spec, settings)
        case SpecType.CROSS:
            return ceiling(symbol("T_enc", settings.encoder_tokens), block)
        case SpecType.ENCODER_ONLY:
            return lift(0)
        case _:
            shards = rules.context_shards(settings)
            return ceiling(tokens if shards.value == 1 else ceiling(tokens, shards), block)


def _state_pages(spec: LayerSpec, settings: Settings) -> Expression:
    drafts = symbol("spec", spec.num_speculative_blocks)
    match settings.mamba_cache_mode:
        case MambaMode.ALL:
            return ceiling(symbol("T", settings.max_model_len), symbol("B_m", spec.block_size)) + drafts
        case MambaMode.ALIGN:
            return 2 + drafts
        case _:
            return 1 + drafts


def request_bytes(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression:
    """Bytes that one request can need in a layer: pages · page."""
    return request_pages(spec, settings, rules) * symbol("page", spec.page)
