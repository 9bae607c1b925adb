"""Which order of the axes a model's cache has: one layout, chosen once for all layers.

Source: vLLM 0.33.0 `v1/attention/backends/utils.py`, `resolve_kv_cache_layout`.
"""

from collections import Counter
from collections.abc import Sequence

from ...errors import EngineError
from .group import Group
from .settings import CacheLayout
from .spec import LayerSpec, SpecType

# What is preferred where no backend asks for an order.
PREFERRED = (
    CacheLayout.LBNHC,
    CacheLayout.LBHNC,
    CacheLayout.BLNHC,
    CacheLayout.BLHNC,
    CacheLayout.BHLNC,
    CacheLayout.LHBNC,
)
# DeepSeek-V4's indexer declares these.
V4_LAYOUTS = (CacheLayout.BLHNC, CacheLayout.BLNHC)
ALIASES = {"NHD": CacheLayout.LBNHC, "HND": CacheLayout.LBHNC}


def resolve(
    backends: Sequence[Sequence[CacheLayout] | None],
    specs: Sequence[LayerSpec],
    *,
    requested: str | None = None,
    connector: str | None = None,
) -> CacheLayout:
    """The layout of a model with these attention backends; each gives what it supports, None for any.

    `requested` is `VLLM_KV_CACHE_LAYOUT`; a `connector`'s wish is dropped where it does not fit.

    Raises:
        EngineError: no layout suits all backends and these pages, or not the requested one.
    """
    candidates = _common(backends)
    shapes = {(spec.head_slots.value, spec.states.value, spec.page_size_bytes) for spec in specs}
    if len(shapes) > 1:
        candidates = [layout for layout in candidates if layout.whole_pages]
        if not candidates:
            raise EngineError("vllm.layout_mixed_pages", sizes=_sizes(specs))
    sharded = {spec.dcp_sharded for spec in specs if spec.type not in (SpecType.MAMBA, SpecType.RING)}
    if len(sharded) > 1 and len({spec.page_size_bytes for spec in specs}) > 1:
        candidates = [layout for layout in candidates if layout.block_outer]
        if not candidates:
            raise EngineError("vllm.layout_mixed_pages", sizes=_sizes(specs))
    if requested is not None:
        chosen = ALIASES.get(requested) or CacheLayout(requested)
        if chosen not in candidates:
            raise EngineError("vllm.layout_requested", layout=chosen.value, layouts=", ".join(candidates))
        return chosen
    wished = None if connector is None else ALIASES.get(connector) or CacheLayout(connector)
    return wished if wished in candidates else candidates[0]


def check_expressible(layout: CacheLayout, groups: Sequence[Group]) -> None:
    """Whether the pages of these groups fit into the layout. Source: `validate_kv_cache_layout`.

    Raises:
        EngineError: pages of several sizes, or with a gap behind each, in a layout that takes none.
    """
    specs = [spec for group in groups for spec, _ in group.members]
    mixed = len({spec.page_size_bytes for spec in specs}) > 1
    if mixed and (not layout.whole_pages or (len(groups) > 1 and not layout.block_outer)):
        raise EngineError("vllm.layout_mixed_pages", sizes=_sizes(specs))
    # Where heads lie outside of the layers or blocks, a page is no run of bytes that could end in a gap.
    if not layout.whole_pages and any(_has_gap(spec) for spec in specs):
        raise EngineError("vllm.layout_padding", layout=layout.value)


def _has_gap(spec: LayerSpec) -> bool:
    """Padding behind a page of several head slots, or between two blocks of a layer."""
    padded = spec.page_size_padded is not None or spec.page_size_bytes > spec.real_page.value
    return (padded and spec.head_slots.value > 1) or spec.stride.value > spec.page_size_bytes


def _common(backends: Sequence[Sequence[CacheLayout] | None]) -> list[CacheLayout]:
    """What every backend supports, the most wished first. Source: `get_supported_kv_cache_layouts`."""
    declared = [list(layouts) for layouts in backends if layouts is not None] or [list(PREFERRED)]
    if all(layouts == declared[0] for layouts in declared):
        return declared[0]
    first = Counter(layouts[0] for layouts in declared)
    common = [layout for layout in CacheLayout if all(layout in layouts for layouts in declared)]
    if not common:
        raise EngineError("vllm.layout_common")
    return sorted(common, key=lambda layout: -first[layout])


def _sizes(specs: Sequence[LayerSpec]) -> str:
    return ", ".join(map(str, sorted({spec.page_size_bytes for spec in specs})))
