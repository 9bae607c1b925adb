"""What one release of SGLang does and another does otherwise: each rule by its name, here alone.

A function that needs a rule takes the `Rules` of a version; what is not here is the same in every version.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ...explain import Expression, least, most
from ...formats import (
    BF16,
    FP4_E2M1,
    FP4_MX_BLOCK16,
    FP8,
    FP8_DS_MLA,
    FP8_V4,
    FP16,
    FP32,
    MXFP8,
    NVFP4,
    Row,
    StorageFormat,
)
from ..versions import of_version
from .cell import as_stored, planned


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
    formats: tuple[StorageFormat, ...]  # that its pools store
    kinds_to_come: frozenset[str]  # of later versions
    # Whether index keys are priced as they are allocated: of the layers that own them, with HiSparse of all
    # tokens; a layer that shares another's indexer then owns none.
    index_as_allocated: bool
    drafters_priced: bool  # whether a drafter's layers are part of the cell
    states_of_stage: bool  # whether states are priced for the stage with most of them, not for all layers
    spare_state_slot: bool  # whether the memory of states pays for the pool's spare slot
    # Whether DeepSeek-V4's padding is priced, and what a request keeps of its own is a fixed amount.
    v4_paged: bool
    v4_requests: int | None  # the limit that the server sets for DeepSeek-V4 where the user gives none
    drafter_requests: int | None  # the same for other models with speculative decoding
    # Backends of sparse attention whose kernels read FP8 latents without scales, by platform.
    plain_latent_backends: Mapping[str, frozenset[str]]
    window_checked: bool  # whether a window pool in which no request fits is refused
    window_capped: bool  # whether a limit of requests sizes the window pool where the radix cache is off
    host_value_width: bool  # whether a host pool keeps V in its own width
    host_may_be_smaller: bool  # than the device pool
    # Models whose window layers have a pool of their own; any other gets full-length caches for them.
    hybrid_swa_architectures: frozenset[str]
    own_window_shapes: frozenset[str]  # of these, the models whose pools keep V and windows as they are
    unsplit_with_host_cache: frozenset[str]  # of these, not beside a host cache


def _capped_by_tokens(limit: Expression, _estimated: Expression, tokens: Expression) -> Expression:
    return least(most(limit, 1), tokens // 2)


def _no_more_than_estimated(limit: Expression, estimated: Expression, _tokens: Expression) -> Expression:
    return least(limit, estimated)


_PLAIN = frozenset({"trtllm"})
_WINDOW_POOLS = frozenset(
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
)
_OWN_WINDOW_SHAPES = frozenset(
    {
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "Gemma4UnifiedForConditionalGeneration",
        "MiMoV2FlashForCausalLM",
        "MiMoV2ForCausalLM",
        "MiMoV2MTP",
    }
)
_NEWER_WINDOW_POOLS = frozenset(
    {
        "BeamForCausalLM",
        "DeepseekV4ForCausalLMDSpark",
        "DiffusionGemmaForBlockDiffusion",
        "EmbeddingGemma2Model",
        "GraniteMoeSWAForCausalLM",
        "GraniteSWAForCausalLM",
        "IQuestQ1ForCausalLM",
        "IQuestQ1MTP",
        "InklingForConditionalGeneration",
        "InklingForConditionalGenerationMTP",
        "MellumForCausalLM",
        "MuseGlimmerForCausalLM",
        "MuseGlimmerForConditionalGeneration",
        "UnlimitedOCRForCausalLM",
    }
)


_V0_5_13 = Rules(
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
    formats=(BF16, FP16, FP32, FP8, FP8_DS_MLA, FP8_V4, FP4_E2M1),
    kinds_to_come=frozenset({"sparse_index_key", "ring_buffer"}),
    index_as_allocated=False,
    drafters_priced=False,
    states_of_stage=False,
    spare_state_slot=False,
    v4_paged=False,
    v4_requests=None,
    drafter_requests=None,
    plain_latent_backends={"cuda": _PLAIN, "hip": _PLAIN | {"tilelang", "aiter"}},
    window_checked=False,
    window_capped=False,
    host_value_width=False,
    host_may_be_smaller=False,
    hybrid_swa_architectures=_WINDOW_POOLS,
    own_window_shapes=_OWN_WINDOW_SHAPES,
    unsplit_with_host_cache=frozenset(
        {
            "MiMoV2FlashForCausalLM",
            "MiMoV2ForCausalLM",
            "Step3p5ForCausalLM",
            "Step3p7ForConditionalGeneration",
        }
    ),
)

# What is not named here is as before.
_V0_5_23 = replace(
    _V0_5_13,
    name="0.5.23",
    sparse_price=as_stored,
    limited=_capped_by_tokens,
    formats=(BF16, FP16, FP32, FP8, FP8_DS_MLA, FP8_V4, NVFP4, FP4_MX_BLOCK16, MXFP8),
    kinds_to_come=frozenset(),
    index_as_allocated=True,
    drafters_priced=True,
    states_of_stage=True,
    spare_state_slot=True,
    v4_paged=True,
    v4_requests=256,
    drafter_requests=48,
    plain_latent_backends={
        "cuda": _PLAIN | {"tilelang"},
        "hip": _PLAIN | {"tilelang", "aiter", "triton"},
    },
    window_checked=True,
    window_capped=True,
    host_value_width=True,
    host_may_be_smaller=True,
    hybrid_swa_architectures=_WINDOW_POOLS | _NEWER_WINDOW_POOLS,
    own_window_shapes=_OWN_WINDOW_SHAPES
    | {
        "DiffusionGemmaForBlockDiffusion",
        "EmbeddingGemma2Model",
        "InklingForConditionalGeneration",
        "InklingForConditionalGenerationMTP",
    },
    unsplit_with_host_cache=frozenset({"Step3p5ForCausalLM", "Step3p7ForConditionalGeneration"}),
)

RULES: Mapping[str, Rules] = {rules.name: rules for rules in (_V0_5_13, _V0_5_23)}


def rules_of(version: str) -> Rules:
    """The rules of a version. Raises FieldError for one that is not in `RULES`."""
    return of_version(RULES, version)
