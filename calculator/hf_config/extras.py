"""What a file says beside its layers: its class, draft layers, and formats that it asks for."""

from collections.abc import Sequence

from ..errors import ConfigError
from .family import FULL, NOTHING
from .found import Found
from .layer_pattern import LETTERS, WORDS
from .plain_text import shown
from .reader import Reader

# Layers of the multi-token prediction part: the key, and the key that multiplies it.
DRAFTS = {
    "num_nextn_predict_layers": None,
    "num_mtp_layers": None,
    "mtp_num_hidden_layers": None,
    "num_mtp_modules": "mtp_transformer_layers",
}
STATE_DTYPES = ("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def named_architecture(part: Reader) -> str | None:
    """The first model class in the file's list.

    Raises:
        ConfigError: the list does not hold names.
    """
    names = part.items("architectures") or ()
    for name in names:
        if not isinstance(name, str):
            raise ConfigError("config.text", field=part.path("architectures"), value=shown(name))
    if not names:
        return None
    part.record.origins["architecture"] = {"": [part.path("architectures")]}
    return str(names[0])


def asks_for_window_pool(reader: Reader) -> bool:
    """Whether the file says that its windows are to have a pool of their own, as SGLang reads it."""
    asks = reader.flag("is_hybrid_swa")
    if asks:
        reader.record.origins["hybrid_swa"] = {"": [reader.path("is_hybrid_swa")]}
    return asks


def draft_counts(reader: Reader, *, counted: bool) -> list[Found]:
    """The numbers of draft layers in the file, each noted; engines allocate them only when drafting is on."""
    found = []
    note = "config.note.mtp_counted" if counted else "config.note.mtp"
    for key, factor in DRAFTS.items():
        modules = reader.optional(key, lowest=0, highest=1024)
        if modules and modules.value:
            each = reader.optional(factor, highest=1024) if factor else None
            layers = modules.times(each) if each else modules
            reader.note(note, modules.key, value=layers.value)
            found.append(layers)
    return found


def agreed(counts: Sequence[Found]) -> int:
    """How many draft layers to count.

    Raises:
        ConfigError: the file gives two different numbers.
    """
    for other in counts[1:]:
        if other.value != counts[0].value:
            raise ConfigError(
                "config.contradiction",
                field=counts[0].key,
                value=counts[0].value,
                other=other.key,
                second=other.value,
            )
    return counts[0].value if counts else 0


def draft_words(reader: Reader, words: Sequence[str], count: int, drafts: int) -> Sequence[str]:
    """What `drafts` draft layers do.

    As a list of their own says, or the tail of the model's list, or else as its last full attention.
    """
    own = _own_words(reader)
    if own is not None:
        return own * drafts
    listed = words[count : count + drafts]
    plain = next((word for word in reversed(words[:count]) if word.endswith("_attention")), FULL)
    like = FULL if FULL in words[:count] else plain
    return [*listed, *[like] * (drafts - len(listed))]


def _own_words(reader: Reader) -> list[str] | None:
    listed = reader.items("mtp_layers_block_type")
    letters = reader.word("mtp_hybrid_override_pattern")
    found: list[str] = []
    for position, word in enumerate(listed or ()):
        meaning = WORDS.get(word) if isinstance(word, str) else None
        if meaning is None:
            raise reader.unknown_word("mtp_layers_block_type", position, word, ", ".join(WORDS))
        found.append(meaning)
    for position, letter in enumerate("" if listed else letters or ""):
        if letter not in LETTERS:
            raise reader.unknown_word("mtp_hybrid_override_pattern", position, letter, ", ".join(LETTERS))
        found.append(LETTERS[letter])
    return [word for word in found if word != NOTHING] or None


def declared_kv_format(*parts: Reader) -> str | None:
    """The KV format that the checkpoint asks for, noted: it is offered, not applied.

    Raises:
        ConfigError: a scheme that says nothing of its bits.
    """
    declared = None
    for part in parts:
        quantization = part.part("quantization_config")
        scheme = quantization.part("kv_cache_scheme") if quantization else None
        if scheme:
            bits, form = scheme.whole("num_bits").value, scheme.word("type")
            declared = "fp8" if (bits, form) == (8, "float") else declared
            part.note("config.note.kv_format", scheme.place, value=shown(form), bits=bits)
    return declared


def declared_state_dtype(reader: Reader) -> str | None:
    """The dtype of recurrent state that the file or the class asks for, as its format is called here.

    Raises:
        ConfigError: a dtype that is not known.
    """
    for key in STATE_DTYPES:
        name = reader.word(key)
        if name is not None:
            if name not in DTYPES:
                field, known = reader.path(key), ", ".join(DTYPES)
                raise ConfigError("config.word", field=field, value=shown(name), known=known)
            return DTYPES[name]
    return None
