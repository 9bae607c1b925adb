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
    width = reader.whole("sliding_window")
    context = reader.optional("max_position_embeddings")
    if context and width.value >= context.value:  # it never drops a token, but engines still treat it as one
        reader.note("config.note.window", width.key, value=width.value, context=context.value)
    return reader.cache(SlidingWindow, sliding_window=width, **head_sizes(reader))
