"""Sliding windows: whether there is one, and how wide."""

from ..caches import SlidingWindow
from ..errors import ConfigError
from .heads import head_sizes
from .reader import Found, Reader


def window(reader: Reader) -> Found | None:
    """The window that counts; None where the file has none or switches it off."""
    return reader.optional("sliding_window") if reader.flag("use_sliding_window", absent=True) else None


def sliding_attention(reader: Reader) -> SlidingWindow:
    """Keys and values of the last tokens.

    Raises:
        ConfigError: the layers slide but the window is missing or switched off.
    """
    if not reader.flag("use_sliding_window", absent=True):
        field, other = reader.path("use_sliding_window"), reader.provenance["layer_pattern"]
        raise ConfigError("config.contradiction", field=field, value="false", other=other)
    return reader.cache(SlidingWindow, sliding_window=reader.whole("sliding_window"), **head_sizes(reader))


def note_wide_window(reader: Reader, cache: SlidingWindow, context: Found | None) -> None:
    """Say so when the window is not smaller than the context that the file names."""
    if context and cache.sliding_window >= context.value:
        path = reader.path("sliding_window")
        reader.note("config.note.window", path, value=cache.sliding_window, context=context.value)
