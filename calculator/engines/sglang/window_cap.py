"""Window tokens that the running requests can need at most: the pool's size where requests are limited.

Source: SGLang 0.5.23 `model_executor/pool_configurator.py` compute_swa_request_cap.
"""

from dataclasses import dataclass

from ...explain import Expression, symbol

EVICTION_INTERVAL = 128  # decode steps between two looks at what can be freed


@dataclass(frozen=True, kw_only=True)
class CapOptions:
    """What the server sets; `extra_slots` are request slots that only a decode server (`decode`) has."""

    chunked_prefill_size: int = 8192
    overlap_schedule: bool = True
    radix_cache: bool = True
    decode: bool = False
    extra_slots: int = 0
    speculative_steps: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether a cap exists: a prompt that is not cut into chunks may fill any number of tokens."""
        return self.decode or self.chunked_prefill_size > 0

    @property
    def decode_slots(self) -> int:
        """Extra request slots, which only a decode server has."""
        return self.extra_slots if self.decode else 0


def request_cap(
    requests: int, window: int, page_size: int, draft_tokens: int, options: CapOptions
) -> Expression:
    """`requests · (w + 128 · D + P + a) + chunks · chunked_prefill_size + P`.

    `a` is what a decode step may allocate: a page, or with a chain of drafts twice the longer of its steps
    and tokens. A decode server has windows of its extra slots instead of chunks.
    """
    page, width = symbol("P", page_size), symbol("w", window)
    trailing = width + EVICTION_INTERVAL * symbol("D", draft_tokens or 1) + page
    per_request = trailing + _decode_step(page_size, draft_tokens, options)
    running = symbol("requests", requests) * per_request
    if options.decode:
        return running + (width + page) * symbol("slots", options.extra_slots)
    chunks = 2 if options.overlap_schedule else 1
    return running + chunks * symbol("chunk", options.chunked_prefill_size) + page


def _decode_step(page_size: int, draft_tokens: int, options: CapOptions) -> Expression:
    """Tokens that one step of one request may allocate."""
    if not draft_tokens:
        return symbol("P", page_size)
    steps = options.speculative_steps or max(1, draft_tokens - 1)
    if options.overlap_schedule:
        return 2 * symbol("a", max(steps, draft_tokens))
    # Without overlap each of the two is rounded up to pages.
    pages = -(-max(steps, draft_tokens) // page_size)
    return symbol("a", pages * page_size)
