"""KV heads and their widths."""

from ..caches import FullAttention
from .reader import Found, Reader


def head_sizes(reader: Reader) -> dict[str, Found]:
    """The fields that every cache of keys and values needs.

    Raises:
        ConfigError: a size is missing, or the head counts do not fit each other.
    """
    heads = reader.whole("num_attention_heads")
    kv_heads = reader.computable("num_key_value_heads")
    if kv_heads is None:
        kv_heads = Found(heads.value, heads.key, f"derived: {heads.key}")
        reader.note("config.note.heads", reader.path("num_key_value_heads"), value=heads.value)
    heads.divided_by(kv_heads)  # every KV head serves the same number of query heads
    width = reader.computable("head_dim") or reader.whole("hidden_size").divided_by(heads)
    return {"num_kv_heads": kv_heads, "head_size": width, "head_size_v": width}


def full_attention(reader: Reader) -> FullAttention:
    """Keys and values of every token."""
    return reader.cache(FullAttention, **head_sizes(reader))
