"""Sliding windows and chunks: whether they count, and how wide they are."""

from ..caches import ChunkedLocal, FullAttention, ReferenceWindow, SlidingWindow
from ..errors import ConfigError
from .context import stated_context
from .found import Found
from .heads import full_sizes, sliding_sizes
from .reader import Reader

WINDOW = ("sliding_window", "attention_window_size", "sliding_window_size")


def is_switched_off(reader: Reader) -> bool:
    """Whether the file, or the class where the file is silent, says that the window is not used.

    A window of −1 is none. A file with `max_window_layers` (Qwen2 and 3) uses no window unless told to.
    """
    of_qwen = reader.has("max_window_layers") and not reader.has_class()
    none = any(reader.says(key, -1) for key in WINDOW)
    return none or not reader.flag("use_sliding_window", absent=not of_qwen)


def never_binds(reader: Reader, width: Found) -> bool:
    """Whether a window is at least as wide as the context that the file states; noted where it is."""
    context = stated_context(reader)
    if context is None or width.value < context.value:
        return False
    reader.note("config.note.window", width.key, value=width.value, context=context.value)
    return True


def sliding_attention(reader: Reader) -> SlidingWindow | FullAttention:
    """Keys and values of the last tokens, or of all where the window never drops one.

    Raises:
        ConfigError: the layers slide but the window is missing or switched off.
    """
    if is_switched_off(reader):
        field = reader.path("use_sliding_window")
        raise ConfigError(
            "config.contradiction",
            field=field,
            value="false",
            other=reader.path("layer_types"),
            second="sliding_attention",
        )
    width, sizes = reader.needed(*WINDOW), sliding_sizes(reader)
    if never_binds(reader, width):
        return reader.cache(FullAttention, **sizes)
    return reader.cache(SlidingWindow, sliding_window=width, **sizes)


def reference_attention(reader: Reader) -> ReferenceWindow:
    """Keys and values of the prompt, and of the last generated tokens (Unlimited-OCR)."""
    reader.ordinary("layer_types")
    return reader.cache(ReferenceWindow, reference_window=reader.needed(*WINDOW), **full_sizes(reader))


def chunked_attention(reader: Reader) -> ChunkedLocal | FullAttention:
    """Keys and values of the current chunk, or of all where the context is one chunk."""
    width, sizes = reader.whole("attention_chunk_size"), full_sizes(reader)
    if never_binds(reader, width):
        return reader.cache(FullAttention, **sizes)
    return reader.cache(ChunkedLocal, attention_chunk_size=width, **sizes)
