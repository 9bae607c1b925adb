"""The context length: a hint to the user, and what a window is compared with."""

from .found import Found
from .reader import Reader

CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "seq_length",
    "max_seq_len",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "context_length",
)


def stated_context(reader: Reader) -> Found | None:
    """The longest context that the file states; training positions may be fewer than those in use."""
    stated = [found for key in CONTEXT if reader.has(key) and (found := reader.optional(key))]
    return max(stated, key=lambda found: found.value, default=None)


def context_hint(reader: Reader) -> Found | None:
    """The same, or that of the class."""
    return stated_context(reader) or next((found for key in CONTEXT if (found := reader.optional(key))), None)
