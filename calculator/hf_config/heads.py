"""KV heads and their widths, in every spelling, of all layers or of one kind of layer."""

from ..caches import CrossAttention, EncoderOnlyAttention, FullAttention
from .found import Found
from .reader import Reader

QUERY_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "num_attention_groups")
WIDTH = ("head_dim", "attention_head_dim", "kv_channels", "d_kv")
HIDDEN = ("hidden_size", "n_embd", "d_model", "n_embed", "model_dim")

Sizes = dict[str, Found]


def head_sizes(reader: Reader) -> Sizes:
    """The fields of a cache of keys and values, the same in every layer.

    Raises:
        ConfigError: a size is missing, or the head counts do not fit each other.
    """
    width = _width(reader)
    return _sizes(kv_heads(reader), width, _value_width(reader, "v_head_dim") or width)


def full_sizes(reader: Reader) -> Sizes:
    """Those of full layers, which may have their own beside sliding ones (Gemma 4)."""
    sizes = head_sizes(reader)
    width = None if reader.has("per_layer_config") else reader.optional("global_head_dim")
    if width and not reader.layer_size("head_dim"):
        sizes |= {"head_size": width, "head_size_v": width}
    heads = reader.optional("num_global_key_value_heads")
    # Without a shared projection the key is left over from the class: the heads are those of sliding layers.
    if heads and reader.flag("attention_k_eq_v") and not reader.layer_size("num_key_value_heads"):
        sizes["num_kv_heads"] = heads
    return sizes


def sliding_sizes(reader: Reader) -> Sizes:
    """Those of sliding layers, which may have their own beside full ones (MiMo-V2, Step-3.5).

    Raises:
        ConfigError: keys have a width of their own but values do not say theirs.
    """
    other = reader.part("attention_other_setting")
    if other:
        reader.ordinary("attention_other_setting")
        width = other.needed(*WIDTH)
        return _sizes(other.needed(*KV_HEADS), width, width)
    sizes = head_sizes(reader)
    heads, own_width = reader.optional("swa_num_key_value_heads"), reader.optional("swa_head_dim")
    value_width = _value_width(reader, "swa_v_head_dim")
    if heads:
        sizes["num_kv_heads"] = heads
    if own_width:
        if value_width is None and reader.has("v_head_dim"):
            raise reader.missing("swa_v_head_dim")
        sizes |= {"head_size": own_width, "head_size_v": value_width or own_width}
    elif value_width:
        sizes["head_size_v"] = value_width
    return sizes


def full_attention(reader: Reader) -> FullAttention:
    """Keys and values of every token."""
    return reader.cache(FullAttention, **full_sizes(reader))


def encoder_attention(reader: Reader) -> EncoderOnlyAttention:
    """Keys and values that no later step reads."""
    return reader.cache(EncoderOnlyAttention, **head_sizes(reader))


def cross_attention(reader: Reader) -> CrossAttention:
    """Keys and values of the encoder's tokens, as many as the file fixes, or an open number of them."""
    key = reader.family.encoder_length
    tokens = reader.whole(key) if key else Found(0, "", "length of the encoder's input")
    if not key:
        reader.note("config.note.cross", reader.path("is_encoder_decoder"))
    return reader.cache(CrossAttention, num_encoder_tokens=tokens, **head_sizes(reader))


def kv_heads(reader: Reader) -> Found:
    """The KV heads; where no spelling gives them, one for each attention head.

    Raises:
        ConfigError: a count is missing, or two contradict each other.
    """
    found = _shared_heads(reader) or reader.spelled(*KV_HEADS)
    if found is None:
        heads = reader.needed(*QUERY_HEADS)
        found = Found(heads.value, heads.key, f"derived: {heads.key}")
        reader.note("config.note.heads", reader.path("num_key_value_heads"), value=heads.value)
    elif any(reader.has(key) for key in QUERY_HEADS) and not reader.layer_size(KV_HEADS[0]):
        reader.needed(*QUERY_HEADS).divided_by(found)  # every KV head serves the same number of query heads
    return found


def _shared_heads(reader: Reader) -> Found | None:
    """KV heads of the files that say in a word of their own that heads are shared."""
    if reader.layer_size(KV_HEADS[0]):
        return None
    if reader.flag("multi_query_attention"):
        return reader.whole("multi_query_group_num")
    if reader.flag("multi_query") and not reader.flag("new_decoder_architecture"):
        reader.skip("num_kv_heads")  # Falcon's file gives the attention heads there
        return Found(1, reader.path("multi_query"), reader.path("multi_query"))
    attention = reader.part("attn_config")
    if attention is None:
        return None
    if (window := attention.optional("sliding_window_size", lowest=-1)) and window.value > 0:
        raise attention.unread("sliding_window_size")
    if attention.word("attn_type") == "multiquery_attention":
        return Found(1, attention.path("attn_type"), attention.path("attn_type"))
    return attention.optional("kv_n_heads")


def _width(reader: Reader) -> Found:
    given = reader.spelled(*WIDTH)
    if given:
        return given
    if reader.is_null(WIDTH[0]) and reader.class_number(WIDTH[0]):
        raise reader.missing(WIDTH[0])
    hidden = reader.needed(*HIDDEN)
    widening = reader.family.attention_widening
    heads = reader.needed(*QUERY_HEADS)
    return (hidden if widening == 1 else hidden.times(widening)).divided_by(heads)


def _value_width(reader: Reader, key: str) -> Found | None:
    """A width of values only; 0 says that they have none of their own."""
    found = reader.optional(key, lowest=0)
    return found if found and found.value else None


def _sizes(heads: Found, width: Found, value_width: Found) -> Sizes:
    return {"num_kv_heads": heads, "head_size": width, "head_size_v": value_width}
