"""From groups and memory to blocks, and from blocks to requests.

Source: vLLM 0.22.0 `v1/core/kv_cache_utils.py`, `get_kv_cache_configs`. `groups` are those of one pipeline
stage.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...explain import Expression, lift, symbol, total
from .group import Group
from .growth import request_bytes as layer_bytes
from .growth import request_pages
from .rules import Rules
from .settings import Settings

Groups = Sequence[Group]


def one_container(groups: Groups) -> bool:
    """A single group of layers with different pages."""
    return len(groups) == 1 and groups[0].container


def deepseek_v4(groups: Groups) -> bool:
    """Several groups, all of them containers."""
    return len(groups) > 1 and all(group.container for group in groups)


def bytes_per_block(groups: Groups) -> Expression:
    """Bytes of one block over all layers of the stage. Source: `_pool_bytes_per_block`."""
    if not groups:
        return lift(0)
    if one_container(groups):
        return groups[0].page
    if deepseek_v4(groups):
        tuples = max(max(group.page_counts.values()) for group in groups)
        return _tuple_bytes(groups) * symbol("n_tuples", tuples)
    return groups[0].page * symbol("L_group", max(group.num_layers for group in groups))


def num_blocks(groups: Groups, available_bytes: int) -> Expression:
    """Blocks that fit into `available_bytes`; one, the null block, for a model without a cache."""
    if not groups:
        return lift(1)
    available = symbol("available", max(0, available_bytes))
    if deepseek_v4(groups):
        # Groups that have no layer here take part in the price of a block, not in its division.
        here = [group for group in groups if group.present]
        tuples = max(max(group.page_counts.values()) for group in here)
        return available // (_tuple_bytes(groups) * symbol("n_tuples", tuples))
    return available // symbol("block", bytes_per_block(groups))


def tensors(groups: Groups) -> tuple[tuple[int, int], ...]:
    """The cache tensors of the stage: (bytes per block, how many of them)."""
    if not groups:
        return ()
    if one_container(groups):
        return tuple(groups[0].page_counts.items())
    if deepseek_v4(groups):
        tuples = max(max(group.page_counts.values()) for group in groups if group.present)
        return tuple((page_size, tuples) for page_size in sorted(groups[0].page_counts))
    return ((int(groups[0].page.value), max(group.num_layers for group in groups)),)


def group_pages(group: Group, settings: Settings, rules: Rules) -> Expression:
    """The most pages that one request needs in a group."""
    pages = (request_pages(spec, settings, rules) for spec, _ in group.members)
    return max(pages, key=lambda expression: expression.value)


def request_bytes(groups: Groups, settings: Settings, rules: Rules) -> Expression:
    """Bytes that one request of `max_model_len` tokens can need.

    Source: `_max_memory_usage_bytes_from_groups`.
    """
    if one_container(groups):
        return total(
            symbol("L", len(layers)) * layer_bytes(spec, settings, rules)
            for spec, layers in groups[0].members
        )
    pages = total(symbol("n", group_pages(group, settings, rules)) for group in groups)
    return pages * symbol("block", bytes_per_block(groups))


def needed_bytes(groups: Groups, settings: Settings, rules: Rules) -> Expression:
    """What the fit check compares with the memory."""
    request, beside = request_bytes(groups, settings, rules), rules.blocks_beside_requests
    return request if not beside else request + beside * symbol("block", bytes_per_block(groups))


def fits(groups: Groups, settings: Settings, rules: Rules, available_bytes: int) -> bool:
    """Whether one request of `max_model_len` tokens fits; without a cache it always does."""
    if not groups:
        return True
    return available_bytes > 0 and needed_bytes(groups, settings, rules).value <= available_bytes


def longest_that_fits(groups: Groups, settings: Settings, rules: Rules, available_bytes: int) -> int:
    """The longest context, up to `max_model_len`, of which one request fits; 0 if none does.

    Source: `_estimate_max_model_len_from_groups`. What a request needs never falls with its length.
    """
    shortest, longest = 0, settings.max_model_len
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if fits(groups, replace(settings, max_model_len=middle), rules, available_bytes):
            shortest = middle
        else:
            longest = middle - 1
    return shortest


def blocks_per_request(groups: Groups, settings: Settings, rules: Rules) -> Expression:
    """Blocks that one request takes in the engine's concurrency.

    Source: `get_max_concurrency_for_kv_cache_config`.
    """
    return rules.weigh([(group_pages(group, settings, rules), group.page) for group in groups])


def reported_tokens(num_blocks: int, blocks_per_request: int, max_model_len: int) -> int:
    """The engine's "GPU KV cache size": ⌊blocks / blocks per request · T⌋, in doubles as there."""
    return int(num_blocks / blocks_per_request * max_model_len)


def _tuple_bytes(groups: Iterable[Group]) -> Expression:
    first = next(iter(groups))
    return total(symbol("page", page_size) for page_size in sorted(first.page_counts))
