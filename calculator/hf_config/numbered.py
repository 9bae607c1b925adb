"""Layers that a file names by their numbers."""

from collections.abc import Mapping, Sequence

from ..errors import ConfigError
from .family import CONVOLUTION, FULL, HYBRID, LINEAR, MAMBA, SLIDING
from .plain_text import shown
from .reader import Reader

# The numbers of the layers that do the first; the others do the second.
NUMBERS: Mapping[str, tuple[str, str]] = {
    "full_attn_idxs": (FULL, CONVOLUTION),
    "attn_layer_indices": (FULL, MAMBA),
    "hybrid_layer_ids": (HYBRID, MAMBA),
}


def numbered_words(reader: Reader, count: int) -> tuple[str, Sequence[str]] | None:
    """The key that decides and the words of `count` layers; None where no key names layers.

    Raises:
        ConfigError: a number outside the model, or layers that are named twice or not at all.
    """
    part = reader.part("linear_attn_config")
    if part:
        if not part.has("full_attn_layers") and not part.has("kda_layers"):
            raise part.missing("full_attn_layers")
        reader.skip("full_attention_interval")
        return "linear_attn_config", _two_lists(part, count)
    for key, (named, other) in NUMBERS.items():
        numbers = layer_numbers(reader, key, count)
        if numbers is not None:
            return key, [named if layer in numbers else other for layer in range(count)]
    if reader.has("full_attention_layers") and reader.has("sliding_attention_layers"):
        return "full_attention_layers", _counted(reader, count)
    return None


def layer_numbers(reader: Reader, key: str, count: int, first: int = 0) -> set[int] | None:
    """The layers, counted from 0, that a list names counting from `first`."""
    numbers = reader.items(key)
    if numbers is None:
        return None
    found: set[int] = set()
    for position, number in enumerate(numbers):
        if type(number) is not int or not first <= number < count + first or number - first in found:
            known = f"{first}…{count + first - 1}"
            raise reader.unknown_word(key, position, number, known)
        found.add(number - first)
    return found


def _two_lists(part: Reader, count: int) -> Sequence[str]:
    """Kimi-Linear counts from 1, and names both sorts."""
    full = layer_numbers(part, "full_attn_layers", count, first=1) or set()
    linear = layer_numbers(part, "kda_layers", count, first=1) or set()
    if full & linear or len(full | linear) != count:
        path = part.path("kda_layers")
        raise ConfigError("config.length", field=path, value=len(linear), expected=count - len(full))
    return [FULL if layer in full else LINEAR for layer in range(count)]


def _counted(reader: Reader, count: int) -> Sequence[str]:
    """Only counts are published: which layers they are stays open, and is said."""
    full, sliding = reader.whole("full_attention_layers"), reader.whole("sliding_attention_layers")
    if full.value + sliding.value != count:
        raise ConfigError(
            "config.length", field=full.key, value=shown(full.value + sliding.value), expected=count
        )
    reader.note("config.note.order", full.key, value=full.value, count=count)
    return [FULL] * full.value + [SLIDING] * sliding.value
