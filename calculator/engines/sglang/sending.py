"""What prefill sends to decode for one request: pages of the token pools, and the extra state once.

Source: SGLang 0.5.13 `disaggregation/prefill.py`; get_contiguous_buf_infos, get_state_buf_infos of the pools.
"""

from dataclasses import dataclass
from enum import Enum

from ...errors import FieldError
from ...explain import Expression, ceiling, lift, most, symbol
from .buffers import Pool, Sent

MAX_TOKENS = 2**27


class Extra(Enum):
    """The extra state of a pool: index keys of the whole prompt, the window's pages, or one state slot."""

    DSA = "dsa"
    SWA = "swa"
    MAMBA = "mamba"


@dataclass(frozen=True, kw_only=True)
class Region:
    """One tensor of one layer as registered with the transfer backend: bytes of one page (or slot) in it."""

    name: str
    layers: int
    item_bytes: Expression


def page_count(tokens: int, page_size: int) -> Expression:
    """`⌈T / P⌉`: a partial page is sent whole."""
    return ceiling(symbol("T", tokens), symbol("P", page_size))


def extra_count(kind: Extra, tokens: int, page_size: int, window: int = 0) -> Expression:
    """Pages (of a state: slots) of the extra state; `window` as the engine has it, often one token less."""
    if kind is Extra.MAMBA:
        return lift(1)
    pages = page_count(tokens, page_size)
    if kind is Extra.DSA:
        return pages
    skipped = most(0, symbol("T", tokens) - symbol("w", window))
    return pages - skipped // symbol("P", page_size)


def sent_bytes(pages: Expression, per_page: Expression) -> Expression:
    """`pages · bytes of a page over all layers`."""
    return symbol("pages", pages) * symbol("b", per_page)


def chunk_tokens(
    tokens: int, page_size: int, *, already_sent_tokens: int, chunk_end_tokens: int, last_chunk: bool
) -> Expression:
    """Tokens that go with one chunk of a prompt: a middle chunk ends at a page, its rest goes with the next.

    Raises:
        FieldError: the chunk lies outside the prompt.
    """
    for field, value in (
        ("already_sent_tokens", already_sent_tokens),
        ("chunk_end_tokens", chunk_end_tokens),
    ):
        if not 0 <= value <= tokens:
            raise FieldError("error.range", field=field, value=value, lowest=0, highest=tokens)
    end, page = symbol("end", chunk_end_tokens), symbol("P", page_size)
    last = end if last_chunk else end // page * page
    return most(0, last - symbol("sent", already_sent_tokens))


def regions(pool: Pool, when: Sent = Sent.PAGES) -> tuple[Region, ...]:
    """The tensors to register, in the order of the engine: all K layers, then all V layers."""
    return tuple(
        Region(name=buffer.name, layers=int(buffer.layers.value), item_bytes=buffer.item_bytes)
        for buffer in pool.sent(when)
    )
