"""Which layer does what, as one word per layer: lists and patterns of the file, in order of precedence."""

from collections.abc import Callable, Collection, Mapping, Sequence

from . import family as words
from .family import FULL, LINEAR, MAMBA, NOTHING, SLIDING
from .latent import compressed_words
from .numbered import numbered_words
from .periodic import periodic_words, windowed_words
from .reader import Reader

# The words of published files and of transformers 5; a family may mean something else by one of them.
WORDS: Mapping[str, str] = {
    "attention": FULL,
    "deepseek_sparse_attention": words.INDEXED,
    "mamba": MAMBA,
    "mamba2": MAMBA,
    "minimax_m3_sparse": words.SPARSE,
    "moe": NOTHING,
    "mlp": NOTHING,
    **{
        word: word
        for word in (
            FULL,
            SLIDING,
            LINEAR,
            words.CHUNKED,
            words.REFERENCE,
            words.INDEXED,
            words.COMPRESSED,
            words.HEAVILY_COMPRESSED,
            words.CONVOLUTION,
            words.HYBRID,
            words.RECURRENT,
        )
    },
}
LETTERS: Mapping[str, str] = {"M": MAMBA, "*": FULL, "-": NOTHING, "E": NOTHING}
LISTS = ("layer_types", "layers_block_type")
CODES: Mapping[str, Mapping[int, str]] = {
    "hybrid_layer_pattern": {0: FULL, 1: SLIDING},
    "attn_type_list": {0: words.LIGHTNING, 1: FULL},
}
# A list of words wins over all of these.
SUPERSEDED = (
    *LISTS,
    "attention_chunk_size",
    "attn_layer_indices",
    "attn_layer_period",
    "block_types",
    "_block_types",
    "compress_ratios",
    "full_attention_interval",
    "full_attn_idxs",
    "global_attn_every_n_layers",
    "hybrid_layer_ids",
    "hybrid_override_pattern",
    "layer_group_size",
    "max_window_layers",
    "sliding_window",
    "sliding_window_pattern",
    "_sliding_window_pattern",
)
# Sizes of kinds of layers that a list of a known family's words may leave out.
OF_SOME_LAYERS = (
    "conv_L_cache",
    "linear_num_heads",
    "linear_num_value_heads",
    "lru_width",
    "mamba_n_heads",
    "mamba_num_heads",
)

Rule = Callable[[Reader, int, int], Sequence[str] | None]  # reader, layers, draft layers -> words


def layer_words(reader: Reader, count: int, drafts: int) -> Sequence[str]:
    """The words of `count` layers, and of those draft layers that the file lists behind them.

    Raises:
        ConfigError: a list of another length, or a word, letter or number that is not known.
    """
    ahead = _looks_ahead(reader)
    if ahead:
        reader.skip(*SUPERSEDED)
        return _told(reader, ahead, [words.ENCODER] * count)
    for rule in RULES:
        found = rule(reader, count, drafts)
        if found is not None:
            return [reader.family.words.get(word, word) for word in found]
    named = f"class default of {reader.name}" if reader.family.pattern else "every layer alike"
    reader.record.origins["layer_pattern"] = {"": [named]}
    return _of_class(reader, count)


def _looks_ahead(reader: Reader) -> str | None:
    """The key that says that every token sees the whole text, as in embedding models: nothing is kept.

    Source: vLLM 0.33 `is_causal` in `models/qwen2.py`, `llama.py` and `gemma3.py`.

    Raises:
        ConfigError: the same of a part of a larger model, where it may mean the prompt alone, or of a
            model_type that is not known.
    """
    for key, values in (("is_causal", (False,)), ("use_bidirectional_attention", (True, "all"))):
        if reader.says(key, *values):
            if reader.place or not reader.known:
                raise reader.unread(key)
            return key
    return None


def _of_class(reader: Reader, count: int) -> list[str]:
    """The layers of a file that says nothing of them."""
    family = reader.family
    if family.pattern == (words.ENCODER,) and reader.flag("is_decoder"):
        return [FULL] * count
    pattern = family.pattern or (FULL,)
    found = [pattern[layer % len(pattern)] for layer in range(count)]
    found[: len(family.first)] = family.first[:count]
    found[count - len(family.last) :] = family.last
    return found


def listed_count(reader: Reader) -> int | None:
    """The number of layers of a file that gives only a list of them."""
    for key in (*LISTS, "block_configs"):
        if reader.has(key):
            return len(reader.items(key) or ())
    return len(reader.word("hybrid_override_pattern") or "") or None


def _listed(reader: Reader, count: int, drafts: int) -> Sequence[str] | None:
    for key in LISTS:
        listed = reader.per_layer(key, count, drafts)
        if listed is not None:
            reader.skip(*SUPERSEDED)
            if reader.known:
                reader.skip(*OF_SOME_LAYERS)
            return _told(
                reader, key, [_word(reader, key, position, word) for position, word in enumerate(listed)]
            )
    return None


def _word(reader: Reader, key: str, position: int, word: object) -> str:
    known = WORDS.get(word) if isinstance(word, str) else None
    if known is None:
        raise reader.unknown_word(key, position, word, ", ".join(WORDS))
    return known


def _lettered(reader: Reader, count: int, drafts: int) -> Sequence[str] | None:
    letters = reader.word("hybrid_override_pattern")
    if letters is None:
        return None
    reader.as_long("hybrid_override_pattern", letters, count, drafts)
    for position, letter in enumerate(letters):
        if letter not in LETTERS:
            raise reader.unknown_word("hybrid_override_pattern", position, letter, ", ".join(LETTERS))
    return _told(reader, "hybrid_override_pattern", [LETTERS[letter] for letter in letters])


def _coded(reader: Reader, count: int, drafts: int) -> Sequence[str] | None:
    for key, meaning in CODES.items():
        codes = reader.per_layer(key, count, drafts)
        if codes is None:
            continue
        for position, code in enumerate(codes):
            if type(code) is not int or code not in meaning:
                raise reader.unknown_word(key, position, code, ", ".join(map(str, meaning)))
        if key == "hybrid_layer_pattern":
            reader.skip("attention_chunk_size")  # MiMo-V2 has both and no chunks
        return _told(reader, key, [meaning[code] for code in codes if isinstance(code, int)])
    return None


def _compressed(reader: Reader, count: int, drafts: int) -> Sequence[str] | None:
    found = compressed_words(reader, count, drafts)
    return None if found is None else _told(reader, "compress_ratios", found)


def _cycled(reader: Reader, count: int, _: int) -> Sequence[str] | None:
    for key in ("block_types", "_block_types"):
        cycle = reader.items(key)
        if cycle:
            named = [_word(reader, key, position, word) for position, word in enumerate(cycle)]
            return _told(reader, key, [named[layer % len(named)] for layer in range(count)])
    return None


def _derived(rule: Callable[[Reader, int], tuple[str, Sequence[str]] | None]) -> Rule:
    """A rule that says which key decided."""

    def applied(reader: Reader, count: int, _: int) -> Sequence[str] | None:
        found = rule(reader, count)
        return None if found is None else _told(reader, *found)

    return applied


def _told(reader: Reader, key: str, found: Sequence[str]) -> Sequence[str]:
    reader.record.origins["layer_pattern"] = {"": [reader.origin(key)]}
    return found


RULES: Collection[Rule] = (
    _listed,
    _compressed,
    _lettered,
    _coded,
    _cycled,
    _derived(numbered_words),
    _derived(periodic_words),
    _derived(windowed_words),
)
