"""Layers that follow a rule of their number."""

from collections.abc import Mapping, Sequence

from .family import CHUNKED, FULL, LINEAR, MAMBA, SLIDING
from .reader import Reader
from .window import WINDOW, is_switched_off, never_binds

# Layer i is full when i + 1 is a multiple of the key's number; the others do this.
PERIODS: Mapping[str, str] = {
    "sliding_window_pattern": SLIDING,
    "_sliding_window_pattern": SLIDING,
    "global_attn_every_n_layers": SLIDING,
    "full_attention_interval": LINEAR,
}
LETTERS: Mapping[str, str] = {"L": SLIDING, "G": FULL}


def periodic_words(reader: Reader, count: int) -> tuple[str, Sequence[str]] | None:
    """The key that decides and the words of `count` layers; None where there is no such key.

    Raises:
        ConfigError: a letter that is not known, a number out of range, or a pattern that has no window.
    """
    letters = reader.pattern_text("sliding_window_pattern")
    if letters:
        return "sliding_window_pattern", _repeated(reader, letters, count)
    for key, other in PERIODS.items():
        period = reader.optional(key)
        if period:
            reader.skip(*(same for same, word in PERIODS.items() if word == other))
            return key, [FULL if (layer + 1) % period.value == 0 else other for layer in range(count)]
    period = reader.optional("attn_layer_period")
    if period:
        offset = reader.number("attn_layer_offset", highest=period.value - 1)
        return "attn_layer_period", [
            FULL if layer % period.value == offset.value else MAMBA for layer in range(count)
        ]
    size = reader.optional("layer_group_size")
    if size:
        whole = count - count % size.value  # every layer of an incomplete last group is full
        return "layer_group_size", [
            FULL if layer >= whole or (layer + 1) % size.value == 0 else LINEAR for layer in range(count)
        ]
    return _chunked(reader, count)


def _repeated(reader: Reader, letters: str, count: int) -> Sequence[str]:
    for position, letter in enumerate(letters):
        if letter not in LETTERS:
            raise reader.unknown_word("sliding_window_pattern", position, letter, ", ".join(LETTERS))
    return [LETTERS[letters[layer % len(letters)]] for layer in range(count)]


def _chunked(reader: Reader, count: int) -> tuple[str, Sequence[str]] | None:
    """Layers without rotary embedding are full, those with it (1) local: not what the key suggests."""
    given = reader.has("attention_chunk_size") and reader.class_has("attention_chunk_size")
    by_class = reader.class_number("attention_chunk_size") and not reader.is_null("attention_chunk_size")
    if not given and not by_class:
        return None
    codes = reader.items("no_rope_layers")
    if codes:
        reader.as_long("no_rope_layers", codes, count, 0)
        for position, code in enumerate(codes):
            if type(code) is not int or code not in (0, 1):
                raise reader.unknown_word("no_rope_layers", position, code, "0, 1")
        return "no_rope_layers", [CHUNKED if code else FULL for code in codes]
    interval = reader.optional("no_rope_layer_interval")
    if interval is None:
        return None
    return "no_rope_layer_interval", [
        FULL if (layer + 1) % interval.value == 0 else CHUNKED for layer in range(count)
    ]


def windowed_words(reader: Reader, count: int) -> tuple[str, Sequence[str]] | None:
    """All layers slide, or those from `max_window_layers` on, where the file has a window and no pattern.

    A window that the class of this model_type does not have is left unread, and so refused.
    """
    if is_switched_off(reader):
        reader.skip("max_window_layers", *WINDOW)
        return None
    if reader.family.pattern or not any(reader.class_has(key) for key in WINDOW):
        return None
    window = reader.spelled(*WINDOW)
    if window is None:
        return None
    if not never_binds(reader, window):
        reader.ordinary("sliding_window")  # which layers slide is not said
    first = reader.optional("max_window_layers", lowest=0)
    if first and not reader.class_has("max_window_layers"):
        raise reader.unread("max_window_layers")
    if first is None:
        return window.key.rpartition(".")[2], [SLIDING] * count
    return "max_window_layers", [SLIDING if layer >= first.value else FULL for layer in range(count)]
