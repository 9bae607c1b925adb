"""Answers the kinds of golden cases that came with vLLM 0.33.0: the choice of a layout, places, HiSparse."""

from typing import Any

from ...errors import EngineError
from . import hisparse, sending
from .blocks import num_blocks
from .group import Group
from .grouping import group_layers
from .inputs import Fields, layer_spec, settings
from .layout import check_expressible, resolve
from .placement import placements
from .rules import Rules, rules_of
from .settings import CacheLayout, Settings
from .spec import LayerSpec

ERRORS = {
    "vllm.pages": "page_size_not_unifiable",
    "vllm.layout_mixed_pages": "layout_cannot_express_mixed_pages",
    "vllm.layout_common": "no_common_layout",
}


def max_in_flight_tokens(given: Fields, version: str) -> Fields:
    """Tokens that are scheduled but not yet processed."""
    rules = rules_of(version)
    chosen = Settings(
        pipeline_parallel_size=given["pipeline_parallel_size"],
        async_scheduling=given["async_scheduling"],
        v2_model_runner=given["use_v2_model_runner"],
        max_num_batched_tokens=given["max_num_batched_tokens"],
    )
    batches = rules.batches_in_flight(chosen)
    return {
        "max_concurrent_batches": batches,
        "max_in_flight_tokens": batches * chosen.max_num_batched_tokens,
    }


def kv_cache_layout(given: Fields, version: str) -> Fields:
    """The physical layout of a model."""
    rules = rules_of(version)
    try:
        layout = resolve(
            [layouts and [CacheLayout(name) for name in layouts] for layouts in given["backend_layouts"]],
            [layer_spec(spec, rules) for spec in given["specs"]],
            requested=given.get("requested_layout"),
            connector=given.get("connector_layout"),
        )
    except EngineError as error:
        return {"error": ERRORS.get(error.key, error.key)}
    return {"kv_cache_layout": layout.value, "block_outermost": layout.block_outer}


def kv_tp_replicas(given: Fields, version: str) -> Fields:
    """Ranks that hold the same bytes."""
    rules = rules_of(version)
    groups = [Group(members=((layer_spec(spec, rules), (0,)),)) for spec in given["group_specs"]]
    tp, dcp = given["tensor_parallel_size"], given["decode_context_parallel_size"]
    return {"kv_tp_replicas": sending.copies(groups, tp, dcp)}


def cache_placement(given: Fields, version: str) -> Fields:
    """Where the layers lie in the one allocation."""
    rules = rules_of(version)
    chosen = settings(given.get("config", {}))
    try:
        groups = group_layers(
            _layers(given, rules),
            rules,
            hybrid_manager=not chosen.disable_hybrid_kv_cache_manager,
            layout=chosen.layout,
        )
        check_expressible(chosen.layout, groups)
    except EngineError as error:
        return {"error": ERRORS.get(error.key, error.key)}
    fitting = int(num_blocks(groups, chosen, rules, given["available_memory"]).value)
    count = chosen.num_gpu_blocks_override or fitting
    block = int(rules.block_bytes(groups, chosen.layout).value)
    return {
        "num_blocks": count,
        "backing_bytes": count * block,
        "placements": [
            {
                "num_layers": placed.num_layers,
                "offset": placed.offset,
                "layer_stride_bytes": placed.layer_stride,
                "block_stride_bytes": placed.block_stride,
                "view_shape": list(placed.view_shape),
                "view_strides_bytes": list(placed.view_strides),
            }
            for placed in placements(groups, count, chosen.layout)
        ],
    }


def hisparse_config(given: Fields, version: str) -> Fields:
    """Both pools of HiSparse."""
    rules = rules_of(version)
    chosen = hisparse.HiSparse(
        host_pool_gib=given["host_pool_gib"],
        index_topk=given["index_topk"],
        device_buffer_size=given.get("device_buffer_size"),
        num_speculative_tokens=given.get("num_speculative_tokens", 0),
    )
    pool = hisparse.plan(
        _layers(given, rules), chosen, settings(given["config"]), rules, given["available_memory"]
    )
    source, indexer = pool.source, pool.indexer
    parts: list[dict[str, Any]] = [
        {
            "spec_type": group.spec.type.value,
            "role": role.value,
            "host_resident": role is hisparse.Role.SOURCE,
            "num_layers": group.num_layers,
            "block_size": group.spec.block_size,
            "page_size_bytes": int(group.page.value),
        }
        for group, role in ((source, hisparse.Role.SOURCE), (indexer, hisparse.Role.INDEXER))
    ]
    for name in ("HiSparseResidentSpec", "HiSparseHotSpec"):
        parts += [
            {
                "spec_type": name,
                "role": "default",
                "host_resident": False,
                "num_layers": layers,
                "block_size": spec.block_size,
                "page_size_bytes": spec.page_size_bytes,
            }
            for spec, layers in pool.hot
        ]
    answer = {"groups": parts, "pool_bytes_per_block": int(pool.bytes_per_block.value)}
    lacking = pool.lacking
    if lacking is not None:
        reason = "host" if lacking is hisparse.Role.SOURCE else "device"
        return answer | {"fits": False, "reason": reason}
    return answer | {
        "fits": True,
        "num_blocks": int(pool.num_blocks.value),
        "host_num_blocks": int(pool.host_num_blocks.value),
        "device_blocks_per_request": int(pool.blocks_per_request.value),
        "host_blocks_per_request": int(pool.host_blocks_per_request.value),
        "kv_cache_size_tokens": pool.reported_tokens,
    }


def _layers(given: Fields, rules: Rules) -> list[LayerSpec]:
    specs = {name: layer_spec(spec, rules) for name, spec in given["specs"].items()}
    return [specs[name] for name in given["layers"]]


RUNNERS = {
    runner.__name__: runner
    for runner in (
        max_in_flight_tokens,
        kv_cache_layout,
        kv_tp_replicas,
        cache_placement,
        hisparse_config,
    )
}
