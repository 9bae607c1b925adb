"""Where the size of a cache comes from: heads, then architecture, then number format.

What one request would take if every layer kept keys and values of all query heads (MHA), then of the KV heads
alone (GQA), both without windows and states; then as the model really keeps it; then in each number format.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .caches import MLA, FullAttention, Growth
from .explain import Expression
from .footprint import footprint
from .formats import BF16, FORMATS, KV_FORMATS, Storage
from .hf_config.heads import QUERY_HEADS
from .hf_config.text_part import PLACES
from .model import Layer, ModelPlan

LATENT_GQA_HEADS = 8  # a latent has no KV heads: beside it stands the usual number


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One step: "mha", "gqa", "architecture" or a KV format, with the heads that the first two keep."""

    name: str
    total_bytes: Expression
    heads: int | None = None


def factors(
    plan: ModelPlan, config: Mapping[str, object] | None, storage: Storage, tokens: int
) -> tuple[Factor, ...]:
    """The steps for one request of `tokens` tokens, whole model; those before the formats are in BF16.

    `config` is the published one and tells the query heads. Without it, or where no layer keeps keys or
    latents, the first two steps are left out; so are formats that the model's caches cannot be written in.
    """
    plain = replace(storage, kv=BF16)
    heads = [
        Factor(name=name, heads=count, total_bytes=_total(ModelPlan(layers=layers), plain, tokens))
        for name, count, layers in _by_heads(plan, _text_part(config or {}))
    ]
    held = Factor(name="architecture", total_bytes=_total(plan, plain, tokens))
    formats = [
        Factor(name=name, total_bytes=_total(plan, stored, tokens))
        for name in KV_FORMATS
        for stored in [replace(storage, kv=FORMATS[name])]
        if stored.kv is not BF16 and all(cache.accepts(stored) for cache in plan.caches())
    ]
    return (*heads, held, *formats)


def _by_heads(plan: ModelPlan, config: Mapping[str, object]) -> Iterator[tuple[str, int, tuple[Layer, ...]]]:
    """(step, heads, layers) with keys and values of all query heads, then of the KV heads."""
    queries = next((config[name] for name in QUERY_HEADS if name in config), None)
    kept = [_attention(layer) for layer in plan.layers]
    common = next((cache for cache in kept if cache), None)
    if type(queries) is not int:
        return
    if common:
        # A layer with a state instead would keep what the others keep.
        shapes = [cache or common for cache in kept]
        yield "mha", queries, tuple((_full(cache, queries),) for cache in shapes)
        yield "gqa", common.num_kv_heads, tuple((_full(cache, cache.num_kv_heads),) for cache in shapes)
    elif any(isinstance(cache, MLA) for cache in plan.caches()):
        nope, rope, value = (
            config.get(name) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        )
        if type(nope) is int and type(rope) is int and type(value) is int:
            # DeepSeek-V3: 128 heads of 192 + 128; as GQA, whose rope is inside the head, 8 of 128 + 128.
            expanded = FullAttention(num_kv_heads=queries, head_size=nope + rope, head_size_v=value)
            shared = FullAttention(num_kv_heads=LATENT_GQA_HEADS, head_size=nope, head_size_v=value)
            yield "mha", queries, ((expanded,),) * len(plan.layers)
            yield "gqa", LATENT_GQA_HEADS, ((shared,),) * len(plan.layers)


def _attention(layer: Layer) -> FullAttention | None:
    """The cache of a layer that keeps keys and values of the request's own tokens."""
    found = (cache for cache in layer if isinstance(cache, FullAttention))
    return next((cache for cache in found if cache.growth is not Growth.CONSTANT), None)


def _full(cache: FullAttention, heads: int) -> FullAttention:
    """`cache` with other heads and without a window."""
    return FullAttention(num_kv_heads=heads, head_size=cache.head_size, head_size_v=cache.head_size_v)


def _text_part(config: Mapping[str, object]) -> Mapping[str, object]:
    """The part of a configuration that describes the language model."""
    for place in PLACES:
        part: object = config
        for key in place:
            part = part.get(key) if isinstance(part, Mapping) else None
        if isinstance(part, Mapping):
            return part
    return config


def _total(plan: ModelPlan, storage: Storage, tokens: int) -> Expression:
    return footprint(plan, storage, 1).amounts(tokens, 1).total_bytes
