"""Answers the golden file: builds the engine's objects from a case's input and reads off the fields."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import lcm
from typing import Any

from ...errors import EngineError
from ...explain import Expression, lift
from ...formats import FORMATS, Storage, TurboQuant
from . import fine_prefix, held, hybrid, newest_cases, parallel, prefix, sending
from .block_bytes import largest_group, tensors
from .group import Group
from .grouping import group_layers
from .growth import admission_cap, request_bytes, request_pages
from .inputs import Fields, given_state, layer_spec, settings, state_kinds, token_page
from .layout import check_expressible
from .placement import placements
from .pool import Pool, Stage, open_pool
from .rules import Rules, rules_of
from .settings import MambaMode, Settings
from .spec import WINDOW_TYPES, LayerSpec


def _int(expression: Expression) -> int:
    return int(expression.value)


def _shards(chosen: Settings, rules: Rules) -> int:
    return _int(rules.context_shards(chosen))


def spec_page(given: Fields, version: str) -> Fields:
    """Page sizes of one spec."""
    rules = rules_of(version)
    spec = layer_spec({**given["spec"], **_backend(given)}, rules)
    return {
        "page_size_bytes": spec.page_size_bytes,
        "storage_block_size": spec.storage_block_size,
        "real_page_size_bytes": _int(spec.real_page),
        "state_content_size_bytes": _int(spec.content),
        "block_stride_bytes": _int(spec.stride),
    }


def _backend(given: Fields) -> Fields:
    """The attention backend, where it stands beside the spec."""
    return {name: given[name] for name in ("attn_backend", "gpu_family") if name in given}


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
    rules = rules_of(version)
    args = given["args"]
    tp = args.get("tp_world_size", args.get("tp_size", 1))
    kinds = state_kinds(given["calculator"], args, rules)
    tensors = list(kinds[0].tensors(tp))
    if given["calculator"] == "kda":
        tensors[1:3] = kinds[1].tensors(tp)[1:3]
    shapes = [[_int(size) for size in tensor.shape] for tensor in tensors]
    if given["calculator"] == "kda" and rules.kda_convolutions == 1:
        columns, *_ = shapes[0]
        shapes[:3] = [[columns, sum(width for _, width in shapes[:3])]]
    bytes_ = given_state(shapes, given["dtypes"]).unit_bytes(Storage(), 1)
    return {"shapes": shapes, "page_size_bytes": _int(bytes_)}


def hybrid_align(given: Fields, version: str) -> Fields:
    """Block sizes of attention beside state."""
    rules = rules_of(version)
    state = _int(given_state(given["mamba_shapes"], given["mamba_dtypes"]).unit_bytes(Storage(), 1))
    kernel = given["kernel_block_alignment"]
    aligned = hybrid.align(
        token_page=token_page(given, rules),
        state_page=state,
        block_size=given["block_size"],
        kernel_block_size=max(kernel, rules.least_latent_block) if given["use_mla"] else kernel,
        mode=MambaMode(given.get("mamba_cache_mode", "none")),
        mamba_chunk_size=given.get("mamba_block_size") or given.get("mamba_chunk_size") or 1,
        backend_block_size=lcm(*given.get("backend_block_alignments", [kernel])) if rules.packed else 1,
        checkpoint_alignment=given.get("mamba_prefill_checkpoint_alignment") or 1,
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
    drafts = given.get("config", {}).get("num_prefill_lookahead_tokens", 0)
    specs = {
        name: _retaining(layer_spec(spec, rules), max(0, drafts - 1)) for name, spec in given["specs"].items()
    }
    workers = given.get("workers") or [given["layers"]]
    layers: list[LayerSpec] = []
    stages: list[frozenset[int]] = []
    for names in workers:
        stages.append(frozenset(range(len(layers), len(layers) + len(names))))
        layers += [specs[name] for name in names]
    return layers, stages


def _retaining(spec: LayerSpec, tokens: int) -> LayerSpec:
    """A window beside a drafter: the planner decides what it retains, whatever the spec came with."""
    return replace(spec, retained_tokens=tokens) if spec.type in WINDOW_TYPES else spec


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
    chosen = settings(given.get("config", {}))
    try:
        groups = group_layers(
            layers,
            rules,
            hybrid_manager=not chosen.disable_hybrid_kv_cache_manager,
            layout=chosen.layout,
        )
        if rules.packed:
            check_expressible(chosen.layout, groups)
    except EngineError as error:
        return {"error": newest_cases.ERRORS.get(error.key, error.key)}
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
        "pool_bytes_per_block": list(map(_int, pool.bytes_per_block)),
    }
    if not pool.fits:
        return answer | {"estimated_max_model_len": pool.longest_context}
    count = _int(pool.num_blocks)
    tensors = [_tensors(stage.groups, count, chosen, rules) for stage in pool.stages]
    return answer | {
        "num_blocks": count,
        "usable_blocks": _int(pool.usable_blocks),
        "tensor_count": [number for number, _ in tensors],
        "tensor_bytes": [size for _, size in tensors],
        "num_blocks_per_request": _int(pool.blocks_per_request),
        "kv_cache_size_tokens": pool.reported_tokens,
    }


def _tensors(groups: Sequence[Group], count: int, chosen: Settings, rules: Rules) -> tuple[int, int]:
    """How many cache tensors there are (since 0.33.0: placements in one of them), and their bytes."""
    if not rules.packed:
        pages = tensors(groups)
        return sum(many for _, many in pages), sum(size * many * count for size, many in pages)
    placed = list(placements(groups, count, chosen.layout))
    return len(placed), count * _int(largest_group(groups, chosen.layout))


def blocks_held(given: Fields, version: str) -> Fields:
    """Blocks of one request while it is computed."""
    rules = rules_of(version)
    spec, chosen = layer_spec(given["spec"], rules), settings(given.get("config", {}))
    prompt, output = given["prompt_tokens"], given["output_tokens"]
    cap = admission_cap(spec, chosen, rules)
    run = held.Run(
        prompt=prompt,
        step=chosen.max_num_batched_tokens,
        shards=_shards(chosen, rules),
        encoder_tokens=chosen.encoder_tokens,
        batches=rules.batches_in_flight(chosen),
    )
    return {
        "max_admission_blocks_per_request": None if cap is None else _int(cap),
        "peak_blocks_prefill": run.prefill_peak(spec),
        "peak_blocks_decode": run.decode_peak(spec, output),
        "final_blocks": run.held(spec, run.chunks + output - 1),
    }


def prefix_hit(given: Fields, version: str) -> Fields:
    """The longest reusable prefix."""
    rules = rules_of(version)
    specs = [layer_spec(spec, rules) for spec in given["group_specs"]]
    chosen = settings(given.get("config", {}))
    units = given.get("cached_hash_units") or [[]] * len(specs)
    groups = [
        prefix.CachedGroup(spec=spec, cached=frozenset(cached), units=frozenset(inside))
        for spec, cached, inside in zip(specs, given["cached_block_indices"], units, strict=True)
    ]
    longest, eagle, shards = (
        given["max_cache_hit_length"],
        given.get("use_eagle", False),
        _shards(chosen, rules),
    )
    if not rules.fine_grained_hits:
        hit = prefix.common_hit(groups, longest, eagle=eagle, context_parallel_size=shards)
    else:
        hit = fine_prefix.common_hit(
            groups,
            longest,
            eagle=eagle,
            context_parallel_size=shards,
            hash_block_size=given.get("hash_block_size"),
        )
    return {
        "hit_tokens": hit.tokens,
        "real_blocks": list(hit.real_blocks),
        "lcm_block_size": hit.alignment,
        "hit_alignment_tokens": hit.ends_at,
    }


def _hashing(
    specs: Sequence[LayerSpec], block_size: int, config: Fields, rules: Rules
) -> tuple[int, int, int | None]:
    resolved = {
        "block_size": block_size,
        "context_parallel_size": _shards(settings(config), rules),
        "hashes_used": config.get("enable_prefix_caching", True) or bool(config.get("kv_connector")),
        "hash_block_size": config.get("prefix_match_unit", config.get("hash_block_size")),
    }
    if rules.fine_grained_hits:
        cached = config.get("enable_prefix_caching", True)
        return fine_prefix.resolve_block_sizes(specs, **resolved, prefix_caching=cached)
    return (*prefix.resolve_block_sizes(specs, **resolved), None)


def resolve_block_sizes(given: Fields, version: str) -> Fields:
    """Alignment of the scheduler and granularity of hashes."""
    rules = rules_of(version)
    specs = [layer_spec(spec, rules) for spec in given["group_specs"]]
    config = {**given.get("config", {}), **{k: given[k] for k in ("hash_block_size",) if k in given}}
    scheduler, hashed, ends_at = _hashing(specs, given["block_size"], config, rules)
    return {
        "scheduler_block_size": scheduler,
        "hash_block_size": hashed,
        "hit_alignment_tokens": ends_at,
    }


def cpu_offload(given: Fields, version: str) -> Fields:
    """The host pool of the native offload."""
    rules = rules_of(version)
    layers, stages = _stages(given, rules)
    config = given.get("config", {})
    chosen = settings(config)
    groups = group_layers(layers, rules, layout=chosen.layout)
    if rules.packed:
        check_expressible(chosen.layout, groups)
    pool = _pool(given, groups, stages, rules)
    shards = _shards(pool.settings, rules)
    # Since 0.33.0 what no other request can reuse is not stored.
    sizes = [
        group.spec.block_size * (shards if group.spec.dcp_sharded else 1)
        for group in groups
        if group.spec.prefix_cached
    ]
    per_block = _int(pool.bytes_per_block[0])
    world = given["world_size"]
    tp = given.get("tensor_parallel_size", world)
    pooled = sending.cpu_offload(
        bytes_per_block=per_block,
        block_sizes=sizes,
        world_size=world,
        cpu_bytes_to_use=given["cpu_bytes_to_use"],
        offloaded_block_size=given.get("offloaded_block_size"),
        blocks_per_chunk=given.get("blocks_per_chunk"),
        one_copy=rules.shared_host_copy and sending.one_host_copy(groups, chosen, tp, world),
        host_page_bytes=rules.host_page_bytes,
    )
    block_size = given.get("block_size") or groups[0].spec.block_size
    return {
        "num_gpu_blocks": _int(pool.num_blocks),
        "kv_bytes_per_gpu_block_per_worker": per_block,
        "block_size_factor": pooled.block_size_factor,
        "num_cpu_blocks": _int(pooled.num_cpu_blocks),
        "cpu_page_size_per_worker": _int(pooled.cpu_page),
        "kv_bytes_per_chunk": _int(pooled.chunk_bytes),
        "replicated_layout": pooled.one_copy,
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
    **newest_cases.RUNNERS,
    **{
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
    },
}
