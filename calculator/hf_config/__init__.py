"""config.json -> ModelPlan. General rules first, a family states only what differs.

What is not fully understood is refused.
"""

from collections.abc import Callable, Mapping

from ..model import Layer, ModelPlan
from .document import parse
from .extras import draft_layers, note_kv_format
from .families import with_family
from .family import FULL, INDEXED, LINEAR, SLIDING
from .heads import full_attention
from .latent import index_key, index_owners, latent
from .layer_pattern import layer_words
from .reader import Reader
from .state import gated_delta_net
from .text_part import text_part
from .window import sliding_attention

__all__ = ["read_config"]

MOST_LAYERS = 1024


def read_config(source: Mapping[str, object] | str) -> ModelPlan:
    """The caches of the model that a config.json describes, given as text or as the object in it.

    Raises:
        ConfigError: anything that is not fully understood; it names the key, the value and what to do.
    """
    root = Reader(parse(source))
    text = text_part(root)
    reader = with_family(root, text)
    layers = reader.whole("num_hidden_layers", highest=MOST_LAYERS)
    context = reader.optional("max_position_embeddings")
    reader.provenance["layers"] = layers.origin
    if context:
        reader.provenance["context_hint"] = context.origin

    # The tail of a longer list belongs to the draft layers.
    lengths = {layers.value, layers.value + draft_layers(reader)}
    words = list(layer_words(reader, layers.value, lengths))
    if INDEXED in words:
        owners = index_owners(reader, layers.value, lengths)
        words = [word if owns else FULL for word, owns in zip(words, owners, strict=True)]
    built = {word: BUILDERS[word](reader) for word in dict.fromkeys(words)}
    note_kv_format(reader, *dict.fromkeys((root, text)))
    return ModelPlan(
        layers=tuple(built[word] for word in words),
        context_hint=context.value if context else None,
        provenance=dict(reader.provenance),
        warnings=reader.notes,
    )


def _full(reader: Reader) -> Layer:
    return (latent(reader),) if reader.has("kv_lora_rank") else (full_attention(reader),)


BUILDERS: Mapping[str, Callable[[Reader], Layer]] = {
    FULL: _full,
    SLIDING: lambda reader: (sliding_attention(reader),),
    LINEAR: lambda reader: (gated_delta_net(reader),),
    INDEXED: lambda reader: (latent(reader), index_key(reader)),
}
