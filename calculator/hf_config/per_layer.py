"""Sizes that a layer has of its own."""

from collections.abc import Mapping

from ..errors import ConfigError
from .found import Found
from .heads import QUERY_HEADS
from .plain_text import shown
from .reader import Reader

Sizes = Mapping[str, Found]
EMPTY = "none"  # the size that says that a layer keeps nothing

HEAD_LISTS = ("num_kv_heads", "num_key_value_heads", "num_key_value_heads_per_layer")

# What transformers 5 may override in a layer, and what it may say there that no cache depends on.
OVERRIDES = (
    "head_dim",
    "kv_lora_rank",
    "num_attention_heads",
    "num_key_value_heads",
    "qk_rope_head_dim",
    "sliding_window",
    "v_head_dim",
)
HARMLESS = (
    "intermediate_size",
    "partial_rotary_factor",
    "qk_nope_head_dim",
    "q_lora_rank",
    "rope_parameters",
    "rope_theta",
)
# What a block of a searched architecture may do to its cache, beyond heads and nothing at all.
BLOCK_KEYS = ("n_heads_in_group", "no_op", "replace_with_linear")
BLOCK_IGNORED = ("sparsify",)


def layer_sizes(reader: Reader, count: int) -> list[Sizes]:
    """For each of `count` layers what it has of its own; mostly nothing.

    Raises:
        ConfigError: a list of another length, or an entry that is not known.
    """
    sizes: list[Sizes] = [{} for _ in range(count)]
    for rule in (_blocks, _head_lists, _overrides):
        sizes = [{**own, **more} for own, more in zip(sizes, rule(reader, count), strict=True)]
    return sizes


def _blocks(reader: Reader, count: int) -> list[Sizes]:
    """Nemotron-NAS: KV heads are attention heads over `n_heads_in_group`; some blocks have no attention."""
    blocks = reader.per_layer("block_configs", count)
    if blocks is None:
        return [{} for _ in range(count)]
    reader.ordinary("block_configs")
    heads = reader.needed(*QUERY_HEADS)
    reader.record.origins["layer_pattern"] = {"": [reader.path("block_configs")]}
    return [_block(reader, heads, layer, block) for layer, block in enumerate(blocks[:count])]


def _block(reader: Reader, heads: Found, layer: int, block: object) -> Sizes:
    path = reader.path("block_configs")
    entry = Reader(
        block if isinstance(block, Mapping) else {}, prefix=f"{path}[{layer}].", record=reader.record
    )
    attention = entry.part("attention")
    if attention is None:
        raise entry.missing("attention")
    for key in attention.switched_on():
        if key not in (*BLOCK_KEYS, *BLOCK_IGNORED):
            raise attention.unread(key)
    if attention.flag("no_op") or attention.flag("replace_with_linear"):
        return {EMPTY: Found(1, attention.path("no_op"), f"{path}[i].attention.no_op")}
    group = attention.whole("n_heads_in_group")
    kv_heads = heads.divided_by(group).value
    origin = f"derived: {heads.key} / {path}[i].attention.n_heads_in_group"
    return {"num_key_value_heads": Found(kv_heads, group.key, origin)}


def _head_lists(reader: Reader, count: int) -> list[Sizes]:
    """OpenELM, DeciLM: one head count per layer."""
    key = next(filter(reader.is_list, HEAD_LISTS), None)
    if key is None:
        return [{} for _ in range(count)]
    numbers = reader.per_layer(key, count) or ()
    path = reader.path(key)
    found: list[Sizes] = []
    for layer, number in enumerate(numbers[:count]):
        if type(number) is not int or number < 1:
            raise reader.unknown_word(key, layer, number, "1, 2, …")
        found.append({"num_key_value_heads": Found(number, f"{path}[{layer}]", f"{path}[i]")})
    return found


def _overrides(reader: Reader, count: int) -> list[Sizes]:
    """Transformers 5: `per_layer_config` {"02": {...}} wins over the flat keys."""
    part = reader.part("per_layer_config")
    found: list[Sizes] = [{} for _ in range(count)]
    if part is None:
        return found
    seen: set[int] = set()
    for name in part.names():
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 5 else -1
        if number in seen or number < 0:
            raise ConfigError("config.word", field=part.place, value=shown(name), known=f"0…{count - 1}")
        seen.add(number)
        if number < count:  # beyond it are draft layers
            found[number] = _override(part, name)
    return found


def _override(part: Reader, name: str) -> Sizes:
    layer = part.part(name)
    sizes: dict[str, Found] = {}
    for key in layer.names() if layer else ():
        if key not in (*OVERRIDES, *HARMLESS):
            raise ConfigError("config.word", field=part.place, value=shown(key), known=", ".join(OVERRIDES))
        found = layer.optional(key) if layer and key in OVERRIDES else None
        if found:
            sizes[key] = Found(found.value, found.key, f"{part.place}[i].{key}")
    return sizes
