"""How many pages one request can need.

Source: vLLM 0.22.0 and 0.33.0 `max_memory_usage_bytes` of each spec.
"""

from ...errors import EngineError
from ...explain import Expression, ceiling, least, lift, symbol
from .rules import Rules
from .settings import MambaMode, Settings
from .spec import WINDOW_TYPES, LayerSpec, SpecType


def tokens_in_flight(settings: Settings, rules: Rules) -> Expression:
    """C, the tokens of a step; times the batches under way, whose blocks are not freed yet."""
    step, batches = symbol("C", settings.max_num_batched_tokens), rules.batches_in_flight(settings)
    return step if batches == 1 else step * symbol("batches", batches)


def admission_cap(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression | None:
    """Blocks that one request may reserve in a layer that forgets; None for all others.

    Source: vLLM 0.22.0 and 0.33.0 `max_admission_blocks_per_request`.
    """
    tokens, block = symbol("T", settings.max_model_len), symbol("B", spec.block_size)
    step = tokens_in_flight(settings, rules)
    match spec.type:
        case SpecType.SLIDING_WINDOW | SpecType.SLIDING_WINDOW_MLA:
            held = symbol("w", spec.window or 1) - 1
            if spec.retained_tokens:
                held = held + symbol("x", spec.retained_tokens)
            # The window may begin inside a block, so its tokens can touch one block more.
            return ceiling(least(held + step, tokens), block) + 1
        case SpecType.CHUNKED_LOCAL:
            return ceiling(least(symbol("c", spec.chunk or 1) + step, tokens), block)
        case _:
            return None


def request_pages(spec: LayerSpec, settings: Settings, rules: Rules) -> Expression:
    """Pages that one request of `max_model_len` tokens can need in a layer.

    Raises:
        EngineError: a window whose tokens decode context parallelism shares out.
    """
    if spec.type in WINDOW_TYPES and settings.decode_context_parallel_size > 1 and spec.dcp_sharded:
        raise EngineError("vllm.cp_window", kind=spec.cache.kind)
    cap = admission_cap(spec, settings, rules)
    if cap is not None:
        return cap
    tokens, block = symbol("T", settings.max_model_len), symbol("B", spec.block_size)
    match spec.type:
        case SpecType.MAMBA:
            return _state_pages(spec, settings)
        case SpecType.RING:
            return lift(1)
        case SpecType.CROSS:
            return ceiling(symbol("T_enc", settings.encoder_tokens), block)
        case SpecType.ENCODER_ONLY:
            return lift(0)
        case _:
            shards = rules.context_shards(settings)
            alone = shards.value == 1 or not spec.dcp_sharded
            return ceiling(tokens if alone else ceiling(tokens, shards), block)


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
