"""The model types that are known, each with only what differs from the general rules."""

from collections.abc import Mapping

from ..errors import ConfigError
from .family import FULL, INDEXED, LINEAR, MECHANISMS, SLIDING, Family
from .reader import Reader, shown

_LATENT = Family(reads={"kv_lora_rank", "v_head_dim"}, needs=(("kv_lora_rank",),))
_SPARSE_LATENT = Family(
    words=(INDEXED,),
    reads={"kv_lora_rank", "v_head_dim", "index_head_dim", "indexer_types", "index_topk_freq"},
    needs=(("kv_lora_rank",), ("index_head_dim",)),
)

FAMILIES: Mapping[str, Family] = {
    "llama": Family(computed={"num_key_value_heads", "head_dim"}),
    "mistral": Family(
        words=(FULL, SLIDING),
        reads={"sliding_window"},
        computed={"num_key_value_heads", "head_dim"},
        defaults={"num_key_value_heads": 8, "sliding_window": 4096},
    ),
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "kimi_k2": _LATENT,
    "deepseek_v32": _SPARSE_LATENT,
    "glm_moe_dsa": _SPARSE_LATENT,
    "minimax_m2": Family(reads={"attn_type_list"}, defaults={"num_key_value_heads": 8, "head_dim": 128}),
    "gemma3_text": Family(
        words=(FULL, SLIDING),
        reads={"sliding_window", "sliding_window_pattern"},
        defaults={
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "sliding_window": 4096,
            "sliding_window_pattern": 6,
            "max_position_embeddings": 131072,
        },
    ),
    "qwen3_5_moe_text": Family(
        words=(FULL, LINEAR),
        reads={"full_attention_interval", "linear_num_value_heads"},
        needs=(("layer_types", "full_attention_interval"),),
    ),
}

# Models around a language model: the model types of their text part, the first where it names none.
WRAPPERS: Mapping[str, tuple[str, ...]] = {
    "gemma3": ("gemma3_text",),
    "kimi_k25": ("deepseek_v3", "kimi_k2"),
    "qwen3_5_moe": ("qwen3_5_moe_text",),
}


def with_family(root: Reader, text: Reader) -> Reader:
    """The text part, read as its family does.

    Raises:
        ConfigError: a model_type is missing, unknown, or does not fit the one around it; a key describes
            something that the family is not known to do; a key that the family needs is missing.
    """
    outer, name = root.word("model_type"), text.word("model_type")
    allowed = WRAPPERS.get(outer, (outer,)) if outer else tuple(FAMILIES)
    if outer and outer not in WRAPPERS and outer not in FAMILIES:
        raise _unknown(root, outer)
    if text is root and outer in WRAPPERS:
        raise root.missing("text_config")
    if name is None:
        if outer is None:
            raise root.missing("model_type")
        name = allowed[0]
    if name not in FAMILIES or name not in allowed:
        raise _unknown(text, name)
    return _checked(text.as_family(name, FAMILIES[name]))


def _checked(reader: Reader) -> Reader:
    for key in MECHANISMS:
        if key not in reader.family.reads and reader.is_set(key):
            raise reader.unread(key)
    for keys in reader.family.needs:
        if not any(reader.has(key) for key in keys):
            raise reader.missing(keys[0])
    return reader


def _unknown(reader: Reader, name: str) -> ConfigError:
    known = ", ".join(sorted({*FAMILIES, *WRAPPERS}))
    return ConfigError("config.model_type", field=reader.path("model_type"), value=shown(name), known=known)
