"""Layers that read the cache of an earlier one, or hold that of another input instead of their own."""

from collections.abc import Sequence

from ..errors import ConfigError
from .family import CROSS, FULL, INDEXED, SHARED, SPARSE
from .latent import index_owners, is_latent, sparse_layers
from .numbered import layer_numbers
from .reader import Reader


def refined(reader: Reader, words: Sequence[str], count: int, drafts: int) -> list[str]:
    """The words of all layers once indexes, cross attention and sharing are known.

    Raises:
        ConfigError: a list that does not fit the layers.
    """
    found = _indexed(reader, list(words), count, drafts)
    sparse = sparse_layers(reader, count, drafts)
    if sparse is not None:
        reader.refines("sparse_attention_config")
        found = [SPARSE if on and word == FULL else word for word, on in _aligned(found, sparse)]
    crossed = layer_numbers(reader, "cross_attention_layers", count)
    if crossed:
        reader.ordinary("cross_attention_layers")
        reader.refines("cross_attention_layers")
        found = [CROSS if layer in crossed else word for layer, word in enumerate(found)]
    for rule in (_last_layers_share, _share_by_factor, _share_by_source):
        found[:count] = rule(reader, found[:count])
    return found


def _aligned(words: Sequence[str], flags: Sequence[bool]) -> list[tuple[str, bool]]:
    """Words with flags; draft layers beyond the list of flags have none."""
    padded = [*flags, *[False] * len(words)]
    return list(zip(words, padded, strict=False))


def _indexed(reader: Reader, words: list[str], count: int, drafts: int) -> list[str]:
    """Without a list of words every full latent of an index is indexed; shared selections keep no key."""
    listed = reader.has("layer_types") or reader.has("layers_block_type")
    if not listed and FULL in words and is_latent(reader) and reader.optional("index_head_dim"):
        words = [INDEXED if word == FULL else word for word in words]
    if INDEXED not in words:
        return words
    owners = index_owners(reader, count, drafts)
    return [FULL if word == INDEXED and not owns else word for word, owns in _aligned(words, owners)]


def _last_layers_share(reader: Reader, words: list[str]) -> list[str]:
    """The last n layers read the cache of the last earlier layer of the same sort (Gemma 3n, Gemma 4)."""
    shared = reader.optional("num_kv_shared_layers", lowest=0, highest=len(words) - 1)
    if shared is None or not shared.value:
        return words
    reader.ordinary("num_kv_shared_layers")
    reader.refines("num_kv_shared_layers")
    own, last = words[: -shared.value], words[-shared.value :]
    for word in last:
        if word not in own:
            raise ConfigError(
                "config.contradiction", field=shared.key, value=shared.value, other=word, second=0
            )
    return own + [SHARED] * shared.value


def _share_by_factor(reader: Reader, words: list[str]) -> list[str]:
    """Cross-layer attention: the first of every `cla_share_factor` layers stores (Hunyuan-Large)."""
    if not reader.flag("use_cla"):
        return words
    reader.ordinary("use_cla")
    reader.refines("cla_share_factor")
    factor = reader.whole("cla_share_factor")
    return [SHARED if layer % factor.value else word for layer, word in enumerate(words)]


def _share_by_source(reader: Reader, words: list[str]) -> list[str]:
    """A list of the layer that each one reads: its own number or null, or an earlier layer that stores."""
    sources = reader.per_layer("kv_source_layers", len(words))
    if sources is None:
        return words
    reader.ordinary("kv_source_layers")
    reader.refines("kv_source_layers")
    found = list(words)
    for layer, source in enumerate(sources[: len(words)]):
        if source is None or (type(source) is int and source == layer):
            continue
        if type(source) is not int or not 0 <= source < layer or found[source] == SHARED:
            raise reader.unknown_word("kv_source_layers", layer, source, f"null, 0…{layer}")
        found[layer] = SHARED
    return found
