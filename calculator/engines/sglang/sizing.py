"""The three ways to size pools: by tokens, by a split between full and window, by DeepSeek-V4's weights.

Source: SGLang 0.5.13 `model_executor/pool_configurator.py`; the pools of `_init_pools`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ...caches import MLA, FullAttention, IndexKey
from ...errors import EngineError
from ...explain import Expression, symbol
from ...formats import FP8_INDEX, HalfByteRow, StorageFormat
from . import cell, deepseek_v4, swa
from .buffers import Extent, Pool
from .held import Held, Part
from .pools import attention_pool, latent_pool, placeholder_pool, sparse_pool, vectorised_pool, window_pool
from .rules import Rules
from .settings import Settings

Span = tuple[int, int]  # first layer and end of a pipeline stage


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Tokens that requests may take, and what each pool holds for them."""

    tokens: Expression
    full: Expression
    window: Expression | None = None
    v4: deepseek_v4.V4Sizes | None = None


@dataclass(frozen=True, kw_only=True)
class Sizing(ABC):
    """One way to size the pools of a plan, stage by stage."""

    settings: Settings
    storage: StorageFormat
    rules: Rules

    @abstractmethod
    def planned(self, span: Span) -> Expression:
        """Bytes per token that the engine divides its memory by."""

    @abstractmethod
    def allocated(self, span: Span, sizes: Sizes) -> Expression:
        """Bytes per token that the pools then take, spare pages aside."""

    @abstractmethod
    def fit(self, span: Span, available_bytes: int) -> Sizes:
        """The pools of a stage in `available_bytes`."""

    @abstractmethod
    def resize(self, span: Span, tokens: Expression) -> Sizes:
        """The pools of a stage for at most `tokens`."""

    @abstractmethod
    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """The buffers of a stage."""

    def extent(self, layers: int, tokens: Expression) -> Extent:
        """A token pool of `layers` layers."""
        return Extent(tokens=int(tokens.value), page_size=self.settings.page_size, layers=layers)


@dataclass(frozen=True, kw_only=True)
class TokenSizing(Sizing):
    """DefaultPoolConfigurator: `available / cell`; subclasses say which row a token has."""

    @abstractmethod
    def layers(self, span: Span) -> int:
        """Layers of the stage that store tokens."""

    def fit(self, span: Span, available_bytes: int) -> Sizes:
        """Whole pages of cells."""
        tokens = cell.capacity(available_bytes, self.planned(span), self.settings.page_size)
        return Sizes(tokens=tokens, full=tokens)

    def resize(self, span: Span, tokens: Expression) -> Sizes:  # noqa: ARG002 - the same on every stage
        """Whole pages."""
        held = cell.aligned(tokens, self.settings.page_size)
        return Sizes(tokens=held, full=held)


