"""The model types that are known, each with only what differs from the general rules."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import ConfigError
from . import family as words
from .family import FULL, LINEAR, MAMBA, RECURRENT, SLIDING, Family
from .plain_text import shown
from .reader import Reader

_ENCODER = Family(pattern=(words.ENCODER,))
_EVERY_OTHER = Family(pattern=(SLIDING, FULL))
_LISTED = Family(needs=(("layer_types", "layers_block_type"),))

FAMILIES: Mapping[str, Family] = {
    "afmoe": Family(pattern=(SLIDING, SLIDING, SLIDING, FULL)),
    "bailing_moe_linear": Family(lightning=True, needs=(("layer_group_size", "layer_types"),)),
    "bamba": Family(needs=(("attn_layer_indices", "layer_types", "layers_block_type"),)),
    "bert": _ENCODER,
    "cohere2": Family(pattern=(SLIDING, SLIDING, SLIDING, FULL)),
    "dbrx": Family(needs=(("attn_config.kv_n_heads",),)),
    "deberta-v2": _ENCODER,
    "deepseek_v4": Family(words={SLIDING: words.WINDOW_ONLY}, needs=(("compress_ratios", "layer_types"),)),
    "distilbert": _ENCODER,
    "electra": _ENCODER,
    "falcon_h1": Family(pattern=(words.HYBRID,), words={FULL: words.HYBRID}),
    "falcon_mamba": Family(pattern=(MAMBA,), ignores={"expand"}, needs=(("intermediate_size",),)),
    "gemma2": _EVERY_OTHER,
    "gemma3_text": Family(defaults={"sliding_window_pattern": 6}),
    "gemma3n_text": Family(pattern=(SLIDING, SLIDING, SLIDING, SLIDING, FULL)),
    "gemma4_text": Family(defaults={"global_head_dim": 512}, needs=(("layer_types",),)),
    "gpt_neo": Family(ignores={"window_size", "attention_types", "attention_layers"}),
    "gpt_oss": _EVERY_OTHER,
    "granite_swa": Family(pattern=(FULL, SLIDING, SLIDING, SLIDING)),
    "granitemoe_swa": Family(pattern=(FULL, SLIDING, SLIDING, SLIDING)),
    "granitemoehybrid": _LISTED,
    "hy_v4": Family(needs=(("indexer_types",),)),
    "kimi_linear": Family(needs=(("linear_attn_config", "layer_types"),)),
    "lfm2": Family(needs=(("layer_types", "full_attn_idxs"),)),
    "lfm2_moe": _LISTED,
    "lfm3": _LISTED,
    "longcat_flash": Family(attentions_per_layer=2, ignores={"num_hidden_layers"}),
    "mamba": Family(pattern=(MAMBA,)),
    "mamba2": Family(pattern=(MAMBA,), means={"mamba_num_heads": "num_heads", "mamba_head_dim": "head_dim"}),
    "mimo_v2": Family(needs=(("hybrid_layer_pattern", "layer_types", "full_attention_layers"),)),
    "mimo_v2_flash": Family(needs=(("hybrid_layer_pattern", "layer_types"),)),
    "minicpm3": Family(note="config.note.minicpm3"),
    "minimax": Family(pattern=(FULL, LINEAR), lightning=True),
    "minimax_m1": Family(needs=(("attn_type_list", "layer_types"),), lightning=True),
    "modernbert": _ENCODER,
    "nemotron_h": Family(needs=(("hybrid_override_pattern", "layers_block_type", "layer_types"),)),
    "olmo3": Family(pattern=(SLIDING, SLIDING, SLIDING, FULL)),
    "olmo_hybrid": Family(pattern=(LINEAR, LINEAR, LINEAR, FULL)),
    "qwen2_5_vl_text": Family(defaults={"use_sliding_window": False}),
    "qwen2_vl_text": Family(defaults={"use_sliding_window": False}),
    "qwen3_next": Family(pattern=(LINEAR, LINEAR, LINEAR, FULL)),
    "qwen3_5_moe_text": Family(needs=(("layer_types", "full_attention_interval"),)),
    "qwen3_5_text": Family(needs=(("layer_types", "full_attention_interval"),)),
    "recurrent_gemma": Family(pattern=(RECURRENT, RECURRENT, SLIDING), words={FULL: SLIDING}),
    "roberta": _ENCODER,
    "rwkv5": Family(pattern=(words.RWKV,)),
    "vaultgemma": _EVERY_OTHER,
    "whisper": Family(encoder_length="max_source_positions"),
    "xlm-roberta": _ENCODER,
    "zamba": Family(attention_widening=2, needs=(("layers_block_type", "layer_types"),)),
    "zamba2": Family(
        attention_widening=2,
        ignores={"kv_channels"},
        needs=(("layers_block_type", "layer_types", "hybrid_layer_ids"),),
    ),
}
# Model types beside those in class_defaults.json whose published files the general rules read.
PLAIN = frozenset(
    (
        "baichuan",
        "bailing_moe",
        "bailing_moe_v2",
        "chatglm",
        "deci",
        "exaone",
        "grok",
        "hunyuan",
        "internlm",
        "internlm2",
        "kimi_k2",
        "llava",
        "mellum",
        "mimo",
        "minicpm",
        "minimax_m3",
        "minimax_m3_vl_text",
        "mistral_large4_text",
        "muse_spark_text",
        "nemotron-nas",
        "openelm",
        "orion",
        "phi3_v",
        "phi4mm",
        "phi3small",
        "qwen",
        "qwen2_5_omni_text",
        "qwen3_vl_moe_text",
        "qwen3_vl_text",
        "step3_text",
        "step3p5",
        "xverse",
    )
)
# Their caches are of a kind, or depend on sizes, that no rule here covers.
REFUSED = frozenset(
    [
        "blt",
        "csm",
        "dia",
        "moshi",
        "musicgen",
        "reformer",
        "rwkv",
        "t5gemma",
        "t5gemma2",
        "xlnet",
        "xlstm",
        "zaya",
    ]
)


@cache
def classes() -> Mapping[str, Mapping[str, Any]]:
    """By model_type: the class's `defaults`, and the model_type of its `text` part (transformers 5.24)."""
    loaded: Mapping[str, Mapping[str, Any]] = json.loads(
        (files(__package__) / "class_defaults.json").read_text(encoding="utf-8")
    )
    return loaded


