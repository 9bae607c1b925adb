"""What one release of SGLang does and another does otherwise: each rule by its name, here alone.

A function that needs a rule takes the `Rules` of a version; what is not here is the same in every version.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...explain import Expression, least
from ...formats import Row, StorageFormat
from ..versions import of_version
from .cell import planned


@dataclass(frozen=True, kw_only=True)
class Rules:
    """One version: its defaults and constants, and functions where formulas differ."""

    name: str
    swa_full_tokens_ratio: float
    v4_full_tokens_ratio: float
    mamba_full_memory_ratio: float
    slots_per_request: int  # state slots of a running request beside a radix cache
    requests_per_context: int  # requests of a whole context's worth of tokens
    least_requests: int
    most_requests: int
    extra_context: int  # columns of the request map beyond the context
    host_ratio: float
    # Bytes per token at which latents beside index keys are priced, from (row, stored form, layers).
    sparse_price: Callable[[Row, StorageFormat, int], Expression]
    # Requests of a worker with a limit of its own, from (limit, estimate without one, tokens).
    limited: Callable[[Expression, Expression, Expression], Expression]
    # Models whose window layers have a pool of their own; any other gets full-length caches for them.
    hybrid_swa_architectures: frozenset[str]
    unsplit_with_host_cache: frozenset[str]  # of these, not beside a host cache


def _no_more_than_estimated(limit: Expression, estimated: Expression, _tokens: Expression) -> Expression:
    return least(limit, estimated)


RULES: Mapping[str, Rules] = {
    "0.5.13": Rules(
        name="0.5.13",
        swa_full_tokens_ratio=0.8,
        v4_full_tokens_ratio=0.1,
        mamba_full_memory_ratio=0.9,
        slots_per_request=3,
        requests_per_context=512,
        least_requests=2048,
        most_requests=4096,
        extra_context=4,
        host_ratio=2.0,
        sparse_price=planned,  # of plain rows, also where the stored ones have scales
        limited=_no_more_than_estimated,
        hybrid_swa_architectures=frozenset(
            {
                "DeepseekV4ForCausalLM",
                "DeepseekV4ForCausalLMNextN",
                "Gemma4ForCausalLM",
                "Gemma4ForConditionalGeneration",
                "Gemma4UnifiedForConditionalGeneration",
                "GptOssForCausalLM",
                "LagunaForCausalLM",
                "Llama4ForConditionalGeneration",
                "MiMoV2FlashForCausalLM",
                "MiMoV2ForCausalLM",
                "MiMoV2MTP",
                "Step3p5ForCausalLM",
                "Step3p5MTP",
                "Step3p7ForConditionalGeneration",
            }
        ),
        unsplit_with_host_cache=frozenset(
            {
                "MiMoV2FlashForCausalLM",
                "MiMoV2ForCausalLM",
                "Step3p5ForCausalLM",
                "Step3p7ForConditionalGeneration",
            }
        ),
    )
}


def rules_of(version: str) -> Rules:
    """The rules of a version. Raises FieldError for one that is not in `RULES`."""
    return of_version(RULES, version)
