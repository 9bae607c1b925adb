"""How pools are sized by tokens, or by a split between full and window; DeepSeek-V4 has `v4_sizing`.

Source: SGLang 0.5.13 and 0.5.23 `model_executor/pool_configurator.py`; the pools of `_init_pools`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...caches import MLA, FullAttention, IndexKey, SparseIndexKey
from ...errors import EngineError
from ...explain import Expression, least, round_up, symbol
from ...formats import NVFP4, HalfByteRow, Row, StorageFormat
from . import cell, deepseek_v4, swa
from .buffers import Extent, Pool
from .cell import IndexPrice, Nvfp4Scales
from .held import Part
from .pools import (
    Indexers,
    attention_pool,
    latent_pool,
    nvfp4_pool,
    placeholder_pool,
    sparse_attention_pool,
    sparse_pool,
    vectorised_pool,
    window_pool,
)
from .rules import Rules
from .settings import Settings
from .v4_paged import PagedSizes
from .window_cap import request_cap

Span = tuple[int, int]  # first layer and end of a pipeline stage


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Tokens that requests may take, and what each pool holds for them."""

    tokens: Expression
    full: Expression
    window: Expression | None = None
    v4: deepseek_v4.V4Sizes | PagedSizes | None = None


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

    def fixed(self, span: Span, sizes: Sizes) -> Mapping[str, object] | None:  # noqa: ARG002 - of V4 alone
        """Bytes that do not depend on the tokens, and for how many requests; None: the engine has none."""
        return None

    def extent(self, layers: int, tokens: Expression) -> Extent:
        """A token pool of `layers` layers."""
        return Extent(tokens=int(tokens.value), page_size=self.settings.page_size, layers=layers)