@dataclass(frozen=True, kw_only=True)
class AttentionSizing(TokenSizing):
    """K and V, of all layers or of the attention layers of a hybrid."""

    part: Part[FullAttention]
    placeholder: bool = False

    def layers(self, span: Span) -> int:
        """Attention layers."""
        return self.part.layers(*span)

    def planned(self, span: Span) -> Expression:
        """`H · (d + d_v) · L · s`."""
        row = self.part.cache.row(self.settings.attention_tp)
        return cell.planned(row, self.storage, self.layers(span))

    def allocated(self, span: Span, sizes: Sizes) -> Expression:  # noqa: ARG002 - fixed rows
        """The same; FP4 stores V as wide as K."""
        row = self.part.cache.row(self.settings.attention_tp)
        if self.placeholder or not isinstance(self.storage, HalfByteRow):
            return self.planned(span)
        assert row.heads is not None
        key = row.vectors["key"]
        one = row.heads * (key // 2) + row.heads * key // 16
        return 2 * one * symbol("L", self.layers(span))

    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """MHATokenToKVPool, its FP4 variant, or a placeholder."""
        build = placeholder_pool if self.placeholder else attention_pool
        if self.settings.kv_cache_layout == "vectorized_5d":
            build = vectorised_pool
        row = self.part.cache.row(self.settings.attention_tp)
        return build(row, self.storage, self.extent(self.layers(span), sizes.full))


@dataclass(frozen=True, kw_only=True)
class LatentSizing(TokenSizing):
    """A latent, with or without index keys; `storage` is how a row is stored, not how it is priced."""

    part: Part[MLA]
    index: Part[IndexKey] | None = None

    def layers(self, span: Span) -> int:
        """Layers with a latent; each has room for index keys, whether its indexer is its own or shared."""
        return self.part.layers(*span)

    def planned(self, span: Span) -> Expression:
        """`(R + D_r) · L · s`, and `132 · L` for index keys."""
        row, depth = self.part.cache.row(1), self.layers(span)
        if self.index is None:
            return cell.planned(row, self.storage, depth)
        return self.rules.sparse_price(row, self.storage, depth) + cell.planned_index(
            self.index.cache.row(1), depth
        )

    def allocated(self, span: Span, sizes: Sizes) -> Expression:  # noqa: ARG002 - fixed rows
        """Rows with their scales; with HiSparse index keys of all tokens, those in host memory too."""
        depth = symbol("L", self.layers(span))
        rows = self.storage.row_bytes(self.part.cache.row(1)) * depth
        if self.index is None:
            return rows
        keys = FP8_INDEX.row_bytes(self.index.cache.row(1)) * depth
        ratio = self.settings.hisparse_host_to_device_ratio
        return rows + (keys if ratio is None else keys * symbol("ratio", ratio))

    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """MLATokenToKVPool, its FP4 variant, or DSATokenToKVPool."""
        extent, row = self.extent(self.layers(span), sizes.full), self.part.cache.row(1)
        if self.index is None:
            return latent_pool(row, self.storage, extent)
        ratio = self.settings.hisparse_host_to_device_ratio
        return sparse_pool(row, self.index.cache.row(1), self.storage, extent, ratio)


@dataclass(frozen=True, kw_only=True)
class WindowSizing(Sizing):
    """HybridSWAPoolConfigurator."""

    full: Part[FullAttention] | None
    window: Part[FullAttention]
    ratio: float

    def model(self, span: Span) -> swa.WindowModel:
        """The stage's layers and rows.

        Raises:
            EngineError: a stage without window layers.
        """
        tp, windows = self.settings.attention_tp, self.window.layers(*span)
        if not windows:
            raise EngineError("sglang.stage_window", first=span[0], last=span[1] - 1)
        full = self.full or self.window
        return swa.WindowModel(
            full_layers=self.full.layers(*span) if self.full else 0,
            window_layers=windows,
            full_row=self.storage.row_bytes(full.cache.row(tp)),
            window_row=self.storage.row_bytes(self.window.cache.row(tp)),
        )

    def planned(self, span: Span) -> Expression:
        """`F · L_full + ratio · S · L_swa`."""
        return swa.cell(self.model(span), self.ratio)

    def allocated(self, span: Span, sizes: Sizes) -> Expression:  # noqa: ARG002 - fixed rows
        """The same."""
        return self.planned(span)

    def fit(self, span: Span, available_bytes: int) -> Sizes:
        """Both pools."""
        return self._sizes(
            swa.capacity(self.model(span), self.ratio, available_bytes, self.settings.page_size)
        )

    def resize(self, span: Span, tokens: Expression) -> Sizes:
        """Both pools."""
        return self._sizes(swa.split(self.model(span), self.ratio, tokens, self.settings.page_size))

    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """SWAKVPool."""
        tp, model = self.settings.attention_tp, self.model(span)
        assert sizes.window is not None
        window = self.extent(model.window_layers, sizes.window)
        full = None
        if self.full and model.full_layers:
            extent = self.extent(model.full_layers, sizes.full)
            full = attention_pool(self.full.cache.row(tp), self.storage, extent)
        return window_pool(full, attention_pool(self.window.cache.row(tp), self.storage, window))

    @staticmethod
    def _sizes(split: swa.WindowSplit) -> Sizes:
        return Sizes(tokens=split.tokens, full=split.full, window=split.window)


@dataclass(frozen=True, kw_only=True)
class V4Sizing(Sizing):
    """DSV4PoolConfigurator."""

    held: Held
    options: deepseek_v4.V4Options

    def model(self, span: Span) -> deepseek_v4.V4Model:
        """The stage's layers by ratio."""
        window = self.held.v4_window
        assert window is not None
        layers = {part.cache.compress_ratio: part.layers(*span) for part in self.held.v4_latents}
        index = self.held.v4_index
        return deepseek_v4.V4Model(
            layers=window.layers(*span),
            c4_layers=layers.get(4, 0),
            c128_layers=layers.get(128, 0),
            head_size=window.cache.head_size,
            qk_rope_head_dim=window.cache.qk_rope_head_dim,
            index_head_dim=index.cache.index_head_dim if index else 128,
            sliding_window=window.cache.sliding_window,
        )

    def planned(self, span: Span) -> Expression:
        """The seven terms."""
        return deepseek_v4.bytes_per_full_token(self.model(span), self.options)

    def allocated(self, span: Span, sizes: Sizes) -> Expression:
        """All buffers over the full tokens: padded pages, spare pages, states."""
        return symbol("allocated", self.pool(span, sizes).total_bytes) / symbol("full", sizes.full)

    def fit(self, span: Span, available_bytes: int) -> Sizes:
        """All pools."""
        model, page_size = self.model(span), self.settings.page_size
        return self._sizes(deepseek_v4.capacity(model, self.options, available_bytes, page_size))

    def resize(self, span: Span, tokens: Expression) -> Sizes:
        """All pools."""
        model, page_size = self.model(span), self.settings.page_size
        return self._sizes(deepseek_v4.sizes(model, self.options, tokens, page_size))

    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """DeepSeekV4TokenToKVPool."""
        assert sizes.v4 is not None
        return deepseek_v4.v4_pool(
            self.model(span),
            self.options,
            sizes.v4,
            self.settings.page_size,
            fp4_indexer=self.settings.fp4_indexer,
        )

    @staticmethod
    def _sizes(held: deepseek_v4.V4Sizes) -> Sizes:
        return Sizes(tokens=held.full, full=held.full, window=held.window, v4=held)
