"""Models with an encoder: which sizes are the decoder's."""

from collections.abc import Mapping, Sequence

from .found import Found
from .reader import Reader

# General key: what the decoder calls it, the first that is there. The plain names are the encoder's.
DECODER: Mapping[str, tuple[str, ...]] = {
    "num_hidden_layers": ("decoder_layers", "num_decoder_layers", "decoder_num_hidden_layers", "num_layers"),
    "num_attention_heads": ("decoder_attention_heads", "decoder_num_attention_heads", "num_heads"),
    "num_key_value_heads": ("decoder_num_key_value_heads",),
}


def has_encoder(reader: Reader) -> bool:
    """Whether every layer also attends to an encoder."""
    return reader.flag("is_encoder_decoder")


def decoder_view(reader: Reader) -> Reader:
    """The configuration as its decoder sees it.

    Raises:
        ConfigError: the decoder has no number of layers or heads, or the model_type is not known.
    """
    if not has_encoder(reader):
        return reader
    reader.ordinary("is_encoder_decoder")
    found = {key: _own(reader, spellings) for key, spellings in DECODER.items()}
    for key in ("num_hidden_layers", "num_attention_heads"):
        if found[key] is None:
            raise reader.missing(DECODER[key][0])
    return reader.with_sizes({key: size for key, size in found.items() if size})


def _own(reader: Reader, spellings: Sequence[str]) -> Found | None:
    """The first spelling that the file or the class has a number for."""
    given = next((key for key in spellings if reader.has(key) or reader.class_number(key)), None)
    return reader.optional(given) if given else None
