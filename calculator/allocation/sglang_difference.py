"""What a request holds on SGLang, and why it is more, or less, than is stored."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..caches import FullAttention
from ..engines import sglang
from ..engines.sglang.buffers import Sent
from ..engines.sglang.held import Family
from ..explain import Expression, ceiling, least, lift, symbol
from ..footprint import Footprint, footprint
from ..formats import FP8_V4
from ..model import ModelPlan
from ..scenario import Scenario
from .form import Reason, Step

NOTHING = lift(0)
WINDOWS = (Family.WINDOW, Family.V4)
INDEXED = (Family.SPARSE, Family.SPARSE_ATTENTION)


@dataclass(frozen=True, kw_only=True)
class Held:
    """One request on a rank of the tightest stage: its pages, those of its windows, and its states.

    States are one slot, or rings beside every page of a window (DeepSeek-V4).
    """

    page_size: int
    pages: Expression
    page_bytes: Expression  # over all layers, index keys included
    page_padding: Expression
    window_pages: Expression
    most_window_pages: Expression
    window_bytes: Expression
    window_padding: Expression
    state_bytes: Expression
    slots: Expression
    most_slots: Expression
    request_bytes: Expression  # what the request keeps beside its pages

    @classmethod
    def of(cls, made: sglang.Allocation, tokens: int, windows: tuple[int, ...]) -> "Held":
        """What a request of `tokens` holds; `windows` are the lengths of the model's windows."""
        pool, page = made.tightest.pool, symbol("P", made.page_size)
        pages = ceiling(symbol("T", tokens), page)
        family = made.family
        states = symbol("states", pool.state_bytes)
        extra = (
            symbol("extra", pool.extra_bytes) - states if states.value else symbol("extra", pool.extra_bytes)
        )
        page_bytes = symbol("page", pool.held_page_bytes)
        # A window may begin inside a page, so its tokens can touch one page more.
        most = ceiling(symbol("w", max(windows)), page) + (made.page_size > 1) if windows else NOTHING
        held = least(pages, most)
        return cls(
            page_size=made.page_size,
            pages=pages,
            page_bytes=page_bytes + extra if family in INDEXED else page_bytes,
            page_padding=symbol("padding", pool.padding_bytes(Sent.PAGES)),
            window_pages=held,
            most_window_pages=most,
            window_bytes=extra if family in WINDOWS else NOTHING,
            window_padding=symbol("padding_w", pool.padding_bytes(Sent.EXTRA)),
            state_bytes=states,
            slots=held if family is Family.V4 else lift(1),
            most_slots=most if family is Family.V4 else lift(1),
            request_bytes=symbol("request", pool.request_bytes),
        )

    def states(self, slots: Expression) -> Expression:
        """State of so many slots, and what the request keeps beside its pages."""
        held = self.state_bytes * symbol("slots", slots)
        return held + self.request_bytes if self.request_bytes.value else held

    @property
    def total_bytes(self) -> Expression:
        """Bytes of all of them."""
        windows = symbol("pages_w", self.window_pages) * self.window_bytes
        return symbol("pages", self.pages) * self.page_bytes + windows + self.states(self.slots)


def reasons(made: sglang.Allocation, held: Held, scenario: Scenario, plan: ModelPlan) -> Iterator[Step]:
    """Every reason on the tightest stage."""
    stage, storage, tp = made.tightest, scenario.storage, scenario.tensor_parallel_size
    here = ModelPlan(layers=plan.layers[stage.first : stage.end])
    tokens = scenario.context_tokens
    stored = footprint(plan, storage, tp)
    of_stage = footprint(here, storage, tp)
    ranks = footprint(here, storage, made.attention_tp)
    formed = replace(storage, kv=FP8_V4) if made.family is Family.V4 else storage
    forgetting = made.family in WINDOWS
    kept = ranks if forgetting else footprint(_unforgetting(here), storage, made.attention_tp)
    rows = footprint(here, formed, made.attention_tp) if forgetting else kept
    yield _step(Reason.OTHER_STAGES, stored, of_stage, tokens)
    yield _step(Reason.ATTENTION_RANKS, of_stage, ranks, tokens)
    yield _step(Reason.WINDOWS_KEPT, ranks, kept, tokens)
    page, padding = held.page_bytes - held.page_padding, held.page_padding
    share = page / symbol("P", held.page_size)
    before, after = kept.parts(tokens), rows.parts(tokens)
    linear = symbol("rows", after.linear) if made.family is Family.V4 else share * symbol("T", tokens)
    states = symbol("states", after.constant) if made.family is Family.V4 else held.state_bytes
    own = linear + symbol("windows", after.bounded) + states
    yield Reason.STORED_FORM, share - symbol("stored", _rate(kept)), own - symbol("stored", before.total)
    yield Reason.PAGE_ROUNDING, NOTHING, symbol("pages", held.pages) * page - linear
    windows = symbol("pages_w", held.window_pages)
    yield (
        Reason.WINDOW_PAGES,
        NOTHING,
        windows * (held.window_bytes - held.window_padding)
        - symbol("windows", after.bounded)
        + (held.states(held.slots) - states),
    )
    yield (
        Reason.PAGE_PADDING,
        padding / symbol("P", held.page_size),
        symbol("pages", held.pages) * padding + windows * held.window_padding,
    )


def _step(reason: Reason, before: Footprint, after: Footprint, tokens: int) -> Step:
    rate = symbol("after", _rate(after)) - symbol("before", _rate(before))
    return (
        reason,
        rate,
        symbol("after", after.parts(tokens).total) - symbol("before", before.parts(tokens).total),
    )


def _rate(found: Footprint) -> Expression:
    return found.amounts(1, 1).bytes_per_token


def _unforgetting(plan: ModelPlan) -> ModelPlan:
    """The same with windows that keep all tokens."""
    return ModelPlan(
        layers=tuple(
            tuple(
                FullAttention(
                    num_kv_heads=cache.num_kv_heads,
                    head_size=cache.head_size,
                    head_size_v=cache.head_size_v,
                )
                if isinstance(cache, FullAttention) and cache.bound is not None
                else cache
                for cache in layer
            )
            for layer in plan.layers
        )
    )
