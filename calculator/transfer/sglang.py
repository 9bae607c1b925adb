"""What an SGLang prefill server sends to a decode server for one request.

Mooncake sends all layers of a chunk in one batch, runs of consecutive pages merged (with a custom memory pool
one task per region); NIXL, MoRI and Ascend register the same regions. Where the TP sizes differ, slices of
heads are sent per token. Source: SGLang 0.5.13 and 0.5.23 `disaggregation/`.
"""

from dataclasses import dataclass

from ..engines.sglang import Allocation
from ..engines.sglang.buffers import Sent
from ..engines.sglang.held import Family
from ..engines.sglang.sending import (
    MAX_TOKENS,
    Extra,
    Region,
    chunk_tokens,
    extra_count,
    page_count,
    regions,
    sent_bytes,
)
from ..errors import FieldError
from ..explain import Derivation, Expression, lift

EXTRAS = {
    Family.SPARSE: Extra.DSA,
    Family.SPARSE_ATTENTION: Extra.DSA,
    Family.WINDOW: Extra.SWA,
    Family.V4: Extra.SWA,
    Family.HYBRID: Extra.MAMBA,
}


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One request on one rank of a stage: pages of the token pools, and the extra state with the last chunk.

    `regions` and `extra_regions` are the tensors, one per layer each, with the bytes of one page or slot.
    """

    version: str
    tokens: int
    page_size: int
    pages: Expression
    page_bytes: Expression
    kv_bytes: Expression
    extra: Extra | None
    extra_items: Expression
    extra_bytes: Expression
    request_bytes: Expression  # what the request keeps beside pages and windows, sent with it
    regions: tuple[Region, ...]
    extra_regions: tuple[Region, ...]

    @property
    def total_bytes(self) -> Expression:
        """All of it."""
        return self.kv_bytes + self.extra_bytes + self.request_bytes

    def chunk(self, already_sent_tokens: int, chunk_end_tokens: int, *, last_chunk: bool) -> Expression:
        """Tokens that go with one chunk of the prompt.

        Raises:
            FieldError: the chunk lies outside the prompt.
        """
        return chunk_tokens(
            self.tokens,
            self.page_size,
            already_sent_tokens=already_sent_tokens,
            chunk_end_tokens=chunk_end_tokens,
            last_chunk=last_chunk,
        )

    def derivations(self) -> list[Derivation]:
        """How the figures were made."""
        source = f"SGLang {self.version} disaggregation/prefill.py"
        lines = {"pages": self.pages, "kv_bytes": self.kv_bytes, "extra_bytes": self.extra_bytes}
        if self.request_bytes.value:
            lines["request_bytes"] = self.request_bytes
        return [
            Derivation(quantity=f"transfer.{name}", expression=expression, source=source)
            for name, expression in lines.items()
        ]


def transfer(allocation: Allocation, tokens: int, *, stage: int = 0) -> Transfer:
    """What a rank of `stage` sends for a request of `tokens`.

    Raises:
        FieldError: a token count or stage outside its bounds.
    """
    _within("tokens", tokens, 1, MAX_TOKENS)
    _within("stage", stage, 0, len(allocation.stages) - 1)
    pool, page_size = allocation.stages[stage].pool, allocation.page_size
    pages = page_count(tokens, page_size)
    extra = EXTRAS.get(allocation.family)
    items = lift(0) if extra is None else extra_count(extra, tokens, page_size, allocation.attention_window)
    return Transfer(
        version=allocation.version,
        tokens=tokens,
        page_size=page_size,
        pages=pages,
        page_bytes=pool.page_bytes,
        kv_bytes=sent_bytes(pages, pool.page_bytes),
        extra=extra,
        extra_items=items,
        extra_bytes=sent_bytes(items, pool.extra_bytes),
        request_bytes=pool.request_bytes,
        regions=regions(pool),
        extra_regions=regions(pool, Sent.EXTRA),
    )


def _within(field: str, value: int, lowest: int, highest: int) -> None:
    if type(value) is not int or not lowest <= value <= highest:
        raise FieldError("error.range", field=field, value=value, lowest=lowest, highest=highest)
