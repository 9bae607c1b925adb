"""Answers the golden file: builds the engine's objects from a case's input and reads off the fields."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import EngineError
from ...explain import Expression, lift
from ...formats import FORMATS, Storage, TurboQuant
from . import blocks, held, hybrid, parallel, prefix, sending
from .group import Group
from .grouping import group_layers
from .growth import admission_cap, request_bytes, request_pages
from .inputs import Fields, given_state, layer_spec, settings, state_kinds, token_page
from .pool import Pool, Stage, open_pool
from .rules import Rules, rules_of
from .settings import MambaMode, Settings
from .spec import LayerSpec


def _int(expression: Expression) -> int:
    return int(expression.value)


def _shards(chosen: Settings, rules: Rules) -> int:
    return _int(rules.context_shards(chosen))


def spec_page(given: Fields, version: str) -> Fields:
    """Page sizes of one spec."""
    rules = rules_of(version)
    spec = layer_spec(given["spec"], rules)
    return {
        "page_size_bytes": spec.page_size_bytes,
        "storage_block_size": spec.storage_block_size,
        "real_page_size_bytes": _int(spec.real_page),
    }


def spec_max_memory(given: Fields, version: str) -> Fields:
    """What one request can need in one layer."""
    rules = rules_of(version)
    spec, chosen = layer_spec(given["spec"], rules), settings(given.get("config", {}))
    cap = admission_cap(spec, chosen, rules)
    return {
        "page_size_bytes": spec.page_size_bytes,
        "max_memory_usage_bytes": _int(request_bytes(spec, chosen, rules)),
        "max_pages": _int(request_pages(spec, chosen, rules)),
        "max_admission_blocks_per_request": None if cap is None else _int(cap),
    }


def num_kv_heads(given: Fields, version: str) -> Fields:
    """KV heads on one rank."""
    rules_of(version)
    heads = parallel.num_kv_heads(
        given["total_num_kv_heads"], given["tensor_parallel_size"], use_mla=given.get("use_mla", False)
    )
    return {"num_kv_heads": _int(heads)}


def pp_indices(given: Fields, version: str) -> Fields:
    """Layers of each pipeline stage."""
    rules_of(version)
    stages = parallel.layers_per_stage(given["num_hidden_layers"], given["pipeline_parallel_size"])
    return {"layers_per_stage": list(stages)}


def turboquant_slot(given: Fields, version: str) -> Fields:
    """Packed bytes of one head's K and V."""
    rules_of(version)
    preset, width = FORMATS[given["kv_cache_dtype"]], lift(given["head_size"])
    assert isinstance(preset, TurboQuant)
    key, value = preset.key_bytes(width), preset.value_bytes(width)
    return {
        "key_packed_size": _int(key),
        "value_packed_size": _int(value),
        "slot_size": _int(key + value),
        "tq_slot_size": _int(preset.slot_bytes(width, width)),
    }


def mamba_state(given: Fields, version: str) -> Fields:
    """Shapes and bytes of one layer's state."""
    rules_of(version)
    args = given["args"]
    tp = args.get("tp_world_size", args.get("tp_size", 1))
    kinds = state_kinds(given["calculator"], args)
    tensors = list(kinds[0].tensors(tp))
    if given["calculator"] == "kda":
        tensors[1:3] = kinds[1].tensors(tp)[1:3]
    shapes = [[_int(size) for size in tensor.shape] for tensor in tensors]
    bytes_ = given_state(shapes, given["dtypes"]).unit_bytes(Storage(), 1)
    return {"shapes": shapes, "page_size_bytes": _int(bytes_)}


def hybrid_align(given: Fields, version: str) -> Fields:
    """Block sizes of attention beside state."""
    rules_of(version)
    state = _int(given_state(given["mamba_shapes"], given["mamba_dtypes"]).unit_bytes(Storage(), 1))
    aligned = hybrid.align(
        token_page=token_page(given),
        state_page=state,
        block_size=given["block_size"],
        kernel_block_size=given["kernel_block_alignment"],
        mode=MambaMode(given.get("mamba_cache_mode", "none")),
        mamba_chunk_size=given.get("mamba_block_size") or given.get("mamba_chunk_size") or 1,
    )
    padded, own = aligned.mamba_page_padded, aligned.mamba_block_size
    return {
        "block_size": _int(aligned.block_size),
        "mamba_block_size": None if own is None else _int(own),
        "mamba_page_size_padded": None if padded is None else _int(padded),
        "mamba_page_size_bytes": state,
    }


