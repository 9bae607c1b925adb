"""How a model is served: the engine and what it is started with."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .engines import sglang, vllm
from .errors import FieldError

LOGICAL, VLLM, SGLANG = "logical", "vllm", "sglang"
NEWEST = "newest"
AUTO = 0  # of a number: what the engine chooses, or of a length: the context
VERSIONS: Mapping[str, tuple[str, ...]] = {LOGICAL: (), VLLM: vllm.VERSIONS, SGLANG: sglang.VERSIONS}

# Which settings belong to which engine; the others wait for theirs.
COMMON = ("available_memory_bytes", "max_model_len", "pipeline_parallel_size", "engine_version")
OF_ENGINE: Mapping[str, tuple[str, ...]] = {
    LOGICAL: (),
    VLLM: (
        *COMMON,
        "block_size",
        "max_num_batched_tokens",
        "enable_prefix_caching",
        "mamba_cache_mode",
        "decode_context_parallel_size",
    ),
    SGLANG: (
        *COMMON,
        "data_parallel_size",
        "page_size",
        "swa_full_tokens_ratio",
        "dsa_backend",
        "hisparse_host_to_device_ratio",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Serving:
    """The settings of both engines at once, so that changing the engine loses none of them."""

    engine: str = LOGICAL
    engine_version: str = NEWEST
    available_memory_bytes: int = 60 * 2**30
    max_model_len: int = AUTO
    pipeline_parallel_size: int = 1
    block_size: int = AUTO
    max_num_batched_tokens: int = 8192
    enable_prefix_caching: str = "auto"
    mamba_cache_mode: str = "auto"
    decode_context_parallel_size: int = 1
    data_parallel_size: int = 1
    page_size: int = AUTO
    swa_full_tokens_ratio: float = 0.0  # 0: what the engine chooses
    dsa_backend: str = sglang.DSA_BACKENDS[0]
    hisparse_host_to_device_ratio: int = AUTO

    @property
    def version(self) -> str | None:
        """The engine's version, None for logical bytes."""
        versions = VERSIONS[self.engine]
        if not versions:
            return None
        return versions[-1] if self.engine_version == NEWEST else self.engine_version

    def used(self) -> tuple[str, ...]:
        """The settings that the engine reads."""
        return OF_ENGINE[self.engine]

    def changed(self, values: Mapping[str, Any]) -> "Serving":
        """This with other values; another engine comes in its newest version.

        Raises:
            FieldError: a version that the engine does not have.
        """
        serving = replace(self, **values)
        if "engine" in values and "engine_version" not in values:
            serving = replace(serving, engine_version=NEWEST)
        if serving.engine_version not in (NEWEST, *VERSIONS[serving.engine]):
            raise FieldError(
                "error.choice",
                field="engine_version",
                value=serving.engine_version,
                options=", ".join((NEWEST, *VERSIONS[serving.engine])),
            )
        return serving
