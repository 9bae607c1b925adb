"""Which layer does what, as one word per layer."""

from collections.abc import Collection, Sequence

from ..errors import ConfigError
from .family import FULL, LINEAR, SLIDING
from .reader import Reader, shown
from .window import window

# Older words, as transformers 5 renames them.
RENAMED = {"attention": "full_attention", "deepseek_sparse_attention": "indexed_attention"}
# Layer i is full when (i + 1) is a multiple of the key's number; the others do this.
PERIODS = {"sliding_window_pattern": SLIDING, "full_attention_interval": LINEAR}


def layer_words(reader: Reader, count: int, lengths: Collection[int]) -> Sequence[str]:
    """The words of `count` layers; a list in the file wins over every other key.

    Raises:
        ConfigError: a list of another length than `lengths`, or a word the family does not know.
    """
    for rule in (_listed, _coded, _periodic, _windowed):
        words = rule(reader, count, lengths)
        if words is not None:
            return words
    reader.provenance["layer_pattern"] = "every layer alike"
    return [reader.family.words[0]] * count


def _listed(reader: Reader, count: int, lengths: Collection[int]) -> Sequence[str] | None:
    listed = reader.items("layer_types", lengths)
    if listed is None:
        return None
    reader.provenance["layer_pattern"] = reader.path("layer_types")
    return [_known_word(reader, position, word) for position, word in enumerate(listed)][:count]


def _known_word(reader: Reader, position: int, word: object) -> str:
    current = RENAMED.get(word, word) if isinstance(word, str) else None
    if current not in reader.family.words:
        path = f"{reader.path('layer_types')}[{position}]"
        raise ConfigError("config.word", field=path, value=shown(word), known=", ".join(reader.family.words))
    return current


def _coded(reader: Reader, count: int, lengths: Collection[int]) -> Sequence[str] | None:
    codes = reader.items("attn_type_list", lengths)
    if codes is None:
        return None
    for position, code in enumerate(codes):
        if type(code) is not int or code != 1:
            path = f"{reader.path('attn_type_list')}[{position}]"
            raise ConfigError("config.word", field=path, value=shown(code), known="1")
    reader.provenance["layer_pattern"] = reader.path("attn_type_list")
    return [FULL] * count


def _periodic(reader: Reader, count: int, _: Collection[int]) -> Sequence[str] | None:
    for key, other in PERIODS.items():
        period = reader.optional(key)
        if period is not None:
            reader.provenance["layer_pattern"] = period.origin
            return [FULL if (layer + 1) % period.value == 0 else other for layer in range(count)]
    return None


def _windowed(reader: Reader, count: int, _: Collection[int]) -> Sequence[str] | None:
    found = window(reader)
    if found is None:
        return None
    reader.provenance["layer_pattern"] = found.origin
    return [SLIDING] * count
