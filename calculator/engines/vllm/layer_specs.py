"""The spec that vLLM's model code makes of each cache of a layer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import lcm

from ...caches import (
    MLA,
    Cache,
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    EncoderOnlyAttention,
    FullAttention,
    IndexKey,
    RingBuffer,
    SinkAttention,
    SlidingWindowMLA,
    SparseIndexKey,
    State,
)
from ...errors import EngineError
from ...formats import (
    FP4_INDEX,
    FP4_V41,
    FP8,
    FP8_DS_MLA,
    FP8_V4,
    FP8_V41,
    NVFP4_DS_MLA,
    Storage,
    StorageFormat,
    TurboQuant,
)
from ...model import Layer
from .hybrid import Alignment
from .rules import Rules
from .settings import MambaMode, Settings
from .spec import TYPES, LayerSpec

DEFAULT_BLOCK_SIZE = 16
V4_WINDOW_BLOCK_SIZE = 64  # DeepseekV4SWACache
V4_ALIGNMENT = 576  # FlashMLA
V41_WINDOW_BLOCK_SIZE = 32
V41_ALIGNMENT = 512
V41_RATIOS = (1, 2)
# CompressorStateCache: its window is twice a ratio of 4, or once a ratio of 128.
COMPRESSOR_BLOCK_SIZES = {8: 4, 128: 8}
V4_KINDS = (SlidingWindowMLA, CompressedLatent, CompressedIndexKey, CompressorState, RingBuffer)


def is_v41(cache: Cache) -> bool:
    """Whether a cache is one that only DeepSeek-V4.1 has: compressed by 1 or 2, or a ring."""
    ratio = getattr(cache, "compress_ratio", None)
    return isinstance(cache, RingBuffer) or ratio in V41_RATIOS


@dataclass(frozen=True, kw_only=True)
class SpecMaker:
    """Makes the specs of one model: its formats, the engine's settings, the alignment beside states.

    `v41`: the model is DeepSeek-V4.1, whose windows look like those of V4.
    """

    storage: Storage
    settings: Settings
    rules: Rules
    alignment: Alignment | None = None
    v41: bool = False

    def specs(self, layer: Layer) -> Iterator[LayerSpec]:
        """The specs of a layer's caches; encoder-only attention has none.

        Raises:
            EngineError: sinks or blocks that are not whole, or a compressor that is not known.
        """
        sparse = any(isinstance(cache, IndexKey) for cache in layer)
        for cache in layer:
            match cache:
                case EncoderOnlyAttention():
                    pass
                case State():
                    yield self._state(cache)
                case cache if isinstance(cache, V4_KINDS):
                    yield self._v41(cache) if self.v41 else self._v4(cache)
                case MLA():
                    yield self._latent(cache, sparse=sparse)
                case IndexKey():
                    yield replace(
                        self._plain(cache), indexer=True, tp_shards=1, own=self._index_format(cache)
                    )
                case _:
                    yield self._plain(cache)

    @property
    def block_size(self) -> int:
        """Tokens of a block of attention."""
        return self.settings.block_size or DEFAULT_BLOCK_SIZE

    def _plain(self, cache: Cache) -> LayerSpec:
        if isinstance(cache, SinkAttention) and (not cache.sink_len or cache.sink_len % self.block_size):
            raise EngineError("vllm.sink", sink_len=cache.sink_len, block_size=self.block_size)
        slot = isinstance(self.storage.kv, TurboQuant)  # it holds K and V of one size
        if isinstance(cache, FullAttention) and (slot or TYPES[type(cache)] in self.rules.without_value_size):
            cache = replace(cache, head_size_v=cache.head_size)
        return LayerSpec(
            cache=cache,
            storage=self.storage,
            tp=self.settings.tensor_parallel_size,
            block_size=self.block_size,
            packed=self.rules.packed,
            retained_tokens=max(0, self.settings.num_prefill_lookahead_tokens - 1),
        )

    def _latent(self, cache: MLA, *, sparse: bool) -> LayerSpec:
        packed = sparse and self.storage.kv == FP8
        kept = replace(self.storage, kv=FP8_DS_MLA) if packed else self.storage
        return replace(
            self._plain(cache),
            storage=kept,
            cache_dtype="auto" if kept.kv.element_bytes > 1 else kept.kv.name,
            tp_shards=1,
            leads_indexer=sparse,
        )

    def _index_format(self, cache: Cache) -> StorageFormat | None:
        """Index keys in fewer bits, options that only newer versions allocate.

        In eight bits only MiniMax's are plain elements: DSA's are so by default, with scales.
        """
        if isinstance(cache, SparseIndexKey):
            return FP8 if self.settings.fp8_indexer else None
        return FP4_INDEX if self.settings.fp4_indexer and self.rules.packed else None

    def _state(self, state: State) -> LayerSpec:
        settings, alignment = self.settings, self.alignment
        mode, chosen = settings.mamba_cache_mode or MambaMode.NONE, self.block_size
        padded = None if alignment is None else alignment.mamba_page_padded
        if alignment is not None and alignment.mamba_block_size is not None:
            chosen = int(alignment.mamba_block_size.value)
        return LayerSpec(
            cache=with_drafts(state, settings, self.rules),
            storage=self.storage,
            tp=settings.tensor_parallel_size,
            block_size=settings.max_model_len if mode is MambaMode.NONE else chosen,
            page_size_padded=None if padded is None else int(padded.value),
            mamba_cache_mode=mode,
            num_speculative_blocks=settings.num_speculative_blocks,
            packed=self.rules.packed,
        )

    def _v4(self, cache: Cache) -> LayerSpec:
        """Source: vLLM 0.22.0 and 0.33.0 `models/deepseek_v4`."""
        block_size, dtype = self.block_size, FP8_DS_MLA.name
        if isinstance(cache, SlidingWindowMLA):
            return self._v4_spec(cache, V4_WINDOW_BLOCK_SIZE, V4_ALIGNMENT, dtype)
        if isinstance(cache, CompressorState):
            if cache.sliding_window not in COMPRESSOR_BLOCK_SIZES:
                raise EngineError("vllm.compressor", window=cache.sliding_window)
            return self._v4_spec(cache, COMPRESSOR_BLOCK_SIZES[cache.sliding_window], V4_ALIGNMENT, None)
        if block_size % cache.tokens_per_unit:
            raise EngineError("vllm.block", block_size=block_size, ratio=cache.tokens_per_unit)
        if isinstance(cache, CompressedIndexKey):
            made = self._v4_spec(cache, block_size, V4_ALIGNMENT, None)
            return replace(made, own=self._index_format(cache))
        return self._v4_spec(cache, block_size, V4_ALIGNMENT, dtype)

    def _v41(self, cache: Cache) -> LayerSpec:
        """On SM100. Source: vLLM 0.33.0 `models/deepseek_v41`."""
        dtype = NVFP4_DS_MLA.name if self.storage.kv == NVFP4_DS_MLA else FP8_DS_MLA.name
        halves = dtype == NVFP4_DS_MLA.name
        if isinstance(cache, SlidingWindowMLA):
            made = self._v4_spec(cache, V41_WINDOW_BLOCK_SIZE, V41_ALIGNMENT, dtype)
            # Windows and compressed records share a block, so its rows must fit both.
            rows = lcm(528, 288) if halves else 528
            return replace(made, own=FP8_V41, stride_bytes=rows, replayed=True)
        if isinstance(cache, RingBuffer):
            return self._v4_spec(cache, cache.ring_tokens, None, None)
        if self.block_size % cache.tokens_per_unit:
            raise EngineError("vllm.block", block_size=self.block_size, ratio=cache.tokens_per_unit)
        if isinstance(cache, CompressedIndexKey):
            return replace(self._v4_spec(cache, self.block_size, V41_ALIGNMENT, None), own=FP4_INDEX)
        record = FP4_V41 if halves else FP8_V41
        return replace(self._v4_spec(cache, self.block_size, V41_ALIGNMENT, dtype), own=record)

    def _v4_spec(self, cache: Cache, block_size: int, alignment: int | None, dtype: str | None) -> LayerSpec:
        return LayerSpec(
            cache=cache,
            storage=replace(self.storage, kv=FP8_V4),
            tp=self.settings.tensor_parallel_size,
            block_size=block_size,
            alignment=alignment,
            cache_dtype=dtype,
            packed=self.rules.packed,
            tp_shards=1,
        )


def with_drafts(state: State, settings: Settings, rules: Rules) -> State:
    """A state whose convolutions keep columns for drafted tokens."""
    if isinstance(state, rules.drafted_states):
        # Every state with a convolution has its kernel.
        return replace(state, conv_kernel=state.conv_kernel + settings.num_speculative_blocks)  # type: ignore[attr-defined, call-arg]
    return state
