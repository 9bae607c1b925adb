"""From groups and memory to blocks, and from blocks to requests.

Source: vLLM 0.22.0 `v1/core/kv_cache_utils.py`, 0.33.0 `v1/core/kv_cache_planning.py`,
`get_kv_cache_configs`. `groups` are those of one pipeline stage.
"""

from collections.abc import Sequence
from dataclasses import replace

from ...explain import Expression, lift, symbol, total
from .group import Group
from .growth import request_pages
from .rules import Rules
from .settings import Settings

Groups = Sequence[Group]


def bytes_per_block(groups: Groups, settings: Settings, rules: Rules) -> Expression:
    """Bytes of one block over all layers of the stage; 0 for a model without a cache."""
    return rules.block_bytes(groups, settings.layout) if groups else lift(0)


def num_blocks(groups: Groups, settings: Settings, rules: Rules, available_bytes: int) -> Expression:
    """Blocks that fit into `available_bytes`; one, the null block, for a model without a cache."""
    if not groups:
        return lift(1)
    block = symbol("block", rules.divided_by(groups, settings.layout))
    return symbol("available", max(0, available_bytes)) // block


def group_pages(group: Group, settings: Settings, rules: Rules) -> Expression:
    """The most pages that one request needs in a group."""
    pages = (request_pages(spec, settings, rules) for spec, _ in group.members)
    return max(pages, key=lambda expression: expression.value)


def request_bytes(groups: Groups, settings: Settings, rules: Rules) -> Expression:
    """Bytes that one request of `max_model_len` tokens can need.

    Source: `_max_memory_usage_bytes_from_groups`.
    """
    pages = total(symbol("n", group_pages(group, settings, rules)) for group in groups)
    return pages * symbol("block", bytes_per_block(groups, settings, rules))


def needed_bytes(groups: Groups, settings: Settings, rules: Rules) -> Expression:
    """What the fit check compares with the memory."""
    request, beside = request_bytes(groups, settings, rules), rules.blocks_beside_requests
    return (
        request
        if not beside
        else request + beside * symbol("block", bytes_per_block(groups, settings, rules))
    )


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
    if fits(groups, settings, rules, available_bytes):
        return longest
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
    if not groups:
        return lift(0)
    return rules.weigh([(group_pages(group, settings, rules), group.page) for group in groups])


def reported_tokens(num_blocks: int, blocks_per_request: int, max_model_len: int) -> int:
    """The engine's "GPU KV cache size": ⌊blocks / blocks per request · T⌋, in doubles as there."""
    return int(num_blocks / blocks_per_request * max_model_len)
