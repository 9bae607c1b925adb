"""Device buffers: what an SGLang pool takes from the GPU, and which part of it one page is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from ...explain import Expression, lift, product, symbol, total
from ...formats import BF16, FP16, FP32, StorageFormat

ELEMENT_BYTES: Mapping[str, int] = {"float32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "uint8": 1}


def element_of(storage: StorageFormat) -> str:
    """The type of the buffer: every 8-bit and 4-bit form is kept as uint8."""
    names = {BF16: "bfloat16", FP16: "float16", FP32: "float32"}
    return names.get(storage, "uint8")


ONE, NOTHING = lift(1), lift(0)


class Sent(Enum):
    """When prefill sends a buffer to decode: page by page, once at the end (window or request), or never.

    `STAYS` is what every page has, too, and what is not sent with it.
    """

    PAGES = "pages"
    EXTRA = "extra"
    REQUEST = "request"
    STAYS = "stays"
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """One tensor of [shape] per layer (`stacked`: one of [layers, shape]) of `element`s.

    `item_rows` are the rows of its first dimension that one page, or one state slot, takes; `padding` are the
    bytes of a row in which nothing is stored; `state` marks recurrent state, which is not of tokens.
    """

    name: str
    shape: tuple[Expression, ...]
    element: str
    layers: Expression
    item_rows: Expression = ONE
    sent: Sent = Sent.NEVER
    stacked: bool = False
    padding: Expression = NOTHING
    state: bool = False

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape in numbers."""
        leading = (self.layers,) if self.stacked else ()
        return tuple(int(dim.value) for dim in (*leading, *self.shape))

    @property
    def row_bytes(self) -> Expression:
        """Bytes of one row of the first dimension."""
        return product((*self.shape[1:], symbol("s", ELEMENT_BYTES[self.element])))

    @property
    def bytes(self) -> Expression:
        """Bytes over all layers, padding included."""
        return self.layers * (self.shape[0] * self.row_bytes)

    @property
    def item_bytes(self) -> Expression:
        """Bytes of one page or slot in one layer, as registered for transfer."""
        return self.item_rows * self.row_bytes


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool under the engine's class name, with all its buffers."""

    name: str
    buffers: tuple[Buffer, ...]

    @property
    def total_bytes(self) -> Expression:
        """Bytes of all buffers."""
        return total(buffer.bytes for buffer in self.buffers)

    @property
    def page_bytes(self) -> Expression:
        """Bytes of one page over all layers that prefill sends."""
        return _items(self.sent(Sent.PAGES))

    @property
    def extra_bytes(self) -> Expression:
        """Bytes of one page or slot of the extra state over all layers."""
        return _items(self.sent(Sent.EXTRA))

    @property
    def held_page_bytes(self) -> Expression:
        """Bytes of one page over all layers, whether they are sent or not."""
        return _items(self.sent(Sent.PAGES, Sent.STAYS))

    @property
    def state_bytes(self) -> Expression:
        """Bytes of one slot, or of the rings of one page, over all layers."""
        return _items(buffer for buffer in self.sent(Sent.EXTRA) if buffer.state)

    @property
    def request_bytes(self) -> Expression:
        """Bytes that a request keeps of its own over all layers, sent with it."""
        return _items(self.sent(Sent.REQUEST))

    def padding_bytes(self, when: Sent) -> Expression:
        """Bytes of one page of these buffers over all layers in which nothing is stored."""
        return total(
            buffer.layers * (buffer.item_rows * buffer.padding)
            for buffer in self.sent(when)
            if buffer.padding.value
        )

    def sent(self, *when: Sent) -> tuple[Buffer, ...]:
        """The buffers that are sent then."""
        return tuple(buffer for buffer in self.buffers if buffer.sent in when)


def _items(buffers: Iterable[Buffer]) -> Expression:
    return total(buffer.layers * buffer.item_bytes for buffer in buffers)


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How large a token pool is: capacity, page and layers; on one rank."""

    tokens: int
    page_size: int
    layers: int

    @property
    def page(self) -> Expression:
        """P."""
        return symbol("P", self.page_size)

    @property
    def depth(self) -> Expression:
        """L."""
        return symbol("L", self.layers)

    @property
    def rows(self) -> Expression:
        """Rows of a buffer: the tokens and one page that padded tokens write to."""
        return symbol("tokens", self.tokens) + self.page


def pages_of(entries: Expression, per_page: Expression) -> Expression:
    """Rows of a paged buffer: `⌊(entries + entries per page + 1) / entries per page⌋`."""
    return (entries + per_page + 1) // per_page