@dataclass(frozen=True, kw_only=True)
class TokenSizing(Sizing):
    """DefaultPoolConfigurator: `available / cell`; subclasses say which row a token has."""

    @abstractmethod
    def layers(self, span: Span) -> int:
        """Layers of the stage that store tokens."""

    @property
    def drafts(self) -> int:
        """Layers of a drafter that are part of the cell."""
        return self.settings.draft_layers if self.rules.drafters_priced else 0

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
    hybrid: bool = False  # beside recurrent state, whose pool is not told another width of V

    def layers(self, span: Span) -> int:
        """Attention layers."""
        return self.part.layers(*span)

    def planned(self, span: Span) -> Expression:
        """`H · (d + d_v) · L · s`."""
        row, depth = self.part.cache.row(self.settings.attention_tp), self.layers(span)
        if self.storage == NVFP4:
            return self._with_drafter(cell.nvfp4(row, depth, self.scales), depth)
        return self._with_drafter(cell.planned(row, self.storage, depth), depth)

    @property
    def scales(self) -> Nvfp4Scales:
        """The orders of NVFP4's scales that the backends read."""
        return Nvfp4Scales.of(self.settings.prefill_backend, self.settings.decode_backend)

    @property
    def stored_row(self) -> Row:
        """K and V of a token as the pool keeps them."""
        row = self.part.cache.row(self.settings.attention_tp)
        return replace(row, vectors=dict.fromkeys(row.vectors, row.vectors["key"])) if self.hybrid else row

    def _with_drafter(self, price: Expression, layers: int) -> Expression:
        return cell.with_drafter(price, layers, self.drafts)

    def allocated(self, span: Span, sizes: Sizes) -> Expression:  # noqa: ARG002 - fixed rows
        """The same without a drafter's pool; FP4 and hybrid pools store V as wide as K."""
        row, depth = self.stored_row, self.layers(span)
        if self.storage == NVFP4:
            return cell.nvfp4(row, depth, self.scales)
        if self.placeholder or not isinstance(self.storage, HalfByteRow):
            return cell.planned(row, self.storage, depth)
        assert row.heads is not None
        key = row.vectors["key"]
        one = row.heads * (key // 2) + row.heads * key // 16
        return 2 * one * symbol("L", self.layers(span))

    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """MHATokenToKVPool, one of its FP4 and MXFP8 variants, or a placeholder."""
        row, extent = self.stored_row, self.extent(self.layers(span), sizes.full)
        if self.storage == NVFP4:
            return nvfp4_pool(row, extent, self.scales)
        build = placeholder_pool if self.placeholder else attention_pool
        if self.settings.kv_cache_layout == "vectorized_5d":
            build = vectorised_pool
        return build(row, self.storage, extent)


@dataclass(frozen=True, kw_only=True)
class SparseAttentionSizing(TokenSizing):
    """K and V of all layers, and a BF16 index key of some."""

    part: Part[FullAttention]
    index: Part[SparseIndexKey]

    def layers(self, span: Span) -> int:
        """Attention layers."""
        return self.part.layers(*span)

    def planned(self, span: Span) -> Expression:
        """`H · (d + d_v) · L · s + 2 · d_i · L_idx`."""
        row = self.part.cache.row(self.settings.attention_tp)
        keys = self.index.cache.row(1).elements * 2 * symbol("L_idx", self.index.layers(*span))
        return cell.planned(row, self.storage, self.layers(span)) + keys

    def allocated(self, span: Span, sizes: Sizes) -> Expression:  # noqa: ARG002 - fixed rows
        """The same."""
        return self.planned(span)

    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """MiniMaxSparseKVPool."""
        return sparse_attention_pool(
            self.part.cache.row(self.settings.attention_tp),
            self.index.cache.index_head_dim,
            self.storage,
            self.extent(self.layers(span), sizes.full),
            self.index.layers(*span),
        )


@dataclass(frozen=True, kw_only=True)
class LatentSizing(TokenSizing):
    """A latent, with or without index keys; `storage` is how a row is stored, not how it is priced."""

    part: Part[MLA]
    index: Part[IndexKey] | None = None

    def layers(self, span: Span) -> int:
        """Layers with a latent."""
        return self.part.layers(*span)

    def indexed(self, span: Span) -> int | None:
        """Layers with room for index keys; None: all, also those whose indexer is shared."""
        if self.index is None or not self.rules.index_as_allocated:
            return None
        return None if self.settings.hisparse_host_to_device_ratio else self.index.layers(*span)

    def keys(self, span: Span, *, everywhere: bool = False) -> IndexPrice | None:
        """Index keys as they are priced, or with `everywhere` as they are allocated, of all tokens."""
        if self.index is None:
            return None
        owners = self.indexed(span)
        true = everywhere or self.rules.index_as_allocated
        return IndexPrice(
            key=self.index.cache.row(1),
            layers=self.layers(span) if owners is None else owners,
            ratio=(self.settings.hisparse_host_to_device_ratio or 1) if true else 1,
        )

    def planned(self, span: Span) -> Expression:
        """`(R + D_r) · L · s`, and `132 · L_idx` for index keys."""
        row, depth = self.part.cache.row(1), self.layers(span)
        keys = self.keys(span)
        price = cell.planned if keys is None else self.rules.sparse_price
        return cell.with_drafter(price(row, self.storage, depth), depth, self.drafts, keys)

    def allocated(self, span: Span, sizes: Sizes) -> Expression:  # noqa: ARG002 - fixed rows
        """Rows with their scales; with HiSparse index keys of all tokens, those in host memory too."""
        rows = self.storage.row_bytes(self.part.cache.row(1)) * symbol("L", self.layers(span))
        keys = self.keys(span, everywhere=True)
        return rows if keys is None else rows + keys.bytes

    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """MLATokenToKVPool, its FP4 variant, or DSATokenToKVPool."""
        extent, row = self.extent(self.layers(span), sizes.full), self.part.cache.row(1)
        if self.index is None:
            return latent_pool(row, self.storage, extent)
        indexers = Indexers(
            layers=self.indexed(span), host_to_device_ratio=self.settings.hisparse_host_to_device_ratio
        )
        return sparse_pool(row, self.index.cache.row(1), self.storage, extent, indexers)


@dataclass(frozen=True, kw_only=True)
class WindowSizing(Sizing):
    """HybridSWAPoolConfigurator."""

    full: Part[FullAttention] | None
    window: Part[FullAttention]
    ratio: float
    tokens: int  # of the longest window, as the engine has it
    own_shapes: bool = True  # whether the pools are told V's width and the heads of windows

    def model(self, span: Span) -> swa.WindowModel:
        """The stage's layers, and rows as they are priced.

        Raises:
            EngineError: a stage without window layers.
        """
        tp = self.settings.attention_tp
        full = self.full or self.window
        return self._model(span, full.cache.row(tp), self.window.cache.row(tp))

    def _model(self, span: Span, full: Row, window: Row) -> swa.WindowModel:
        windows = self.window.layers(*span)
        if not windows:
            raise EngineError("sglang.stage_window", first=span[0], last=span[1] - 1)
        return swa.WindowModel(
            full_layers=self.full.layers(*span) if self.full else 0,
            window_layers=windows,
            full_row=self._row(full),
            window_row=self._row(window),
            draft_full_layers=self._drafts - self._window_drafts,
            draft_window_layers=self._window_drafts,
        )

    @property
    def _drafts(self) -> int:
        return self.settings.draft_layers if self.rules.drafters_priced else 0

    @property
    def _window_drafts(self) -> int:
        return min(self.settings.draft_window_layers, self._drafts)

    def _row(self, row: Row) -> Expression:
        return cell.planned(row, self.storage, 1)

    @property
    def _stored_rows(self) -> tuple[Row, Row]:
        """A full and a window layer's token as the pools keep it: without shapes of their own both are alike.

        Source: SGLang 0.5.13 and 0.5.23 `is_hybrid_swa_compress`.
        """
        tp = self.settings.attention_tp
        full, window = (self.full or self.window).cache.row(tp), self.window.cache.row(tp)
        if self.own_shapes:
            return full, window
        alike = replace(full, vectors=dict.fromkeys(full.vectors, full.vectors["key"]))
        return alike, alike

    @property
    def cap(self) -> Expression | None:
        """Window tokens that the running requests can need; None where the ratio decides."""
        settings, limit = self.settings, self.settings.max_running_requests
        if not self.rules.window_capped or settings.radix_cache or limit is None or self.full is None:
            return None
        requests = max(1, limit // settings.data_parallel_size)
        drafts, page = settings.speculative_num_draft_tokens, settings.page_size
        cap = request_cap(requests, self.tokens, page, drafts, settings.cap_options)
        return round_up(cap, symbol("P", page))

    def planned(self, span: Span) -> Expression:
        """`F · L_full + ratio · S · L_swa`."""
        return swa.cell(self.model(span), self.ratio)

    def allocated(self, span: Span, sizes: Sizes) -> Expression:  # noqa: ARG002 - fixed rows
        """The same of rows as they are stored."""
        return swa.cell(self._model(span, *self._stored_rows), self.ratio)

    def fit(self, span: Span, available_bytes: int) -> Sizes:
        """Both pools."""
        model, page_size, cap = self.model(span), self.settings.page_size, self.cap
        if cap is not None and model.full_layers:
            return self._sizes(swa.capped(model, cap, available_bytes, page_size))
        return self._sizes(swa.capacity(model, self.ratio, available_bytes, page_size))

    def resize(self, span: Span, tokens: Expression) -> Sizes:
        """Both pools."""
        model, page_size, cap = self.model(span), self.settings.page_size, self.cap
        if cap is not None and model.full_layers:
            held = cell.aligned(tokens, page_size)
            return self._sizes(swa.WindowSplit(tokens=held, full=held, window=least(cap, tokens)))
        split = swa.split(model, self.ratio, tokens, page_size)
        if self.rules.window_checked:
            swa.check_window(split, self.tokens, page_size)
        return self._sizes(split)

    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """SWAKVPool."""
        model, (full_row, window_row) = self.model(span), self._stored_rows
        assert sizes.window is not None
        window = self.extent(model.window_layers, sizes.window)
        full = None
        if self.full and model.full_layers:
            extent = self.extent(model.full_layers, sizes.full)
            full = attention_pool(full_row, self.storage, extent)
        return window_pool(full, attention_pool(window_row, self.storage, window))

    @staticmethod
    def _sizes(split: swa.WindowSplit) -> Sizes:
        return Sizes(tokens=split.tokens, full=split.full, window=split.window)
