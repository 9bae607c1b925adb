"""The steps from a configuration to a plan."""

from collections.abc import Callable, Mapping, Sequence

from ..errors import ConfigError
from ..model import Layer, ModelPlan
from . import family as words
from .context import context_hint
from .decoder import decoder_view, has_encoder
from .document import Source, parse
from .extras import (
    agreed,
    asks_for_window_pool,
    declared_kv_format,
    declared_state_dtype,
    draft_counts,
    draft_words,
    named_architecture,
)
from .families import with_family
from .found import Found
from .heads import cross_attention, encoder_attention, full_attention
from .latent import (
    compressed_latents,
    index_key,
    is_latent,
    latent,
    sliding_latent,
    sparse_index_key,
    window_latent,
)
from .layer_pattern import layer_words, listed_count
from .mechanisms import check_all_read, check_class, other_mechanism_first
from .per_layer import EMPTY, layer_sizes
from .reader import Reader
from .sharing import refined
from .state import lightning, linear_attention, mamba, rg_lru, rwkv, short_convolution
from .text_part import text_part
from .window import chunked_attention, reference_attention, sliding_attention

MOST_LAYERS = 1024
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers")


def read_config(source: Source, *, draft_layers: bool = False) -> ModelPlan:
    """The caches of the model that a config.json describes: its text, bytes or path, or the object in it.

    `draft_layers` counts those of multi-token prediction too, behind the model's own.

    Raises:
        ConfigError: anything that is not fully understood; it names the key, the value and what to do.
    """
    root = Reader(parse(source))
    text = text_part(root)
    reader = decoder_view(with_family(root, text))
    check_class(reader)
    with other_mechanism_first(reader):
        layers = _layer_count(reader)
        count = layers.value
        drafts = draft_counts(reader, counted=draft_layers)
        most = max((found.value for found in drafts), default=0)
        found = refined(reader, layer_words(reader, count, most), count, most)
        sizes = layer_sizes(reader, count)
        extra = draft_words(reader, found, count, agreed(drafts)) if draft_layers else ()
        built = _layers(reader, [*found[:count], *extra], sizes)
    hybrid_swa = asks_for_window_pool(reader)
    check_all_read(root, reader)
    parts = tuple(dict.fromkeys((root, text)))
    context = context_hint(reader)
    counted = layers.plus(drafts[0]) if draft_layers and drafts else layers
    reader.record.origins["layers"] = {"": [counted.origin]}
    if context:
        reader.record.origins["context_hint"] = {"": [context.origin]}
    return ModelPlan(
        layers=built,
        architecture=next(filter(None, map(named_architecture, parts)), None),
        hybrid_swa=hybrid_swa,
        context_hint=context.value if context else None,
        kv_format=declared_kv_format(*parts),
        state_dtype=declared_state_dtype(reader),
        provenance=reader.record.provenance(),
        warnings=tuple((key, values) for (key, _), values in reader.record.notes.items()),
    )


def _layer_count(reader: Reader) -> Found:
    """Layers, or attentions where a layer has several.

    Raises:
        ConfigError: the file gives neither a number nor a list of layers, or too many.
    """
    listed = None if any(reader.has(key) for key in LAYERS) else listed_count(reader)
    if listed and not any(reader.class_number(key) for key in LAYERS):
        found = Found(listed, reader.path("layers_block_type"), "length of the list of layers")
    else:
        found = reader.needed(*LAYERS)
    several = reader.family.attentions_per_layer
    found = found.times(several) if several > 1 else found
    if found.value > MOST_LAYERS:
        raise ConfigError("config.range", field=found.key, value=found.value, lowest=1, highest=MOST_LAYERS)
    return found


def _layers(reader: Reader, sorts: Sequence[str], sizes: Sequence[Mapping[str, Found]]) -> tuple[Layer, ...]:
    """Each layer as its word and its own sizes say; equal ones are built once."""
    built: dict[tuple[object, ...], Layer] = {}
    layers = []
    for index, sort in enumerate(sorts):
        own = sizes[index] if index < len(sizes) else {}
        key = (sort, *((name, found.value) for name, found in own.items()))
        if key not in built:
            built[key] = () if EMPTY in own else _layer(reader.with_sizes(own) if own else reader, sort)
        layers.append(built[key])
    return tuple(layers)


def _layer(reader: Reader, sort: str) -> Layer:
    layer = BUILDERS[sort](reader)
    if layer and has_encoder(reader):
        return (*layer, cross_attention(reader))
    return layer


def _full(reader: Reader) -> Layer:
    return (latent(reader),) if is_latent(reader) else (full_attention(reader),)


def _sliding(reader: Reader) -> Layer:
    return (sliding_latent(reader),) if is_latent(reader) else (sliding_attention(reader),)


def _indexed(reader: Reader) -> Layer:
    if not is_latent(reader):
        raise reader.unread("layer_types")  # an index beside keys and values has a word of its own
    return latent(reader), index_key(reader)


BUILDERS: Mapping[str, Callable[[Reader], Layer]] = {
    words.FULL: _full,
    words.SLIDING: _sliding,
    words.CHUNKED: lambda reader: (chunked_attention(reader),),
    words.REFERENCE: lambda reader: (reference_attention(reader),),
    words.LINEAR: lambda reader: (linear_attention(reader),),
    words.LIGHTNING: lambda reader: (lightning(reader),),
    words.INDEXED: _indexed,
    words.SPARSE: lambda reader: (full_attention(reader), sparse_index_key(reader)),
    words.CROSS: lambda reader: (cross_attention(reader),),
    words.HYBRID: lambda reader: (full_attention(reader), mamba(reader)),
    words.MAMBA: lambda reader: (mamba(reader),),
    words.CONVOLUTION: lambda reader: (short_convolution(reader),),
    words.RECURRENT: lambda reader: (rg_lru(reader),),
    words.RWKV: lambda reader: (rwkv(reader),),
    words.WINDOW_ONLY: lambda reader: (window_latent(reader),),
    words.COMPRESSED: lambda reader: (window_latent(reader), *compressed_latents(reader, 4)),
    words.HEAVILY_COMPRESSED: lambda reader: (window_latent(reader), *compressed_latents(reader, 128)),
    words.ENCODER: lambda reader: (encoder_attention(reader),),
    words.NOTHING: lambda _: (),
    words.SHARED: lambda _: (),
}
