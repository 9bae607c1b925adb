"""Keys that would change what is cached: one that is set, and that no rule has looked at, is refused."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ConfigError
from .heads import HIDDEN, KV_HEADS, QUERY_HEADS, WIDTH
from .plain_text import shown
from .reader import Reader

MECHANISMS = frozenset(
    (
        "add_cross_attention",
        "attention_chunk_size",
        "attention_other_setting",
        "attn_config",
        "attn_layer_indices",
        "attn_layer_period",
        "attn_type_list",
        "block_configs",
        "block_types",
        "compress_ratios",
        "conv_L_cache",
        "cross_attention_layers",
        "full_attention_interval",
        "full_attn_idxs",
        "global_attn_every_n_layers",
        "hybrid_layer_ids",
        "hybrid_layer_pattern",
        "hybrid_override_pattern",
        "index_head_dim",
        "index_kpool",
        "index_topk_freq",
        "index_topk_pattern",
        "indexer_compress_ratio",
        "indexer_types",
        "kv_lora_rank",
        "kv_source_layers",
        "layer_group_size",
        "layers_block_type",
        "linear_attn_config",
        "linear_num_heads",
        "linear_num_value_heads",
        "lru_width",
        "mamba_num_heads",
        "mamba_n_heads",
        "max_window_layers",
        "multi_query",
        "multi_query_attention",
        "num_attention_groups",
        "num_key_value_heads_per_layer",
        "num_kv_shared_layers",
        "per_layer_config",
        "sliding_window",
        "sliding_window_pattern",
        "sparse_attention_config",
        "sparse_config",
        "swa_head_dim",
        "swa_num_key_value_heads",
        "use_cla",
        "v_head_dim",
    )
)
# Keys that are in `class_defaults.json` for every class that has them: another class does not read them.
CLASS_KEYS = (
    "attn_layer_period",
    "cross_attention_layers",
    "index_head_dim",
    "kv_lora_rank",
    "layer_group_size",
    "linear_num_value_heads",
    "num_kv_shared_layers",
)
# Words in a key of a model that we do not know which speak of layers, windows, latents, states or sharing.
SUSPECT = re.compile(
    r"""
    window|latent|lora_(rank|dim)|(^|_)kv(_|$)|key_value|head_dim|(^|_)head_size|[vk]_heads|(key|value)_dim
    |(attn|attention)_(types?|layer_(types?|idx|ids?|ind|pattern|period|offset)|layers?$|chunk|interval|pattern)
    |(chunk|local|global|cross|shared|sparse|hybrid|linear)_(attn|attention)|full_attn|(^|_)swa|cross_layer|nsa_|moba
    |layer_?types?|layers?_(block|pattern)|block_types|hybrid|compress|indexer|(^|_)index_|share_(k|cache)
    |recurren|(^|_)loops?(_|$)|encoder_hidden|(^|_)ssm|mamba|rwkv|(^|_)gla(_|$)|delta_?net|linear_(num|key|value)|short_conv|d_conv|d_state
    |low_rank_dim|expand_(k|v|ratio)|feature_map|attn_mode|retention|hyena|(^|_)ttt(_|$)
    |conv(1d)?_(kernel|size|width|dim|l_)|state_(size|dim)|sink_tokens|mem(ory)?_(tokens|size|len)|cache_(size|len|dim)
    """,
    re.VERBOSE,
)
OTHER_PARTS = re.compile("(audio|expert|ffn|image|mlp|mm|moe|mtp|router|video|vision)_")
HARMLESS = frozenset(
    (
        "chunk_size_feed_forward",
        "full_attn_mod",
        "cross_attention_hidden_size",
        "index_n_heads",
        "index_topk",
        "kv_cache_dtype",
        "linear_attention_bias",
        "max_latent_tokens",
        "qk_head_dim",
        "qk_nope_head_dim",
        "q_lora_rank",
        "o_lora_rank",
        "rope_head_dim",
    )
)
# What any model with attention has, as far as it is needed and as far as it is read beside that.
NEEDED = frozenset((*QUERY_HEADS, *HIDDEN))
ORDINARY = frozenset((*KV_HEADS, *WIDTH))


def check_class(reader: Reader) -> None:
    """Refuse a mechanism that the class of this model_type does not have.

    Raises:
        ConfigError: the file has such a key.
    """
    for key in CLASS_KEYS:
        if key in reader.switched_on() and not reader.class_has(key):
            raise reader.unread(key)


def check_all_read(root: Reader, text: Reader) -> None:
    """Refuse what the rules have left out of the plan.

    Raises:
        ConfigError: a key that changes the cache was not looked at.
    """
    if root.flag("is_encoder_decoder") and not text.flag("is_encoder_decoder"):
        raise root.unread("is_encoder_decoder")
    if text.says("use_dsa", False):
        raise text.unread("use_dsa")
    for key in text.unseen():
        if key in MECHANISMS or (not text.known and _is_suspect(key)):
            raise _unknown(text, key)


@contextmanager
def other_mechanism_first(text: Reader) -> Iterator[None]:
    """Of an unknown model that lacks what attention needs name the key that speaks of another cache, if any.

    Raises:
        ConfigError: that key, or what was refused in the first place.
    """
    try:
        yield
    except ConfigError as error:
        if error.key == "config.missing" and error.field.split(".")[-1] in NEEDED and not text.known:
            for key in text.unseen():
                if key not in ORDINARY and _is_suspect(key):
                    raise _unknown(text, key) from error
        raise


def _unknown(text: Reader, key: str) -> ConfigError:
    return ConfigError(
        "config.unread",
        field=shown(text.path(key)),
        value=text.shown_value(key),
        model_type=shown(text.name) if text.name else "–",
    )


def _is_suspect(key: str) -> bool:
    """Whether a key of an unknown model may speak of its caches."""
    return key not in HARMLESS and not OTHER_PARTS.match(key) and SUSPECT.search(key.lower()) is not None
