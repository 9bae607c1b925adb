"""Prefix reuse: what each cache kind needs for a hit.

vLLM looks blocks up by their hash, per group of layers: `engines/vllm/prefix.py`. SGLang walks a radix tree:
here.
"""

from collections.abc import Sequence
from enum import StrEnum

from .caches import (
    Cache,
    ChunkedLocal,
    CompressorState,
    CrossAttention,
    EncoderOnlyAttention,
    SlidingWindow,
    SlidingWindowMLA,
    State,
)


class Need(StrEnum):
    """What must be present for a prefix to be reused. The words are under reuse.<need> in the catalogues."""

    LEADING_RUN = "leading_run"  # every token from the first
    WINDOW = "window"  # the last w - 1 tokens
    CHUNK = "chunk"  # every token of the chunk that the next token is in
    SNAPSHOT = "snapshot"  # the state at the end of the prefix
    NEVER = "never"


def need(cache: Cache) -> Need:
    """What a cache kind needs, in both engines."""
    match cache:
        case State():
            return Need.SNAPSHOT
        case SlidingWindow() | SlidingWindowMLA() | CompressorState():
            return Need.WINDOW
        case ChunkedLocal():
            return Need.CHUNK
        case CrossAttention() | EncoderOnlyAttention():
            return Need.NEVER
        case _:
            return Need.LEADING_RUN


def tokens_needed(cache: Cache, prefix: int) -> int:
    """How many of `prefix` tokens must be present for all to count as computed; a state counts as none."""
    match need(cache):
        case Need.LEADING_RUN:
            return prefix
        case Need.WINDOW:
            return min(prefix, getattr(cache, "sliding_window", 1) - 1)
        case Need.CHUNK:
            return prefix % getattr(cache, "attention_chunk_size", 1)
        case _:
            return 0


Span = tuple[int, int]  # tokens from the first number up to, not including, the second


def radix_hit(
    matched: int,
    *,
    page_size: int = 1,
    window: int | None = None,
    window_spans: Sequence[Span] = (),
    snapshots: Sequence[int] | None = None,
) -> int:
    """Tokens that SGLang reuses of `matched` ones that are in its radix tree.

    `window` is the engine's (often `sliding_window` - 1) and `window_spans` the stretches of the matched path
    whose window cache is still present; `snapshots` the depths at which a state was kept; None: the model has
    none. Source: SGLang 0.5.13 `mem_cache/radix_cache.py`, `swa_radix_cache.py`, `mamba_radix_cache.py`.
    """
    hit = matched // page_size * page_size
    if window is not None:
        hit = max((_reusable(span, hit, window, page_size) for span in window_spans), default=0)
    if snapshots is not None:
        hit = max((depth for depth in snapshots if depth <= hit and depth % page_size == 0), default=0)
    return hit


def _reusable(span: Span, limit: int, window: int, page_size: int) -> int:
    """The deepest end within a span: an unbroken path to the root, or `window` tokens behind it."""
    start, end = span
    end = min(end, limit) // page_size * page_size
    return end if start == 0 or end - start >= window else 0
