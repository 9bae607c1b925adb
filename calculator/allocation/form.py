"""The one form in which both engines' allocations are shown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..explain import Derivation, Expression, symbol, total
from ..footprint import Amounts, Parts
from ..scenario import Scenario

Sentence = tuple[str, Mapping[str, object]]  # a key of the catalogues and what fills it


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of the capacity; `unit` is "bytes", "blocks", "tokens", "requests" or "times"."""

    name: str
    unit: str
    value: Expression


class Reason(StrEnum):
    """Why an engine takes other bytes than stored. The words are under part.<reason> in the catalogues."""

    OTHER_STAGES = "other_stages"  # layers of other pipeline stages
    ATTENTION_RANKS = "attention_ranks"  # heads shared by fewer ranks, under DP attention
    STORED_FORM = "stored_form"  # scales, formats and copies of the engine's own rows
    WINDOWS_KEPT = "windows_kept"  # window layers that keep all tokens
    STEPS_UNDER_WAY = "steps_under_way"  # tokens of the steps under way, beside a window
    ENCODER_TOKENS = "encoder_tokens"  # room for encoder tokens
    STATE_COPIES = "state_copies"  # further states
    CONTEXT_RANKS = "context_ranks"  # tokens shared by the ranks of context parallelism
    BLOCK_ROUNDING = "block_rounding"  # the last block
    WINDOW_BLOCK = "window_block"  # a window may begin inside a block
    PAGE_PADDING = "page_padding"  # padding inside a page
    SHARED_BLOCKS = "shared_blocks"  # groups of fewer layers take whole blocks
    PAGE_ROUNDING = "page_rounding"  # the last page
    WINDOW_PAGES = "window_pages"  # whole pages of windows, and their state rings


Step = tuple[Reason, Expression, Expression]  # why, bytes per token, bytes of one request


@dataclass(frozen=True, kw_only=True)
class Part:
    """What lies between stored and allocated bytes for one reason; below 0 where it saves.

    `total_bytes` is of all sequences at the context.
    """

    reason: Reason
    bytes_per_token: Expression
    total_bytes: Expression


@dataclass(frozen=True, kw_only=True)
class Allocated:
    """What one rank of the fullest pipeline stage allocates.

    `per_rank` are the four figures with an engine's scales, padding and block rounding; `capacity` says what
    fits into `available_memory_bytes`; `difference` is what `per_rank` has beside the logical bytes, reason
    by reason, and exact in its sums; `request` is what a request of so many tokens may take, and `held`
    what it holds while the last of them is decoded; `fits` is False where the engine would not start for lack
    of memory.
    """

    engine: str
    version: str
    per_rank: Amounts
    difference: tuple[Part, ...]
    capacity: tuple[Figure, ...]
    transfer: tuple[Figure, ...]  # what goes from prefill to decode for one request at the context
    request: Callable[[int], Parts]
    held: Callable[[int], Parts]
    steps: tuple[int, ...]  # tokens after which a request takes another block or page
    fits: bool
    notes: tuple[Sentence, ...]
    derivations: tuple[Derivation, ...]


DIFFERENCE = ("bytes_per_token", "total_bytes")  # the quantities whose difference is split


def split(steps: Iterable[Step], sequences: int) -> tuple[Part, ...]:
    """The parts that are not zero; the same reason may come more than once."""
    rates: dict[Reason, list[Expression]] = {}
    totals: dict[Reason, list[Expression]] = {}
    for reason, rate, one in steps:
        rates.setdefault(reason, []).extend([rate] if rate.value else [])
        totals.setdefault(reason, []).extend([one] if one.value else [])
    return tuple(
        Part(
            reason=reason,
            bytes_per_token=total(rates[reason]),
            total_bytes=total(ones) if sequences == 1 else symbol("N", sequences) * total(ones),
        )
        for reason, ones in totals.items()
        if ones or rates[reason]
    )


def difference_derivations(parts: Sequence[Part], source: str) -> list[Derivation]:
    """One line per part and quantity."""
    return [
        Derivation(quantity=f"difference.{part.reason}.{name}", expression=getattr(part, name), source=source)
        for part in parts
        for name in DIFFERENCE
    ]


def max_model_len(scenario: Scenario) -> int:
    """The longest request that the server is started for: as chosen, else the context."""
    return scenario.serving.max_model_len or scenario.context_tokens


def of_all(scenario: Scenario, request: Expression) -> Expression:
    """Bytes of all sequences, from those of one."""
    one = symbol("request", request)
    return one if scenario.num_sequences == 1 else symbol("N", scenario.num_sequences) * one
