"""Attention beside state: blocks so long that a page of attention holds a whole state.

Source: vLLM 0.22.0 and 0.33.0 `platforms/interface.py`, `_align_hybrid_block_size`.
"""

from dataclasses import dataclass
from math import lcm

from ...explain import Expression, ceiling, most, round_up, symbol
from .settings import MambaMode


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """The block size of attention, that of the states (None: unchanged), the states' page (None: as is)."""

    block_size: Expression
    mamba_block_size: Expression | None
    mamba_page_padded: Expression | None


def align(
    *,
    token_page: int,
    state_page: int,
    block_size: int,
    kernel_block_size: int,
    mode: MambaMode,
    mamba_chunk_size: int = 1,
    backend_block_size: int = 1,
    checkpoint_alignment: int = 1,
) -> Alignment:
    """Blocks of attention (`token_page` bytes per token and layer) beside states of `state_page` bytes.

    Since 0.33.0 blocks are whole ones of all attention backends (`backend_block_size`, the least common
    multiple) and, in mode `align`, end where the state layers can export a checkpoint.
    """
    chosen = symbol("B", block_size)
    if state_page == 0:
        return Alignment(block_size=chosen, mamba_block_size=None, mamba_page_padded=None)
    token, state = symbol("a_1", token_page), symbol("m", state_page)
    least = max(kernel_block_size, block_size)
    kernel = symbol("k", lcm(least, checkpoint_alignment) if mode is MambaMode.ALIGN else least)
    if mode is MambaMode.ALL:
        chunk = symbol("chunk", lcm(mamba_chunk_size, int(kernel.value)))
        needed = chunk * ceiling(ceiling(state, token), chunk)
    else:
        needed = kernel * ceiling(state, kernel * token)
        if needed.value % backend_block_size:
            needed = round_up(needed, symbol("b", backend_block_size))
    aligned = most(chosen, needed)
    page = aligned * token
    of_states = {MambaMode.ALL: needed, MambaMode.ALIGN: aligned, MambaMode.NONE: None}[mode]
    return Alignment(
        block_size=aligned,
        mamba_block_size=of_states,
        mamba_page_padded=None if page.value == state.value else page,
    )
