"""DeepSeek-V4's sizing: the seven terms of SGLang 0.5.13, or 0.5.23's entries, fixed amounts and window caps.

Source: SGLang 0.5.13 and 0.5.23 `model_executor/pool_configurator.py`, DSV4PoolConfigurator.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...explain import Expression, lift, most, symbol
from . import deepseek_v4
from .buffers import Pool
from .held import Held
from .records import V41, Record, main_record
from .sizing import Sizes, Sizing, Span
from .v4_buffers import v4_pool
from .v4_paged import LOW_RATIOS, PagedBudget, PagedModel, PagedOptions, PagedSizes


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
        index = self.held.v4_indexes
        return deepseek_v4.V4Model(
            layers=window.layers(*span),
            c4_layers=layers.get(4, 0),
            c128_layers=layers.get(128, 0),
            head_size=window.cache.head_size,
            qk_rope_head_dim=window.cache.qk_rope_head_dim,
            index_head_dim=index[0].cache.index_head_dim if index else 128,
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
        assert isinstance(sizes.v4, deepseek_v4.V4Sizes)
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


@dataclass(frozen=True, kw_only=True)
class V4PagedSizing(Sizing):
    """DSV4PoolConfigurator of 0.5.23."""

    held: Held
    requests: int | None

    def budget(self, span: Span) -> PagedBudget:
        """The stage's layers and what the server sets."""
        window, index, settings = self.held.v4_window, self.held.v4_indexes, self.settings
        assert window is not None
        counts = {part.cache.compress_ratio: part.layers(*span) for part in self.held.v4_latents}
        return PagedBudget(
            model=PagedModel(
                layers=window.layers(*span),
                owners={ratio: count for ratio, count in sorted(counts.items()) if count},
                head_size=window.cache.head_size,
                index_head_dim=index[0].cache.index_head_dim if index else 128,
                sliding_window=window.cache.sliding_window,
            ),
            options=PagedOptions(
                swa_full_tokens_ratio=self.ratio,
                max_running_requests=self.requests,
                context_length=settings.context_length,
                draft_tokens=settings.speculative_num_draft_tokens,
                online_c128=settings.online_c128,
                host_to_device_ratio=settings.hisparse_host_to_device_ratio or 1,
                main=self.record,
                compressed=settings.v4_compressed_layout,
                state_bytes=settings.compress_state_bytes,
                fp4_indexer=settings.fp4_indexer,
                cap=settings.cap_options,
            ),
            rules=self.rules,
            page_size=settings.page_size,
        )

    @property
    def newer(self) -> bool:
        """Whether this is DeepSeek-V4.1, whose entries have ratios of 1 and 2."""
        return any(part.cache.compress_ratio in LOW_RATIOS for part in self.held.v4_latents)

    @property
    def ratio(self) -> float | None:
        """The user's ratio, or the server's for V4; V4.1 is left without, so that windows are capped."""
        given = self.settings.swa_full_tokens_ratio
        return given or (None if self.newer else self.rules.v4_full_tokens_ratio)

    @property
    def record(self) -> Record:
        """How windows are stored."""
        chosen = main_record(self.settings.v4_layout, self.settings.v4_backend)
        return V41 if self.newer and not self.settings.v4_backend else chosen

    def planned(self, span: Span) -> Expression:
        """Per token of context; requests and capped windows have fixed amounts beside it."""
        return self.budget(span).bytes_per_full_token

    def allocated(self, span: Span, sizes: Sizes) -> Expression:
        """All buffers but the fixed amounts, over the full tokens."""
        held = symbol("allocated", self.pool(span, sizes).total_bytes) - symbol(
            "fixed", self._fixed(span, sizes)
        )
        return most(held, lift(0)) / symbol("full", sizes.full)

    def _fixed(self, span: Span, sizes: Sizes) -> Expression:
        budget, requests = self.budget(span), self._paged(sizes).requests
        return budget.c128_fixed(requests) + budget.c2_fixed(requests) + budget.swa_fixed

    def fixed(self, span: Span, sizes: Sizes) -> Mapping[str, object]:
        """States of all requests, and windows where requests cap them."""
        return {
            "fixed": round(self._fixed(span, sizes).value),
            "requests": int(self._paged(sizes).requests.value),
        }

    def fit(self, span: Span, available_bytes: int) -> Sizes:
        """All pools."""
        return self._sizes(self.budget(span).fit(available_bytes))

    def resize(self, span: Span, tokens: Expression) -> Sizes:
        """All pools."""
        return self._sizes(self.budget(span).resize(tokens))

    def pool(self, span: Span, sizes: Sizes) -> Pool:
        """DeepSeekV4TokenToKVPool."""
        return v4_pool(self.budget(span), self._paged(sizes))

    @staticmethod
    def _paged(sizes: Sizes) -> PagedSizes:
        assert isinstance(sizes.v4, PagedSizes)
        return sizes.v4

    @staticmethod
    def _sizes(held: PagedSizes) -> Sizes:
        return Sizes(tokens=held.full, full=held.full, window=held.window, v4=held)