def _stages(given: Fields, rules: Rules) -> tuple[list[LayerSpec], list[frozenset[int]]]:
    """All layers in model order, and the numbers of those of each worker."""
    specs = {name: layer_spec(spec, rules) for name, spec in given["specs"].items()}
    workers = given.get("workers") or [given["layers"]]
    layers: list[LayerSpec] = []
    stages: list[frozenset[int]] = []
    for names in workers:
        stages.append(frozenset(range(len(layers), len(layers) + len(names))))
        layers += [specs[name] for name in names]
    return layers, stages


def _pool(given: Fields, groups: Sequence[Group], stages: Sequence[frozenset[int]], rules: Rules) -> Pool:
    memory = given["available_memory"]
    per_worker = memory if isinstance(memory, list) else [memory] * len(stages)
    return open_pool(
        [
            Stage(groups=tuple(group.on_stage(layers) for group in groups), available_bytes=available)
            for layers, available in zip(stages, per_worker, strict=True)
        ],
        settings(given.get("config", {})),
        rules,
    )


def kv_cache_config(given: Fields, version: str) -> Fields:
    """Groups, pool and what one request takes."""
    rules = rules_of(version)
    layers, stages = _stages(given, rules)
    config = given.get("config", {})
    try:
        groups = group_layers(
            layers, rules, hybrid_manager=not config.get("disable_hybrid_kv_cache_manager", False)
        )
    except EngineError as error:
        return {"error": _errors.get(error.key, error.key)}
    pool = _pool(given, groups, stages, rules)
    answer: dict[str, Any] = {
        "groups": [
            {
                "spec_type": group.spec.type.value,
                "uniform_type": group.container,
                "num_layers": group.num_layers,
                "block_size": group.spec.block_size,
                "page_size_bytes": _int(group.page),
            }
            for group in groups
        ],
        "fits": pool.fits,
        "max_model_len": pool.settings.max_model_len,
        "max_memory_usage_bytes": [_int(request) for request in pool.request_bytes],
        "pool_bytes_per_block": [_int(stage.bytes_per_block) for stage in pool.stages],
    }
    if not pool.fits:
        return answer | {"estimated_max_model_len": pool.longest_context}
    count = _int(pool.num_blocks)
    tensors = [blocks.tensors(stage.groups) for stage in pool.stages]
    return answer | {
        "num_blocks": count,
        "usable_blocks": _int(pool.usable_blocks),
        "tensor_count": [sum(many for _, many in one) for one in tensors],
        "tensor_bytes": [sum(size * many * count for size, many in one) for one in tensors],
        "num_blocks_per_request": _int(pool.blocks_per_request),
        "kv_cache_size_tokens": pool.reported_tokens,
    }


_errors = {"vllm.pages": "page_size_not_unifiable"}


def blocks_held(given: Fields, version: str) -> Fields:
    """Blocks of one request while it is computed."""
    rules = rules_of(version)
    spec, chosen = layer_spec(given["spec"], rules), settings(given.get("config", {}))
    prompt, output = given["prompt_tokens"], given["output_tokens"]
    rest = {"shards": _shards(chosen, rules), "encoder_tokens": chosen.encoder_tokens}
    cap = admission_cap(spec, chosen, rules)
    last = prompt + output - 1 if output else (prompt - 1) // chosen.max_num_batched_tokens
    computed = last if output else last * chosen.max_num_batched_tokens
    return {
        "max_admission_blocks_per_request": None if cap is None else _int(cap),
        "peak_blocks_prefill": held.prefill_peak(spec, prompt, chosen.max_num_batched_tokens, **rest),
        "peak_blocks_decode": held.decode_peak(spec, prompt, output, **rest),
        "final_blocks": held.blocks_held(spec, computed, 1 if output else prompt - computed, **rest),
    }


