"""DeepSeek-V4 and V4.1 in SGLang 0.5.23: padding is priced, states are kept per page or per request.

C128 states, V4.1's pair states and, in cap mode, the windows are fixed bytes beside the tokens. Source:
SGLang 0.5.23 `model_executor/pool_configurator.py` DSV4PoolConfigurator,
`mem_cache/deepseek_v4_memory_pool.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...errors import EngineError
from ...explain import Expression, ceiling, double, least, lift, most, round_up, symbol, total, whole
from ...formats import FP4_INDEX, FP8_INDEX, Row
from .cell import aligned
from .records import UNIFORM, V4, Record, compressed_record
from .rules import Rules
from .window_cap import CapOptions, request_cap

PAGE_STEP = 128  # a page must hold whole entries of every ratio
LOW_RATIOS = (1, 2)  # of V4.1, kept only by the layers that others read
INDEX_PAGE = 64  # entries of a page of V4.1's index keys


@dataclass(frozen=True, kw_only=True)
class PagedModel:
    """A stage: its layers, how many of them keep compressed entries of each ratio, and the widths.

    `owners` are all layers of ratio 4 and 128, and the key-value sources among those of ratio 1 and 2.
    """

    layers: int
    owners: Mapping[int, int]
    head_size: int = 512
    index_head_dim: int = 128
    sliding_window: int = 128

    @classmethod
    def of_ratios(
        cls, ratios: Sequence[int], sources: Sequence[int], first: int, end: int, **sizes: int
    ) -> "PagedModel":
        """The stage [first, end) of a list with one compression ratio per layer of the model."""
        counts: dict[int, int] = {}
        for ratio in (4, 128, *LOW_RATIOS):
            layers = range(first, end) if ratio not in LOW_RATIOS else sources
            count = sum(first <= layer < end and ratios[layer] == ratio for layer in layers)
            if count:
                counts[ratio] = count
        return cls(layers=end - first, owners=counts, **sizes)


@dataclass(frozen=True, kw_only=True)
class PagedOptions:
    """What the server sets. Without a `swa_full_tokens_ratio` but with a request limit: cap mode.

    `max_running_requests` is that of one worker; `state_bytes` those of a state's element.
    """

    swa_full_tokens_ratio: float | None = None
    max_running_requests: int | None = None
    context_length: int = 1_048_576
    draft_tokens: int = 0
    online_c128: bool = False
    host_to_device_ratio: int = 1
    main: Record = V4
    compressed: str = "auto"
    state_bytes: int = 4
    fp4_indexer: bool = False
    prefix_tails: int | None = None
    cap: CapOptions = field(default_factory=CapOptions)

    def ring(self, ratio: int) -> int:
        """State slots of a layer: per page of a C4 layer, per request of the others."""
        drafts = self.draft_tokens
        match ratio:
            case 2:
                return 2 if not drafts else 1 << (drafts + 1).bit_length()
            case 4:
                return 16 if drafts else 8
            case _:
                return 1 if self.online_c128 else (256 if drafts else 128)


@dataclass(frozen=True, kw_only=True)
class PagedSizes:
    """Tokens of the full and window pools, entries of the compressed ones, slots of the states."""

    full: Expression
    window: Expression
    c4: Expression
    c128: Expression
    c4_state: Expression
    c128_state: Expression
    requests: Expression


@dataclass(frozen=True, kw_only=True)
class PagedBudget:
    """The pools of one stage for some memory and page size."""

    model: PagedModel
    options: PagedOptions
    rules: Rules
    page_size: int

    def __post_init__(self) -> None:
        if self.page_size % PAGE_STEP:
            raise EngineError("sglang.page", value=self.page_size, pages="128·n")

    @property
    def ratio(self) -> float:
        """r: window tokens per full token."""
        return self.options.swa_full_tokens_ratio or self.rules.v4_full_tokens_ratio

    def record(self, ratio: int) -> Record:
        """How compressed entries of a ratio are stored; 0: window entries."""
        if not ratio:
            return self.options.main
        return compressed_record(self.options.main, ratio, self.options.compressed)

    def entry(self, ratio: int) -> Expression:
        """Bytes of an entry with its part of a page's padding."""
        record, page = self.record(ratio), symbol("P", self.page_size)
        return symbol(f"padded({ratio})", record.padded_entry(page // ratio if ratio else page))

    @property
    def tails(self) -> int:
        """Cached prefix tails whose windows stay in cap mode."""
        if self.options.prefix_tails is not None:
            return self.options.prefix_tails
        requests = self.options.max_running_requests
        return 0 if requests is None or not self.options.cap.radix_cache else 4 * requests

    @cached_property
    def cap_tokens(self) -> Expression | None:
        """Window tokens reserved as a fixed amount; None: sized by the ratio."""
        options = self.options
        if options.swa_full_tokens_ratio is not None or options.max_running_requests is None:
            return None
        if not options.cap.bounded:
            return None
        window = self.model.sliding_window
        cap = request_cap(
            options.max_running_requests, window, self.page_size, options.draft_tokens, options.cap
        )
        page = symbol("P", self.page_size)
        return round_up(cap + symbol("tails", self.tails) * (symbol("w", window) + page), page)

    @cached_property
    def _swa_token(self) -> Expression:
        """`padded · L + R4 / P · (b4 + b4i) · L4`, a double."""
        owners, widths = self.model.owners.get(4, 0), state_widths(self.model, self.options)
        slots = double(symbol("R4", self.options.ring(4) if owners else 0) / symbol("P", self.page_size))
        states = symbol("b4", widths.c4 * self.options.state_bytes) + symbol(
            "b4i", widths.index * self.options.state_bytes
        )
        rows = double(self.entry(0)) * symbol("L", self.model.layers)
        return rows + slots * states * symbol("L4", owners)

    @cached_property
    def bytes_per_swa_token(self) -> Expression:
        """Bytes of a window token in all layers with its part of the C4 states."""
        return self._with_drafter(self._swa_token)

    @cached_property
    def bytes_per_full_token(self) -> Expression:
        """Compressed entries and index keys, and where windows go by the ratio also those."""
        shared = symbol("r", 0 if self.cap_tokens is not None else self.ratio)
        kept = (
            self._compressed(ratio) * symbol(f"L{ratio}", layers)
            for ratio, layers in self.model.owners.items()
        )
        return self._with_drafter(shared * symbol("swa", self._swa_token) + total(kept))

    def _compressed(self, ratio: int) -> Expression:
        entry = double(self.entry(ratio))
        if ratio in LOW_RATIOS:
            return (entry + symbol("I4", self.index_bytes(fp4=True))) / ratio
        if ratio == 128:
            return double(lift(1) / 128) * entry
        shrink = symbol("s4", self.options.host_to_device_ratio)
        # NVIDIA's option of four-bit index keys is not priced.
        keys = symbol("I", self.index_bytes(fp4=False))
        return double(lift(1) / (4 * shrink)) * entry + double(lift(1) / 4) * keys

    def index_bytes(self, *, fp4: bool) -> Expression:
        """Bytes of an index key."""
        row = Row(vectors={"index": symbol("d_i", self.model.index_head_dim)})
        return (FP4_INDEX if fp4 else FP8_INDEX).row_bytes(row)

    def _with_drafter(self, price: Expression) -> Expression:
        if not self.options.draft_tokens:
            return price
        depth = symbol("L", self.model.layers)
        return price * double((depth + 1) / depth)

    def requests(self, available_bytes: int) -> Expression:
        """Requests assumed while memory is shared out."""
        if self.options.max_running_requests is not None:
            return symbol("requests", self.options.max_running_requests)
        tokens = whole(symbol("available", available_bytes) / symbol("per_full", self.bytes_per_full_token))
        return least(self._estimated(tokens), tokens // 2)

    def _estimated(self, tokens: Expression) -> Expression:
        rules = self.rules
        contexts = whole(
            symbol("tokens", tokens)
            / symbol("context", self.options.context_length)
            * rules.requests_per_context
        )
        return least(most(contexts, rules.least_requests), rules.most_requests)

    def slots(self, requests: Expression) -> Expression:
        """Request slots: a spare one, and those that a decode server accepts ahead."""
        return symbol("requests", requests) + (self.options.cap.decode_slots + 1)

    def c128_fixed(self, requests: Expression) -> Expression:
        """Bytes of C128 states, one ring per request slot."""
        layers = self.model.owners.get(128, 0)
        if not layers:
            return lift(0)
        rows = self.c128_rows(self.slots(requests))
        width = state_widths(self.model, self.options).c128
        return rows * width * self.options.state_bytes * symbol("L128", layers)

    def c128_rows(self, slots: Expression) -> Expression:
        """Rows that the states of so many request slots are priced with."""
        ring = symbol("R128", self.options.ring(128))
        if self.options.online_c128:
            return (slots + ring + 1) * (1 + self.options.draft_tokens)
        return round_up(slots * ring + ring + 1, 128)

    def c2_fixed(self, requests: Expression) -> Expression:
        """Bytes of V4.1's pair states, float32 whatever the other states are."""
        layers = self.model.owners.get(2, 0)
        if not layers:
            return lift(0)
        ring = symbol("R2", self.options.ring(2))
        rows = round_up(self.slots(requests) * ring + ring + 1, 2)
        return rows * (2 * symbol("d", self.model.head_size)) * 4 * symbol("L2", layers)

    @property
    def swa_fixed(self) -> Expression:
        """Bytes of the windows in cap mode."""
        if self.cap_tokens is None:
            return lift(0)
        return symbol("cap", self.cap_tokens) * symbol("swa", self.bytes_per_swa_token)

    def low_ratio_reserve(self, full: int) -> Expression:
        """Spare pages of V4.1's entries and index keys beside `full` tokens."""
        page = symbol("P", self.page_size)
        reserve = [lift(0)]
        for ratio in LOW_RATIOS:
            layers = self.model.owners.get(ratio, 0)
            if layers and self.options.main is not UNIFORM:
                spare = page * self.entry(ratio)
                size = (symbol("full", full) + page) // ratio
                slots = ceiling(size + INDEX_PAGE, INDEX_PAGE) * INDEX_PAGE
                keys = (slots - symbol("full", full) // ratio) * self.index_bytes(fp4=True)
                reserve.append((double(spare) + keys) * symbol(f"L{ratio}", layers))
        return total(reserve)

    def fit(self, available_bytes: int) -> PagedSizes:
        """All pools in `available_bytes`.

        Raises:
            EngineError: the windows of cap mode leave no room, or no request would fit into them.
        """
        requests = self.requests(available_bytes)
        fixed = self.c128_fixed(requests) + self.c2_fixed(requests) + self.swa_fixed
        left = most(symbol("available", available_bytes) - symbol("fixed", fixed), 0)
        weight = symbol("per_full", self.bytes_per_full_token)
        full = aligned(whole(left / weight), self.page_size)
        # The weight has no spare pages: the few that these take are removed again.
        while full.value > 0 and self._taken(full).value > left.value:
            full = full - self.page_size
        if full.value <= 0 and self.cap_tokens is not None:
            raise EngineError("sglang.v4_cap", value=int(self.cap_tokens.value))
        return self.resize(full)

    def _taken(self, full: Expression) -> Expression:
        tokens = int(full.value)
        return symbol("full", tokens) * self.bytes_per_full_token + self.low_ratio_reserve(tokens)

    def resize(self, tokens: Expression) -> PagedSizes:
        """All pools for at most `tokens` tokens.

        Raises:
            EngineError: a window pool that no request fits into.
        """
        full = aligned(tokens, self.page_size)
        held = symbol("full", full)
        window = self.cap_tokens
        if window is None:
            window = aligned(whole(held * symbol("r", self.ratio)), self.page_size)
            if self.model.sliding_window + self.page_size >= window.value:
                raise EngineError(
                    "sglang.window_small",
                    value=int(window.value),
                    least=self.model.sliding_window + self.page_size + 1,
                )
        running = self._running(full)
        slots = self.slots(running)
        ring4 = self.options.ring(4) if 4 in self.model.owners else 0
        ring128 = self.options.ring(128) if 128 in self.model.owners else 0
        states = slots if self.options.online_c128 else slots * symbol("R128", ring128)
        return PagedSizes(
            full=full,
            window=window,
            c4=held // (4 * symbol("s4", self.options.host_to_device_ratio)),
            c128=held // 128,
            c4_state=symbol("swa", window) // symbol("P", self.page_size) * symbol("R4", ring4),
            c128_state=states,
            requests=running,
        )

    def _running(self, full: Expression) -> Expression:
        """Requests that run at once."""
        held, limit = symbol("full", full), self.options.max_running_requests
        if limit is not None:
            return least(symbol("requests", limit), held // 2)
        return least(self._estimated(held), held // 2)


@dataclass(frozen=True, kw_only=True)
class StateWidths:
    """Elements of a state slot: C4 (K and score, twice), C128 (online: maximum, sum, K), C4 indexer."""

    c4: Expression
    c128: Expression
    index: Expression


def state_widths(model: PagedModel, options: PagedOptions) -> StateWidths:
    """The widths of a model."""
    head, index = symbol("d", model.head_size), symbol("d_i", model.index_head_dim)
    return StateWidths(c4=4 * head, c128=(3 if options.online_c128 else 2) * head, index=4 * index)
