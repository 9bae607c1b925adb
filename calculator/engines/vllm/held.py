"""Blocks that a request really holds, as a function of its computed tokens.

Before each step the blocks wholly in front of what is still needed are freed; then blocks for the step's
tokens are taken. Source: vLLM 0.22.0 `v1/core/single_type_kv_cache_manager.py`, called by `allocate_slots`.
"""

from .progression import greatest_residue, reaches
from .settings import MambaMode
from .spec import LayerSpec, SpecType


def _ceiling(a: int, b: int) -> int:
    return -(-a // b)


def skipped_tokens(spec: LayerSpec, computed: int) -> int:
    """Tokens, of `computed`, that no later step needs. Source: `get_num_skipped_tokens`."""
    match spec.type:
        case SpecType.SLIDING_WINDOW | SpecType.SLIDING_WINDOW_MLA | SpecType.MAMBA:
            return max(0, computed - _reach(spec) + 1)
        case SpecType.CHUNKED_LOCAL:
            return computed - computed % (spec.chunk or 1)
        case _:
            return 0


def blocks_held(spec: LayerSpec, computed: int, new: int, *, shards: int = 1, encoder_tokens: int = 0) -> int:
    """Blocks held during a step of `new` tokens after `computed` ones, on one of `shards` ranks.

    A layer of cross attention holds the blocks of its `encoder_tokens` all the time. In mode `align` the
    steps of a prompt are those of vLLM's scheduler: whole blocks, but for the last.
    """
    if spec.type is SpecType.ENCODER_ONLY:
        return 0
    if spec.type is SpecType.CROSS:
        return _ceiling(encoder_tokens, spec.block_size)
    block = spec.block_size * shards
    kept = _ceiling(computed + new, block) - skipped_tokens(spec, computed) // block
    return _with_drafts(spec, kept, started=computed > 0)


def prefill_peak(spec: LayerSpec, prompt: int, step: int, *, shards: int = 1, encoder_tokens: int = 0) -> int:
    """The most blocks held while a prompt is computed in chunks of `step` tokens."""
    full, rest = divmod(prompt, step)
    peaks = [_peak(spec, 0, step, full, shards, encoder_tokens)] if full else []
    if rest:
        peaks.append(blocks_held(spec, prompt - rest, rest, shards=shards, encoder_tokens=encoder_tokens))
    return max(peaks)


def decode_peak(
    spec: LayerSpec, prompt: int, output: int, *, shards: int = 1, encoder_tokens: int = 0
) -> int:
    """The most blocks held while `output` tokens are decoded one by one; 0 without any."""
    return _peak(spec, prompt, 1, output, shards, encoder_tokens) if output else 0


def _reach(spec: LayerSpec) -> int:
    """w, such that the last w - 1 tokens are still needed.

    A state needs its newest position, and as many before it as drafts may be undone.
    """
    return spec.num_speculative_blocks + 2 if spec.type is SpecType.MAMBA else spec.window or 1


def _with_drafts(spec: LayerSpec, kept: int, *, started: bool) -> int:
    if spec.type is not SpecType.MAMBA:
        return kept
    if spec.mamba_cache_mode is MambaMode.ALIGN:
        # Only the last state and the one of this step are real; blocks between are null.
        kept = min(kept, 2 if started else 1)
    return kept + spec.num_speculative_blocks


def _peak(spec: LayerSpec, first: int, step: int, count: int, shards: int, encoder_tokens: int) -> int:
    """The most held over `count` steps of `step` tokens, the first after `first` computed ones."""
    block = spec.block_size * shards
    match spec.type:
        case SpecType.SLIDING_WINDOW | SpecType.SLIDING_WINDOW_MLA:
            return _window_peak(first, step, count, _reach(spec), block)
        case SpecType.CHUNKED_LOCAL:
            return _chunk_peak(first, step, count, spec.chunk or 1, block)
        case SpecType.MAMBA:
            at_start = blocks_held(spec, first, step, shards=shards)
            if count == 1:
                return at_start
            kept = _window_peak(first + step, step, count - 1, _reach(spec), block)
            return max(at_start, _with_drafts(spec, kept, started=True))
        case _:
            last = first + (count - 1) * step
            return blocks_held(spec, last, step, shards=shards, encoder_tokens=encoder_tokens)


def _window_peak(first: int, step: int, count: int, window: int, block: int) -> int:
    """The most of ⌈(x + step) / B⌉ - ⌊max(0, x - w + 1) / B⌋ over x = first, first + step and so on."""
    whole = min(count, max(0, (window - 1 - first) // step + 1))  # steps before anything is skipped
    peak = _ceiling(first + whole * step, block) if whole else 0
    if whole == count:
        return peak
    # From here on both ends move together, so only the place of the window in its first block matters.
    start, moving = first + whole * step - window + 1, count - whole
    blocks, over = divmod(step + window - 1, block)
    if over > 1 and reaches(start, step, moving, block, block - over + 1):
        blocks += 2
    elif over or reaches(start, step, moving, block, 1):
        blocks += 1
    return max(peak, blocks)


def _chunk_peak(first: int, step: int, count: int, chunk: int, block: int) -> int:
    """The most of ⌈(x + step) / B⌉ - ⌊(x - x mod c) / B⌋ over x = first, first + step and so on."""
    if chunk % block == 0:
        return _ceiling(greatest_residue(first, step, count, chunk) + step, block)
    # Chunks begin at other places of their block each time: the last step of every chunk counts.
    last = first + (count - 1) * step
    ends = (
        min(last, first + ((number + 1) * chunk - 1 - first) // step * step)
        for number in range(first // chunk, last // chunk + 1)
    )
    return max(_ceiling(x + step, block) - (x - x % chunk) // block for x in ends)
