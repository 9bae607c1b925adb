"""What a server is started with, as far as its caches depend on it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ...caches import IndexKey, SlidingWindowMLA
from ...errors import FieldError
from ...formats import NVFP4, Storage
from ...model import ModelPlan
from .records import COMPRESSED, MAIN, V4
from .state import StateOptions
from .window_cap import CapOptions

# The ranges that the constructor checks; None, where a field allows it, means the version's own choice.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "tensor_parallel_size": (1, 1024),
    "data_parallel_size": (1, 1024),
    "context_parallel_size": (1, 1024),
    "pipeline_parallel_size": (1, 256),
    "page_size": (1, 4096),
    "swa_full_tokens_ratio": (1e-6, 1),
    "hisparse_host_to_device_ratio": (1, 1024),
    "speculative_num_draft_tokens": (0, 1024),
    "mamba_full_memory_ratio": (1e-6, 1e6),
    "max_mamba_cache_size": (1, 2**30),
    "max_running_requests": (1, 2**20),
    "max_total_tokens": (1, 2**40),
    "context_length": (1, 2**27),
    "available_memory_bytes": (1, 2**50),
    "draft_layers": (0, 1024),
    "draft_window_layers": (0, 1024),
    "chunked_prefill_size": (1, 2**27),
    "decode_extra_slots": (0, 2**20),
    "compress_state_bytes": (2, 4),
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "attention_backend": ("", "ascend"),
    "prefill_backend": ("trtllm_mha", "flashinfer"),
    "decode_backend": ("trtllm_mha", "flashinfer"),
    "v4_layout": tuple(MAIN),
    "v4_compressed_layout": COMPRESSED,
    "v4_backend": ("", "trtllm"),
    "dsa_backend": ("flashmla_kv", "flashmla_sparse", "fa3", "tilelang", "aiter", "trtllm"),
    "kv_cache_layout": ("nhd", "vectorized_5d"),
    "platform": ("cuda", "hip", "plug-in"),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Server settings; sizes are of the whole server, `available_memory_bytes` of a rank after the weights.

    `data_parallel_size` is that of DP attention. `draft_layers` are those of an EAGLE-type drafter, of which
    `draft_window_layers` are windows; `prefill_backend` and `decode_backend` matter for NVFP4. `stage_layers`
    are the layers of each pipeline stage, unless they are shared out evenly.

    Raises:
        FieldError: a value outside its bounds, or sizes that do not divide.
    """

    available_memory_bytes: int
    context_length: int = 131_072
    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    context_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    stage_layers: tuple[int, ...] | None = None
    page_size: int = 1
    swa_full_tokens_ratio: float | None = None
    hierarchical_cache: bool = False
    attention_backend: str = ""
    dsa_backend: str = "flashmla_kv"
    platform: str = "cuda"
    hisparse_host_to_device_ratio: int | None = None
    speculative_num_draft_tokens: int = 0
    online_c128: bool = False
    fp4_indexer: bool = False
    radix_cache: bool = True
    mamba_extra_buffer: bool = False
    overlap_schedule: bool = True
    mamba_full_memory_ratio: float | None = None
    max_mamba_cache_size: int | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    prefill_only: bool = False
    kv_cache_layout: str = "nhd"
    draft_layers: int = 0
    draft_window_layers: int = 0
    prefill_backend: str = "trtllm_mha"
    decode_backend: str = "trtllm_mha"
    chunked_prefill_size: int = 8192
    decode_extra_slots: int = 0
    decode_server: bool = False
    mamba_lazy_extra_buffer: bool = False
    v4_layout: str = V4.name
    v4_compressed_layout: str = COMPRESSED[0]
    v4_backend: str = ""
    compress_state_bytes: int = 4

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in BOUNDS and not (value is None and item.default is None):
                _within(item.name, value, *BOUNDS[item.name])
            if item.name in CHOICES and value not in CHOICES[item.name]:
                options = ", ".join(CHOICES[item.name])
                raise FieldError("error.choice", field=item.name, value=value, options=options)
        parts = self.data_parallel_size * self.context_parallel_size
        ranks = self.tensor_parallel_size
        if ranks % parts:
            raise FieldError("sglang.attention_tp", field="tensor_parallel_size", value=ranks, parts=parts)

    @property
    def attention_tp(self) -> int:
        """Ranks that share the heads of one request: `⌊⌊tp / dp⌋ / cp⌋`, compute_dp_attention_world_info."""
        return self.tensor_parallel_size // self.data_parallel_size // self.context_parallel_size

    @property
    def cap_options(self) -> CapOptions:
        """The part that decides how many window tokens the running requests can need."""
        return CapOptions(
            chunked_prefill_size=self.chunked_prefill_size,
            overlap_schedule=self.overlap_schedule,
            radix_cache=self.radix_cache,
            decode=self.decode_server,
            extra_slots=self.decode_extra_slots,
        )

    @property
    def state_options(self) -> StateOptions:
        """The part that decides about state slots, of one data-parallel worker."""
        limits = (self.max_mamba_cache_size, self.max_running_requests)
        slots, requests = (limit and limit // self.data_parallel_size for limit in limits)
        return StateOptions(
            memory_ratio=self.mamba_full_memory_ratio,
            max_mamba_cache_size=slots,
            max_running_requests=requests,
            radix_cache=self.radix_cache,
            extra_buffer=self.mamba_extra_buffer,
            overlap_schedule=self.overlap_schedule,
            draft_tokens=self.speculative_num_draft_tokens,
            lazy_extra_buffer=self.mamba_lazy_extra_buffer,
        )

    def stages(self, layers: int) -> tuple[tuple[int, int], ...]:
        """(first layer, end) of every pipeline stage; layers that are left over go to the last ones.

        Source: `distributed/utils.py` get_pp_indices.

        Raises:
            FieldError: more stages than layers, or `stage_layers` that are not a split of them.
        """
        count = self.pipeline_parallel_size
        _within("pipeline_parallel_size", count, 1, layers)
        least, left = divmod(layers, count)
        shares = self.stage_layers or (least,) * (count - left) + (least + 1,) * left
        if len(shares) != count or sum(shares) != layers or min(shares) < 1:
            raise FieldError(
                "sglang.stage_layers", field="stage_layers", value=list(shares), stages=count, layers=layers
            )
        ends = [sum(shares[: number + 1]) for number in range(count)]
        return tuple(zip([0, *ends], ends, strict=False))


def default_page_size(plan: ModelPlan, storage: Storage) -> int:
    """Tokens per page that a plan needs: 256 for DeepSeek-V4, 64 beside an indexer or in NVFP4, else 1."""
    kinds = {type(cache) for cache in plan.caches()}
    if SlidingWindowMLA in kinds:
        return 256
    return 64 if IndexKey in kinds or storage.kv == NVFP4 else 1


def _within(field: str, value: float, lowest: float, highest: float) -> None:
    kinds = (int, float) if isinstance(lowest, float) else (int,)
    if type(value) not in kinds:
        raise FieldError("error.integer", field=field, value=value, lowest=lowest, highest=highest)
    if not lowest <= value <= highest:
        raise FieldError("error.range", field=field, value=value, lowest=lowest, highest=highest)
