"""DeepSeek-V4: bytes per token of context in seven terms, the sizes of all pools, and the pools.

Source: SGLang 0.5.13 `model_executor/pool_configurator.py` DSV4PoolConfigurator,
`mem_cache/deepseek_v4_memory_pool.py`, `mem_cache/deepseek_v4_compress_state.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import EngineError
from ...explain import Expression, double, lift, round_up, symbol, total, whole
from ...formats import FP8_INDEX, FP8_V4, Row
from .buffers import Buffer, Pool, Sent, pages_of
from .cell import aligned

STATE_BYTES = 4
INDEX_SCALE_BYTES = 4  # of an index key as it is stored, whatever its width
ALIGNMENT = 576  # bytes that a page of rows is padded to a multiple of
PAGE_STEP = 128  # a page must hold whole entries of every ratio
WEIGHTS = ("window", "c4", "c128", "c4_indexer", "c4_state", "c128_state", "c4_indexer_state")


@dataclass(frozen=True, kw_only=True)
class V4Model:
    """A stage of DeepSeek-V4: its layers by compression ratio, and the widths of what they store."""

    layers: int
    c4_layers: int
    c128_layers: int
    head_size: int = 512
    qk_rope_head_dim: int = 64
    index_head_dim: int = 128
    sliding_window: int = 128

    @classmethod
    def of_ratios(cls, ratios: Sequence[int], **sizes: int) -> "V4Model":
        """The model of a list with one compression ratio per layer."""
        return cls(layers=len(ratios), c4_layers=ratios.count(4), c128_layers=ratios.count(128), **sizes)

    @property
    def entry_bytes(self) -> Expression:
        """K: a row of window, C4 or C128, without padding."""
        rope = symbol("D_r", self.qk_rope_head_dim)
        return FP8_V4.row_bytes(Row(vectors={"latent": symbol("d", self.head_size) - rope, "rope": rope}))

    @property
    def index_bytes(self) -> Expression:
        """I: an index key with its scales."""
        return FP8_INDEX.row_bytes(Row(vectors={"index": symbol("d_i", self.index_head_dim)}))


@dataclass(frozen=True, kw_only=True)
class V4Options:
    """What the server sets: window tokens per full token, a drafter, online C128, HiSparse's host ratio.

    Raises:
        EngineError: a drafter beside online C128, which cannot go back.
    """

    swa_full_tokens_ratio: float
    speculative: bool = False
    online_c128: bool = False
    host_to_device_ratio: int = 1

    def __post_init__(self) -> None:
        if self.speculative and self.online_c128:
            raise EngineError("sglang.v4_online")

    @property
    def c4_ring(self) -> int:
        """State slots of a C4 layer per window."""
        return 16 if self.speculative else 8

    @property
    def c128_ring(self) -> int:
        """State slots of a C128 layer per window."""
        if self.online_c128:
            return 1
        return 256 if self.speculative else 128


def state_widths(model: V4Model, options: V4Options) -> tuple[Expression, Expression, Expression]:
    """Elements of a state slot: C4 (K and score, twice), C128 (online: maximum, sum, K), C4 indexer."""
    head, index = symbol("d", model.head_size), symbol("d_i", model.index_head_dim)
    return 4 * head, (3 if options.online_c128 else 2) * head, 4 * index


def terms(model: V4Model, options: V4Options) -> dict[str, Expression]:
    """Bytes per full token by name, in the engine's order."""
    ratio, entry = symbol("r", options.swa_full_tokens_ratio), symbol("K", model.entry_bytes)
    depth, depth4, depth128 = _depths(model)
    shrink = symbol("s4", options.host_to_device_ratio)
    window = symbol("W", model.sliding_window)
    c4_slots = double(symbol("R4", options.c4_ring) / window)
    c128_slots = double(symbol("R128", options.c128_ring) / window)
    names = ("b4", "b128", "b4i")
    b4, b128, b4i = (
        symbol(name, width * STATE_BYTES)
        for name, width in zip(names, state_widths(model, options), strict=True)
    )
    weights = (
        ratio * entry * depth,
        double(lift(1) / (4 * shrink)) * entry * depth4,
        double(lift(1) / 128) * entry * depth128,
        double(lift(1) / 4) * symbol("I", model.index_bytes) * depth4,
        ratio * c4_slots * b4 * depth4,
        ratio * c128_slots * b128 * depth128,
        ratio * c4_slots * b4i * depth4,
    )
    return dict(zip(WEIGHTS, weights, strict=True))


def bytes_per_full_token(model: V4Model, options: V4Options) -> Expression:
    """The sum of the terms; a drafter adds one layer."""
    weight = total(terms(model, options).values())
    if not options.speculative:
        return weight
    depth = symbol("L", model.layers)
    return weight * double((depth + 1) / depth)


