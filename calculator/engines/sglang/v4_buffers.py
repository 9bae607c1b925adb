"""The buffers of DeepSeek-V4's and V4.1's pools in SGLang 0.5.23.

Every buffer has a spare logical page. What a request keeps of its own, C128 states and V4.1's pair states, is
sent with the request, not with the pages of its windows. Source: SGLang 0.5.23
`mem_cache/deepseek_v4_memory_pool.py`, `mem_cache/deepseek_v4_compress_state.py`.
"""

from collections.abc import Iterator

from ...explain import Expression, ceiling, round_up, symbol
from .buffers import Buffer, Pool, Sent
from .v4_paged import INDEX_PAGE, LOW_RATIOS, PagedBudget, PagedSizes, state_widths


def v4_pool(budget: PagedBudget, sizes: PagedSizes) -> Pool:
    """DeepSeekV4TokenToKVPool."""
    buffers = [_rows(budget, "swa", 0, symbol("swa", sizes.window), budget.model.layers)]
    if not budget.model.owners.keys() & set(LOW_RATIOS):
        buffers += _compressed(budget, sizes)
    return Pool(name="DeepSeekV4TokenToKVPool", buffers=(*buffers, *_low_ratios(budget, sizes)))


def _compressed(budget: PagedBudget, sizes: PagedSizes) -> Iterator[Buffer]:
    """Entries, index keys and states of ratios 4 and 128."""
    model, options, page = budget.model, budget.options, symbol("P", budget.page_size)
    layers4, layers128 = model.owners.get(4, 0), model.owners.get(128, 0)
    yield _rows(budget, "c4", 4, symbol("c4", sizes.c4), layers4)
    yield _rows(budget, "c128", 128, symbol("c128", sizes.c128), layers128)
    logical = 32 * symbol("c128", sizes.c128)  # index keys of all tokens stay, wherever the C4 rows are
    yield Buffer(
        name="c4_indexer_buffer",
        shape=(ceiling(logical + page, page // 4), page // 4 * budget.index_bytes(fp4=options.fp4_indexer)),
        element="uint8",
        layers=symbol("L4", layers4),
        sent=Sent.PAGES,
    )
    widths, ring4 = state_widths(model, options), symbol("R4", options.ring(4))
    c4_slots = round_up(symbol("size", sizes.c4_state) + ring4 + 1, 4)
    yield _states(budget, "c4_state", c4_slots, widths.c4, layers4, ring4)
    ring128 = symbol("R128", options.ring(128))
    c128_slots = symbol("size", sizes.c128_state) + 2
    if not options.online_c128:
        c128_slots = round_up(symbol("size", sizes.c128_state) + ring128 + 1, 128)
    yield _states(budget, "c128_state", c128_slots, widths.c128, layers128, ring128, Sent.REQUEST)
    yield _states(budget, "c4_indexer_state", c4_slots, widths.index, layers4, ring4)


def _low_ratios(budget: PagedBudget, sizes: PagedSizes) -> Iterator[Buffer]:
    """Entries and index keys of V4.1's key-value sources, and their pair states."""
    page, full = symbol("P", budget.page_size), symbol("full", sizes.full)
    for ratio in LOW_RATIOS:
        layers = budget.model.owners.get(ratio, 0)
        if layers:
            yield _rows(budget, f"c{ratio}", ratio, full // ratio, layers)
            entries = (full + page) // ratio
            yield Buffer(
                name=f"c{ratio}_indexer_buffer",
                shape=(ceiling(entries + INDEX_PAGE, INDEX_PAGE), INDEX_PAGE * budget.index_bytes(fp4=True)),
                element="uint8",
                layers=symbol(f"L{ratio}", layers),
                item_rows=page // ratio // INDEX_PAGE,
                sent=Sent.PAGES,
            )
    if budget.model.owners.get(2, 0):
        ring = symbol("R2", budget.options.ring(2))
        rows = round_up(budget.slots(sizes.requests) * ring + ring + 1, 2)
        width = 2 * symbol("d", budget.model.head_size)
        yield Buffer(
            name="c2_state",
            shape=(rows, width),
            element="float32",
            layers=symbol("L2", budget.model.owners[2]),
            item_rows=ring,
            sent=Sent.REQUEST,
        )


def _rows(budget: PagedBudget, name: str, ratio: int, entries: Expression, layers: int) -> Buffer:
    """Pages of one record; windows go with the end of the prompt, all others page by page."""
    page, record = symbol("P", budget.page_size), budget.record(ratio)
    per_page = page // ratio if ratio else page
    return Buffer(
        name=f"{name}_kv_buffer",
        shape=(ceiling(entries + page, per_page), record.page_bytes(per_page)),
        padding=record.page_bytes(per_page) - record.entries_bytes(per_page),
        element="uint8",
        layers=symbol(f"L{ratio}" if ratio else "L", layers),
        sent=Sent.PAGES if ratio else Sent.EXTRA,
    )


def _states(
    budget: PagedBudget,
    name: str,
    rows: Expression,
    width: Expression,
    layers: int,
    ring: Expression,
    sent: Sent = Sent.EXTRA,
) -> Buffer:
    """Slots of states: a `ring` per page of the windows, or per request."""
    return Buffer(
        name=name,
        shape=(rows, width),
        element="float32" if budget.options.state_bytes == 4 else "bfloat16",
        layers=symbol("L_state", layers),
        item_rows=ring,
        sent=sent,
        state=sent is Sent.EXTRA,
    )
