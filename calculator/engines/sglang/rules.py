"""What one version of SGLang does and another does otherwise: the numbers, and where the functions are.

The functions that differ between versions: `cell.planned`, `deepseek_v4.terms` and `sizes`, `state.divide`,
`requests.request_limit`, `host.attention_host`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import FieldError


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The defaults and constants of one version."""

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
    # Models whose window layers have a pool of their own; any other gets full-length caches for them.
    hybrid_swa_architectures: frozenset[str]
    unsplit_with_host_cache: frozenset[str]  # of these, windows are as long as the rest beside a host cache


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
        hybrid_swa_architectures=frozenset(
            {
                "DeepseekV4ForCausalLM",
                "Gemma4ForCausalLM",
                "Gemma4ForConditionalGeneration",
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
            {"MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM", "Step3p5ForCausalLM"}
        ),
    )
}


def rules_of(version: str) -> Rules:
    """The rules of a version.

    Raises:
        FieldError: `version` is not one of `RULES`.
    """
    if version not in RULES:
        raise FieldError("error.choice", field="version", value=version, options=", ".join(RULES))
    return RULES[version]