@dataclass(frozen=True, kw_only=True)
class V4Sizes:
    """Tokens of the full and window pools, entries of the compressed ones, slots of the states."""

    full: Expression
    window: Expression
    c4: Expression
    c128: Expression
    c4_state: Expression
    c128_state: Expression


def sizes(model: V4Model, options: V4Options, tokens: Expression, page_size: int) -> V4Sizes:
    """All pools for at most `tokens` tokens.

    Raises:
        EngineError: a page that is not a multiple of 128 tokens.
    """
    if page_size % PAGE_STEP:
        raise EngineError("sglang.page", value=page_size, pages="128·n")
    full = aligned(tokens, page_size)
    held = symbol("full", full)
    window = aligned(whole(held * symbol("r", options.swa_full_tokens_ratio)), page_size)
    windows = symbol("swa", window) // symbol("W", model.sliding_window)
    return V4Sizes(
        full=full,
        window=window,
        c4=held // (4 * symbol("s4", options.host_to_device_ratio)),
        c128=held // 128,
        c4_state=windows * symbol("R4", options.c4_ring),
        c128_state=windows * symbol("R128", options.c128_ring),
    )


def capacity(model: V4Model, options: V4Options, available_bytes: int, page_size: int) -> V4Sizes:
    """All pools that fit into `available_bytes`."""
    weight = symbol("bpft", bytes_per_full_token(model, options))
    return sizes(model, options, whole(symbol("available", available_bytes) / weight), page_size)


def v4_pool(
    model: V4Model, options: V4Options, held: V4Sizes, page_size: int, *, fp4_indexer: bool = False
) -> Pool:
    """DeepSeekV4TokenToKVPool: pages of rows padded to 576 bytes, index keys, rings of states."""
    depth, depth4, depth128 = _depths(model)
    page = symbol("P", page_size)
    page4, page128 = page // 4, page // 128
    index = symbol("d_i", model.index_head_dim)
    key = (index // 2 if fp4_indexer else index) + INDEX_SCALE_BYTES
    logical = 32 * symbol("c128", held.c128)  # index keys of all tokens stay, wherever the C4 rows are
    c4_width, c128_width, index_width = state_widths(model, options)
    c4_slots = _state_rows(held.c4_state, options.c4_ring, 4)
    if options.online_c128:
        c128_slots = symbol("size", held.c128_state) + 2
    else:
        c128_slots = _state_rows(held.c128_state, options.c128_ring, 128)
    entry = model.entry_bytes
    return Pool(
        name="DeepSeekV4TokenToKVPool",
        buffers=(
            _rows("swa_kv_buffer", symbol("swa", held.window), page, entry, depth, Sent.EXTRA),
            _rows("c4_kv_buffer", symbol("c4", held.c4), page4, entry, depth4, Sent.PAGES),
            _rows("c128_kv_buffer", symbol("c128", held.c128), page128, entry, depth128, Sent.PAGES),
            Buffer(
                name="c4_indexer_buffer",
                shape=(pages_of(logical, page4), page4 * key),
                element="uint8",
                layers=depth4,
                sent=Sent.PAGES,
            ),
            _states("c4_state", c4_slots, c4_width, depth4, options.c4_ring),
            _states("c128_state", c128_slots, c128_width, depth128, options.c128_ring),
            _states("c4_indexer_state", c4_slots, index_width, depth4, options.c4_ring),
        ),
    )


def _depths(model: V4Model) -> tuple[Expression, Expression, Expression]:
    return symbol("L", model.layers), symbol("L4", model.c4_layers), symbol("L128", model.c128_layers)


def _rows(
    name: str, entries: Expression, per_page: Expression, entry: Expression, depth: Expression, sent: Sent
) -> Buffer:
    return Buffer(
        name=name,
        shape=(pages_of(entries, per_page), round_up(per_page * entry, ALIGNMENT)),
        element="uint8",
        layers=depth,
        sent=sent,
        padding=symbol("padded", round_up(per_page * entry, ALIGNMENT)) - per_page * entry,
    )


def _state_rows(size: Expression, ring: int, ratio: int) -> Expression:
    return round_up(symbol("size", size) + symbol("ring", ring) + 1, ratio)


def _states(name: str, rows: Expression, width: Expression, depth: Expression, ring: int) -> Buffer:
    return Buffer(
        name=name,
        shape=(rows, width),
        element="float32",
        layers=depth,
        item_rows=symbol("ring", ring),
        sent=Sent.EXTRA,
        state=True,
    )
