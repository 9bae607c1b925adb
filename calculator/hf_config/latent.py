"""Latents, and the layers that keep an index key beside theirs."""

from collections.abc import Collection

from ..caches import MLA, IndexKey
from ..errors import ConfigError
from .reader import Reader, shown


def latent(reader: Reader) -> MLA:
    """One latent with its rope key per token; head counts and head_dim in the same file do not size it.

    Raises:
        ConfigError: a size is missing, or `use_mla` is false: the file then means expanded heads.
    """
    if not reader.flag("use_mla", absent=True):
        raise reader.unread("use_mla")
    return reader.cache(
        MLA,
        kv_lora_rank=reader.whole("kv_lora_rank"),
        qk_rope_head_dim=reader.whole("qk_rope_head_dim"),
    )


def index_key(reader: Reader) -> IndexKey:
    """One key per token; `index_n_heads` does not multiply it."""
    return reader.cache(IndexKey, index_head_dim=reader.whole("index_head_dim"))


def index_owners(reader: Reader, count: int, lengths: Collection[int]) -> list[bool]:
    """For each of `count` layers whether it stores index keys; the others reuse an earlier layer's selection.

    Source: `indexer_types`, or else `index_topk_freq` with `index_skip_topk_offset` as vLLM 0.33 and
    transformers 5.24 read them.

    Raises:
        ConfigError: a word that is neither "full" nor "shared", or a first layer with nothing to reuse.
    """
    kinds = reader.items("indexer_types", lengths)
    if kinds is None:
        return _by_period(reader, count)
    for position, kind in enumerate(kinds):
        if kind not in ("full", "shared") or (position == 0 and kind == "shared"):
            path = f"{reader.path('indexer_types')}[{position}]"
            known = "full" if position == 0 else "full, shared"
            raise ConfigError("config.word", field=path, value=shown(kind), known=known)
    return [kind == "full" for kind in kinds[:count]]


def _by_period(reader: Reader, count: int) -> list[bool]:
    period = reader.optional("index_topk_freq")
    if period is None:
        return [True] * count
    offset = reader.whole("index_skip_topk_offset").value if period.value > 1 else 1
    return [max(layer - offset + 1, 0) % period.value == 0 for layer in range(count)]