def known_types() -> frozenset[str]:
    """Every model_type that is read without a warning."""
    return frozenset((*classes(), *FAMILIES, *PLAIN))


def differences() -> dict[str, str]:
    """By model_type what its row says, in words, for the README."""
    return {name: "; ".join(_told(row)) for name, row in FAMILIES.items()}


def _told(row: Family) -> Iterator[str]:
    if row.pattern:
        yield "layers without a list: " + ", ".join(row.pattern)
    yield from (f"`{word}` means {meaning}" for word, meaning in row.words.items())
    yield from (f"`{key}` is spelled `{spelling}`" for key, spelling in row.means.items())
    yield from (f"`{key}` is not used" for key in sorted(row.ignores))
    yield from ("needs " + " or ".join(f"`{key}`" for key in keys) for keys in row.needs)
    yield from (f"`{key}` is {json.dumps(value)} when absent" for key, value in row.defaults.items())
    if row.lightning:
        yield "linear attention is lightning attention"
    if row.encoder_length:
        yield f"`{row.encoder_length}` fixes the encoder's length"
    if row.attentions_per_layer > 1:
        yield f"{row.attentions_per_layer} attentions in a layer"
    if row.attention_widening > 1:
        yield f"attention works on {row.attention_widening} times `hidden_size`"
    if row.note:
        yield "shows a note"


def with_family(root: Reader, text: Reader) -> Reader:
    """The text part, read as its class does. A root without a text part is the text of its model.

    Raises:
        ConfigError: a model_type whose caches are not known, or a key that the family needs is missing.
    """
    outer, inner = root.word("model_type"), text.word("model_type")
    wrapped = classes().get(outer or "", {}).get("text")
    name = inner if inner and text is not root else wrapped or inner or outer or ""
    for reader, given in ((root, outer), (text, name)):
        if given in REFUSED:
            raise ConfigError("config.model_type", field=reader.path("model_type"), value=shown(given))
    known = name in known_types()
    strange = outer if outer and outer not in known_types() and not known else name
    if not known:
        text.note(
            "config.note.unknown_type", text.path("model_type"), value=shown(strange) if strange else "–"
        )
    family = FAMILIES.get(name, Family())
    defaults = {**classes().get(name, {}).get("defaults", {}), **family.defaults}
    reader = text.as_family(shown(name), family, defaults, known=known)
    for keys in family.needs:
        if not any(reader.has(key) for key in keys):
            raise reader.missing(keys[0])
    if family.note:
        reader.note(family.note, reader.path("model_type"))
    return reader
