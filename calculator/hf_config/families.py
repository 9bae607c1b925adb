"""The model types that are known, each with only what differs from the general rules."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import ConfigError
from . import family as words
from .family import FULL, LINEAR, MAMBA, RECURRENT, SLIDING, Family
from .model_types import ENCODERS, PLAIN, REFUSED
from .plain_text import shown
from .reader import Reader

_ENCODER = Family(pattern=(words.ENCODER,))
_GEMMA_4 = Family(
    pattern=(SLIDING, SLIDING, SLIDING, SLIDING, SLIDING, FULL),
    last=(FULL,),
    defaults={"global_head_dim": 512},
)
_ALL_FULL = Family(pattern=(FULL,))  # the window of the file is that of layers in a list
_PLAIN_DECODER = Family(
    means={"decoder_layers": "num_hidden_layers", "decoder_attention_heads": "num_attention_heads"}
)
_EVERY_OTHER = Family(pattern=(SLIDING, FULL))
_HY_V4 = Family(words={FULL: words.INDEXED}, needs=(("indexer_types",),))
_INTERVAL = Family(defaults={"full_attention_interval": 4})
_LISTED = Family(needs=(("layer_types", "layers_block_type"),))

FAMILIES: Mapping[str, Family] = {
    **dict.fromkeys(sorted(ENCODERS), _ENCODER),
    "afmoe": Family(pattern=(SLIDING, SLIDING, SLIDING, FULL)),
    "bailing_moe_linear": Family(lightning=True, needs=(("layer_group_size", "layer_types"),)),
    "bamba": Family(needs=(("attn_layer_indices", "layer_types", "layers_block_type"),)),
    "beam": Family(pattern=(SLIDING, SLIDING, SLIDING, SLIDING, SLIDING, FULL), last=(FULL,)),
    "cohere2": Family(pattern=(SLIDING, SLIDING, SLIDING, FULL)),
    "cohere_asr": _PLAIN_DECODER,
    "cohere_compass_text": _ALL_FULL,
    "cpmant": Family(means={"head_dim": "dim_head"}),
    "cwm": Family(pattern=(FULL, SLIDING, SLIDING, SLIDING)),
    "dbrx": Family(needs=(("attn_config.kv_n_heads",),)),
    "deepseek_v4": Family(words={SLIDING: words.WINDOW_ONLY}, needs=(("compress_ratios", "layer_types"),)),
    "diffusion_gemma_text": replace(_GEMMA_4, defaults={**_GEMMA_4.defaults, "attention_k_eq_v": True}),
    "dots3_note_text": Family(
        pattern=(SLIDING, FULL, SLIDING, SLIDING),
        first=(FULL, FULL),
        words={FULL: words.INDEXED},
        defaults={"swa_kv_lora_rank": 1024, "swa_qk_rope_head_dim": 64, "sliding_window_size": 512},
    ),
    "falcon_h1": Family(pattern=(words.HYBRID,), words={FULL: words.HYBRID}),
    "falcon_mamba": Family(pattern=(MAMBA,), ignores={"expand"}, needs=(("intermediate_size",),)),
    "flint": Family(pattern=(SLIDING, FULL, SLIDING, SLIDING), first=(FULL, FULL), last=(FULL,)),
    "gemma2": _EVERY_OTHER,
    "gemma3_text": Family(defaults={"sliding_window_pattern": 6}),
    "gemma3n_text": Family(pattern=(SLIDING, SLIDING, SLIDING, SLIDING, FULL)),
    "gemma4_text": _GEMMA_4,
    "gemma4_unified_text": _GEMMA_4,
    "gpt_neo": Family(ignores={"window_size", "attention_types", "attention_layers"}),
    "gpt_oss": _EVERY_OTHER,
    "granite_swa": Family(pattern=(FULL, SLIDING, SLIDING, SLIDING)),
    "granitemoe_swa": Family(pattern=(FULL, SLIDING, SLIDING, SLIDING)),
    "granitemoehybrid": _LISTED,
    "hy_v4": _HY_V4,
    "hy_v4_vl_text": _HY_V4,
    "kimi_linear": Family(needs=(("linear_attn_config", "layer_types"),)),
    "kolibri1": Family(pattern=(SLIDING, SLIDING, SLIDING, SLIDING, FULL)),
    "laguna": _ALL_FULL,
    "lara_mini": Family(pattern=(LINEAR, SLIDING, LINEAR, FULL, SLIDING)),
    "lfm2": Family(needs=(("layer_types", "full_attn_idxs"),)),
    "lfm2_moe": _LISTED,
    "lfm3": Family(pattern=(SLIDING, words.CONVOLUTION, FULL, words.CONVOLUTION), first=(words.CONVOLUTION,)),
    "longcat_flash": Family(attentions_per_layer=2, ignores={"num_hidden_layers"}),
    "mamba": Family(pattern=(MAMBA,)),
    "mamba2": Family(pattern=(MAMBA,), means={"mamba_num_heads": "num_heads", "mamba_head_dim": "head_dim"}),
    "mellum": _ALL_FULL,
    "mimo_v2": Family(needs=(("hybrid_layer_pattern", "layer_types", "full_attention_layers"),)),
    "mimo_v2_flash": Family(needs=(("hybrid_layer_pattern", "layer_types"),)),
    "minicpm3": Family(note="config.note.minicpm3"),
    "minimax": Family(pattern=(FULL, LINEAR), lightning=True),
    "minimax_m1": Family(needs=(("attn_type_list", "layer_types"),), lightning=True),
    "minimax_text_01": Family(needs=(("attn_type_list", "layer_types"),), lightning=True),
    "moonshine_streaming": _PLAIN_DECODER,
    "muse_glimmer_text": _LISTED,
    "muse_spark_text": _LISTED,
    "nemotron_h": Family(needs=(("hybrid_override_pattern", "layers_block_type", "layer_types"),)),
    "olmo3": Family(pattern=(SLIDING, SLIDING, SLIDING, FULL)),
    "olmo_hybrid": Family(pattern=(LINEAR, LINEAR, LINEAR, FULL)),
    "paligemma": Family(ignores={"use_bidirectional_attention"}),  # of the prompt, which is kept as any other
    "qwen3_5_moe_text": _INTERVAL,
    "qwen3_5_text": _INTERVAL,
    "qwen3_next": Family(pattern=(LINEAR, LINEAR, LINEAR, FULL)),
    "recurrent_gemma": Family(pattern=(RECURRENT, RECURRENT, SLIDING), words={FULL: SLIDING}),
    "rwkv5": Family(pattern=(words.RWKV,)),
    "unlimited_ocr_text": Family(pattern=(words.REFERENCE,)),
    "vaultgemma": _EVERY_OTHER,
    "whisper": Family(encoder_length="max_source_positions"),
    "xglm": Family(means={"num_attention_heads": "attention_heads"}),
    "zamba": Family(attention_widening=2, needs=(("layers_block_type", "layer_types"),)),
    "zamba2": Family(
        attention_widening=2,
        ignores={"kv_channels"},
        needs=(("layers_block_type", "layer_types", "hybrid_layer_ids"),),
    ),
}


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
        ends = [("first", row.first), ("last", row.last)]
        but = "".join(f", {end}: " + ", ".join(layers) for end, layers in ends if layers)
        yield "layers without a list: " + ", ".join(row.pattern) + but
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
    if text is not root:
        family = replace(family, ignores=family.ignores | FAMILIES.get(outer or "", Family()).ignores)
    defaults = {**classes().get(name, {}).get("defaults", {}), **family.defaults}
    reader = text.as_family(shown(name), family, defaults, known=known)
    for keys in family.needs:
        if not any(reader.has(key) for key in keys):
            raise reader.missing(keys[0])
    if family.note:
        reader.note(family.note, reader.path("model_type"))
    return reader
