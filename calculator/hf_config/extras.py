"""What a file says beside its layers: draft layers, and a KV format it asks for."""

from .reader import Reader, shown

# Layers of the multi-token prediction part: the key, and the key that multiplies it.
DRAFTS = {
    "num_nextn_predict_layers": None,
    "num_mtp_layers": None,
    "mtp_num_hidden_layers": None,
    "num_mtp_modules": "mtp_transformer_layers",
}


def draft_layers(reader: Reader) -> int:
    """The number of draft layers, noted and not counted: engines allocate them only when drafting is on."""
    total = 0
    for key, factor in DRAFTS.items():
        found = reader.optional(key, lowest=0)
        if found is not None and found.value:
            each = reader.optional(factor) if factor else None
            layers = found.value * (each.value if each else 1)
            reader.note("config.note.mtp", found.key, value=layers)
            total += layers
    return total


def note_kv_format(reader: Reader, *parts: Reader) -> None:
    """Say so when the checkpoint declares a quantised KV cache; it is offered, not applied."""
    for part in parts:
        quantization = part.part("quantization_config")
        scheme = quantization.part("kv_cache_scheme") if quantization else None
        if scheme:
            bits, form = scheme.whole("num_bits").value, shown(scheme.word("type"))
            reader.note("config.note.kv_format", scheme.place, value=form, bits=bits)
