"""What is chosen when vLLM is started."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from ...caches.base import size
from ...errors import FieldError


class MambaMode(StrEnum):
    """Which states of a recurrent layer are kept: the newest, or also those at block boundaries."""

    NONE = "none"
    ALIGN = "align"
    ALL = "all"


class CacheLayout(StrEnum):
    """The order of a cache's axes in memory, the outermost first; in the engine's order (since 0.33.0).

    L layer, B block, H head slot, N token, C content. Source: vLLM 0.33.0 `v1/kv_cache_layout.py`.
    """

    LBHNC = "LBHNC"
    LBNHC = "LBNHC"
    LHBNC = "LHBNC"
    BLHNC = "BLHNC"
    BLNHC = "BLNHC"
    BHLNC = "BHLNC"

    @property
    def block_outer(self) -> bool:
        """Whether the pages of all layers lie side by side in every block."""
        return self.value[0] == "B"

    @property
    def whole_pages(self) -> bool:
        """Whether a page of one layer is one run of bytes."""
        return set(self.value[:2]) == {"L", "B"}


def optional(lowest: int, highest: int) -> Any:
    """A whole number in bounds, or None for what the engine chooses."""
    return size(lowest, highest, default=None)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The engine arguments that decide about the cache, under vLLM's names.

    None leaves the choice to the engine. `available_memory_bytes` is what one rank has for its cache;
    without it sizes and growth are known but no number of blocks. `kernel_block_size` is the smallest block
    that the attention kernels take, `mamba_chunk_size` the chunk of the state kernels.

    Raises:
        FieldError: a number that is not whole or not within its bounds.
    """

    tensor_parallel_size: int = size(1, 1024, default=1)
    pipeline_parallel_size: int = size(1, 1024, default=1)
    decode_context_parallel_size: int = size(1, 1024, default=1)
    prefill_context_parallel_size: int = size(1, 1024, default=1)
    block_size: int | None = optional(1, 2**20)
    max_model_len: int = size(1, 2**27, default=8192)
    max_num_batched_tokens: int = size(1, 2**27, default=8192)
    max_num_encoder_input_tokens: int | None = optional(0, 2**27)
    mamba_cache_mode: MambaMode | None = None
    num_speculative_blocks: int = size(0, 1024, default=0)
    enable_prefix_caching: bool | None = None
    disable_hybrid_kv_cache_manager: bool = False
    num_gpu_blocks_override: int | None = optional(1, 2**40)
    available_memory_bytes: int | None = optional(0, 2**53)
    auto_fit_max_model_len: bool = False
    kernel_block_size: int = size(1, 2**16, default=16)
    mamba_chunk_size: int = size(1, 2**16, default=256)
    kv_cache_layout: CacheLayout | None = None
    async_scheduling: bool = True
    v2_model_runner: bool = True
    max_concurrent_batches: int | None = optional(1, 1024)
    num_prefill_lookahead_tokens: int = size(0, 1024, default=0)
    fp4_indexer: bool = False
    fp8_indexer: bool = False

    def __post_init__(self) -> None:
        for item in fields(self):
            if "bounds" not in item.metadata:
                continue
            lowest, highest = item.metadata["bounds"]
            value = getattr(self, item.name)
            if value is None and item.default is None:
                continue
            if type(value) is not int:
                raise FieldError(
                    "error.integer", field=item.name, value=value, lowest=lowest, highest=highest
                )
            if not lowest <= value <= highest:
                raise FieldError("error.range", field=item.name, value=value, lowest=lowest, highest=highest)

    @property
    def layout(self) -> CacheLayout:
        """The layout, that of most backends where none is chosen."""
        return self.kv_cache_layout or CacheLayout.LBNHC

    @property
    def batches(self) -> int:
        """Batches that are scheduled at once. Source: vLLM 0.33.0 `config/vllm.py` max_concurrent_batches."""
        if self.max_concurrent_batches is not None:
            return self.max_concurrent_batches
        stages = self.pipeline_parallel_size
        if self.async_scheduling and self.v2_model_runner:
            return stages + 1
        return 2 if self.async_scheduling and stages == 1 else stages

    @property
    def encoder_tokens(self) -> int:
        """The most encoder tokens of one step."""
        chosen = self.max_num_encoder_input_tokens
        return self.max_num_batched_tokens if chosen is None else chosen

    @property
    def context_parallel_size(self) -> int:
        """Ranks that share a request's tokens."""
        return self.decode_context_parallel_size * self.prefill_context_parallel_size