def prefix_hit(given: Fields, version: str) -> Fields:
    """The longest reusable prefix."""
    rules = rules_of(version)
    specs = [layer_spec(spec, rules) for spec in given["group_specs"]]
    chosen = settings(given.get("config", {}))
    hit = prefix.common_hit(
        [
            prefix.CachedGroup(spec=spec, cached=frozenset(cached))
            for spec, cached in zip(specs, given["cached_block_indices"], strict=True)
        ],
        given["max_cache_hit_length"],
        eagle=given.get("use_eagle", False),
        context_parallel_size=_shards(chosen, rules),
    )
    return {
        "hit_tokens": hit.tokens,
        "real_blocks": list(hit.real_blocks),
        "lcm_block_size": hit.alignment,
    }


def _hashing(specs: Sequence[LayerSpec], block_size: int, config: Fields, rules: Rules) -> tuple[int, int]:
    return prefix.resolve_block_sizes(
        specs,
        block_size=block_size,
        context_parallel_size=_shards(settings(config), rules),
        hashes_used=config.get("enable_prefix_caching", True) or bool(config.get("kv_connector")),
        hash_block_size=config.get("hash_block_size"),
    )


def resolve_block_sizes(given: Fields, version: str) -> Fields:
    """Alignment of the scheduler and granularity of hashes."""
    rules = rules_of(version)
    specs = [layer_spec(spec, rules) for spec in given["group_specs"]]
    config = {**given.get("config", {}), **{k: given[k] for k in ("hash_block_size",) if k in given}}
    scheduler, hashed = _hashing(specs, given["block_size"], config, rules)
    return {"scheduler_block_size": scheduler, "hash_block_size": hashed}


def cpu_offload(given: Fields, version: str) -> Fields:
    """The host pool of the native offload."""
    rules = rules_of(version)
    layers, stages = _stages(given, rules)
    config = given.get("config", {})
    groups = group_layers(layers, rules)
    pool = _pool(given, groups, stages, rules)
    shards = _shards(pool.settings, rules)
    sizes = [group.spec.block_size * shards for group in groups]
    per_block = _int(pool.stages[0].bytes_per_block)
    pooled = sending.cpu_offload(
        bytes_per_block=per_block,
        block_sizes=sizes,
        world_size=given["world_size"],
        cpu_bytes_to_use=given["cpu_bytes_to_use"],
        offloaded_block_size=given.get("offloaded_block_size"),
    )
    block_size = given.get("block_size") or groups[0].spec.block_size
    return {
        "num_gpu_blocks": _int(pool.num_blocks),
        "kv_bytes_per_gpu_block_per_worker": per_block,
        "block_size_factor": pooled.block_size_factor,
        "num_cpu_blocks": _int(pooled.num_cpu_blocks),
        "cpu_page_size_per_worker": _int(pooled.cpu_page),
        "gpu_block_size": sizes,
        "hash_block_size": _hashing([group.spec for group in groups], block_size, config, rules)[1],
    }


def nixl_block(given: Fields, version: str) -> Fields:
    """Transfer units of one block over NIXL."""
    rules = rules_of(version)
    block = sending.nixl(
        layer_spec(given["spec"], rules),
        sending.Layout.MLA if given.get("use_mla") else sending.Layout(given["attn_backend"]),
        num_layers=given["num_layers"],
        num_tokens=given["num_tokens"],
    )
    return {
        "memory_regions_per_layer": block.memory_regions_per_layer,
        "block_len_bytes": _int(block.block_len),
        "descriptor_bytes": _int(block.descriptor),
        "descriptors_per_layer_per_block": block.descriptors_per_layer_per_block,
        "bytes_per_block_all_layers": _int(block.bytes_per_block_all_layers),
        "num_blocks_transferred": _int(block.num_blocks),
        "total_bytes": _int(block.total_bytes),
    }


RUNNERS: Mapping[str, Callable[[Mapping[str, Any], str], Mapping[str, Any]]] = {
    runner.__name__: runner
    for runner in (
        spec_page,
        spec_max_memory,
        num_kv_heads,
        pp_indices,
        turboquant_slot,
        mamba_state,
        hybrid_align,
        kv_cache_config,
        blocks_held,
        prefix_hit,
        resolve_block_sizes,
        cpu_offload,
        nixl_block,
    )
}
