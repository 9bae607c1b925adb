"""Plans in the words of the file of reference models, and where they differ from it.

A file of models holds `models`: of each its `file`, `groups` and byte figures, which other programs computed.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .caches import (
    MLA,
    Cache,
    ChunkedLocal,
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    CrossAttention,
    EncoderOnlyAttention,
    FullAttention,
    Growth,
    IndexKey,
    SlidingWindow,
    SlidingWindowMLA,
    State,
)
from .explain import Number
from .footprint import Footprint, footprint
from .formats import BF16, FP8_DS_MLA, FP8_V4, Storage
from .hf_config import read_config
from .model import ModelPlan

STORAGE = Storage()
MODEL_DTYPE = Storage(recurrent=BF16)
KINDS = {
    "gated_delta_net": "gdn",
    "linear_attention": "linear_attention",
    "short_convolution": "short_conv",
    "rg_lru": "rglru",
}
RATIOS = {0: "dsv4-swa", 4: "dsv4-c4", 128: "dsv4-c128"}
FIGURES = (
    "bytes_per_token",
    "bounded_bytes_max",
    "const_bytes",
    "const_bytes_model_dtype",
    "num_cache_slots",
)
Group = dict[str, Any]


def differences(model: Mapping[str, Any], configs: Path) -> Iterator[tuple[str, object, object]]:
    """(field, expected, got) of everything that differs from one reference model.

    Raises:
        ConfigError: its configuration is refused.
    """
    yield from plan_differences(model, read_config(configs / model["file"]))


def plan_differences(model: Mapping[str, Any], plan: ModelPlan) -> Iterator[tuple[str, object, object]]:
    """The same of a plan, wherever it came from."""
    figures = _figures(plan)
    for field in FIGURES:
        if model[field] != figures[field]:
            yield field, model[field], figures[field]
    cross = _cross_rate(plan)
    if model.get("cross_bytes_per_encoder_token", cross) != cross:
        yield "cross_bytes_per_encoder_token", model["cross_bytes_per_encoder_token"], cross
    yield from _packed_differences(plan, model.get("fp8_layout"))
    weighed = footprint(plan, STORAGE, 1)
    for tokens, expected in model["total_bytes"].items():
        got = weighed.parts(int(tokens)).total
        if got != expected:
            yield f"total_bytes.{tokens}", expected, got
    yield from _group_differences(model["groups"], groups(plan))


def _figures(plan: ModelPlan) -> dict[str, Number]:
    weighed = footprint(plan, STORAGE, 1)
    amounts = weighed.amounts(1, 1)
    return {
        "bytes_per_token": amounts.bytes_per_token.value,
        "bounded_bytes_max": amounts.bounded_bytes.value,
        "const_bytes": weighed.parts(1).constant,
        "const_bytes_model_dtype": footprint(plan, MODEL_DTYPE, 1).parts(1).constant,
        "num_cache_slots": _slots(plan),
    }


def _slots(plan: ModelPlan) -> int:
    """Layers that have a place of their own, which vision layers of open length have not in the reference."""
    return sum(
        not layer or any(type(cache) is not CrossAttention for cache in layer) for layer in plan.layers
    )


def _cross_rate(plan: ModelPlan) -> Number:
    caches = [cache for layer in plan.layers for cache in layer if isinstance(cache, CrossAttention)]
    return sum(cache.unit_bytes(STORAGE, 1).value for cache in caches)


def _packed_differences(
    plan: ModelPlan, layout: Mapping[str, Any] | None
) -> Iterator[tuple[str, object, object]]:
    if layout is None:
        return
    packed = Storage(
        kv=FP8_V4 if any(isinstance(cache, SlidingWindowMLA) for cache in plan.caches()) else FP8_DS_MLA
    )
    amounts = _packed(footprint(plan, packed, 1))
    for field, got in zip(("bytes_per_token", "bounded_bytes_max"), amounts, strict=True):
        if layout[field] != got:
            yield f"fp8_layout.{field}", layout[field], got


def _packed(weighed: Footprint) -> tuple[Number, Number]:
    amounts = weighed.amounts(1, 1)
    return amounts.bytes_per_token.value, amounts.bounded_bytes.value


def _group_differences(expected: list[Group], got: list[Group]) -> Iterator[tuple[str, object, object]]:
    """Groups that have the same layers are compared field by field; a group without partner is told whole."""
    left = list(got)
    for given in expected:
        group = given | ({"kind": "none"} if given["kind"] == "shared" else {})  # neither keeps anything
        name = f"groups.{group['kind']}"
        partner = next(
            (other for other in left if (other["kind"], other["layers"]) == (group["kind"], group["layers"])),
            None,
        )
        if partner is None:
            partner = next((other for other in left if other["layers"] == group["layers"]), None)
        if partner is None:
            yield name, group, None
            continue
        left.remove(partner)
        for field, value in group.items():
            if value != partner.get(field):
                yield f"{name}.{field}", value, partner.get(field)
    for other in left:
        yield f"groups.{other['kind']}", None, other


def groups(plan: ModelPlan) -> list[Group]:
    """The groups of a plan in the words of the reference: one per cache, but latents with their index."""
    found: list[Group] = []
    for group in plan.groups():
        for words in _worded(group.caches):
            same = next(
                (other for other in found if {**other, "layers": None} == {**words, "layers": None}), None
            )
            if same is None:
                found.append(words | {"layers": list(group.indices)})
            else:
                same["layers"] = sorted([*same["layers"], *group.indices])
    for words in found:
        words["count"] = len(words["layers"])
    return found


def _worded(layer: tuple[Cache, ...]) -> list[Group]:
    if not layer:
        return [{"kind": "none", "bytes_per_token_per_layer": 0}]
    if isinstance(layer[0], SlidingWindowMLA):
        return [_compressed(layer[0], layer[1:])]
    words: list[Group] = []
    for cache in layer:
        if isinstance(cache, IndexKey):
            words[-1] |= _index(cache, words[-1])
        else:
            words.append(_one(cache))
    return words


def _one(cache: Cache) -> Group:
    match cache:
        case State():
            return _state(cache)
        case MLA():
            kind: Group = {
                "kind": "mla",
                "latent_dim": cache.kv_lora_rank,
                "rope_dim": cache.qk_rope_head_dim,
            }
        case EncoderOnlyAttention():
            return {"kind": "none", "bytes_per_token_per_layer": 0}
        case FullAttention():
            kind = {"kind": _attention_kind(cache), "kv_heads": cache.num_kv_heads}
            kind |= {"k_dim": cache.head_size, "v_dim": cache.head_size_v}
        case _:
            return {"kind": cache.kind}
    unit = cache.unit_bytes(STORAGE, 1).value
    kind["bytes_per_token_per_layer"] = unit if cache.growth is Growth.LINEAR else 0
    if cache.bound is not None:
        kind |= {"window": cache.bound.value, "window_bytes_per_layer": unit * cache.bound.value}
    if cache.units(1) != 1 and isinstance(cache, CrossAttention) and cache.num_encoder_tokens:
        kind["const_bytes_per_layer"] = unit * cache.num_encoder_tokens
    return kind


def _attention_kind(cache: FullAttention) -> str:
    if isinstance(cache, CrossAttention):
        return "cross"
    return (
        "sliding"
        if isinstance(cache, SlidingWindow)
        else "chunked"
        if isinstance(cache, ChunkedLocal)
        else "full"
    )


def _index(cache: IndexKey, beside: Group) -> Group:
    own = cache.unit_bytes(STORAGE, 1).value
    total = {"bytes_per_token_per_layer": beside["bytes_per_token_per_layer"] + own}
    if beside["kind"] == "mla":
        return total | {"kind": "mla+indexer", "indexer_bytes_per_token": own}
    return total | {"index_key_dim": cache.index_head_dim, "index_key_bytes": own}


def _state(cache: State) -> Group:
    shapes = [[int(side.value) for side in tensor.shape] for tensor in cache.tensors(1)]
    dtypes = ["float32" if tensor.recurrent else "bfloat16" for tensor in cache.tensors(1)]
    if cache.kind == "kda":  # three equal convolutions stand as one in the reference
        shapes, dtypes = [[shapes[0][0], 3 * shapes[0][1]], shapes[-1]], [dtypes[0], dtypes[-1]]
    names = STATE_NAMES.get(cache.kind, ("conv", "recurrent"))
    tensors = zip(names, shapes, dtypes, strict=True)
    return {
        "kind": KINDS.get(cache.kind, cache.kind),
        "states": [{"name": name, "shape": shape, "dtype": dtype} for name, shape, dtype in tensors],
        "bytes_per_token_per_layer": 0,
        "const_bytes_per_layer": cache.unit_bytes(STORAGE, 1).value,
    }


STATE_NAMES: Mapping[str, tuple[str, ...]] = {
    "linear_attention": ("kv",),
    "mamba1": ("conv", "ssm"),
    "mamba2": ("conv", "ssm"),
    "short_convolution": ("conv",),
    "rg_lru": ("conv", "rg_lru"),
    "rwkv5": ("att_shift", "ffn_shift", "wkv"),
}


def _compressed(window: SlidingWindowMLA, beside: tuple[Cache, ...]) -> Group:
    unit = window.unit_bytes(STORAGE, 1).value
    words: Group = {
        "latent_dim": window.head_size,
        "window": window.sliding_window,
        "window_bytes_per_layer": unit * window.sliding_window,
    }
    ratio, rate = 0, 0.0
    states: list[Group] = []
    for cache in beside:
        own = cache.unit_bytes(STORAGE, 1).value
        if isinstance(cache, CompressedLatent):
            ratio = cache.compress_ratio
            words["compress"] = {"ratio": ratio, "entry_bytes": own}
        if isinstance(cache, CompressedIndexKey):
            words["compress"]["indexer_entry_bytes"] = own
        if isinstance(cache, CompressorState):
            name = "indexer_compressor" if states else "compressor"
            states.append(
                {"name": name, "shape": [cache.sliding_window, cache.state_width], "dtype": "float32"}
            )
            words["const_bytes_per_layer"] = words.get("const_bytes_per_layer", 0) + own
        else:
            rate += float(own) / cache.tokens_per_unit
    if states:
        words["states"] = states
    return words | {"kind": RATIOS[ratio], "bytes_per_token_per_layer": rate}
