"""Blocks that a request really holds, as a function of its computed tokens.

Before each step the blocks wholly in front of what is still needed are freed; then blocks for the step's
tokens are taken. What is needed follows from the tokens that are processed: with several batches under way
(since 0.33.0) those of the steps before. Source: vLLM 0.22.0 and 0.33.0
`v1/core/single_type_kv_cache_manager.py`, called by `allocate_slots`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .progression import greatest_residue, reaches
from .settings import MambaMode
from .spec import LayerSpec, SpecType


def _ceiling(a: int, b: int) -> int:
    return -(-a // b)


def _block(spec: LayerSpec, shards: int) -> int:
    """Tokens of a block over the ranks that share them out."""
    return spec.block_size * (shards if spec.dcp_sharded else 1)


def skipped_tokens(spec: LayerSpec, processed: int) -> int:
    """Tokens, of `processed`, that no later step needs. Source: `get_num_skipped_tokens`."""
    match spec.type:
        case SpecType.SLIDING_WINDOW | SpecType.SLIDING_WINDOW_MLA | SpecType.MAMBA:
            return max(0, processed - _reach(spec) + 1)
        case SpecType.CHUNKED_LOCAL:
            return processed - processed % (spec.chunk or 1)
        case _:
            return 0


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a request is computed: its prompt in chunks of `step` tokens, then one token per step.

    `shards` ranks share its tokens; `encoder_tokens` are those of cross attention; `batches` are under way at
    once.
    """

    prompt: int
    step: int
    shards: int = 1
    encoder_tokens: int = 0
    batches: int = 1

    def start(self, number: int) -> int:
        """Tokens computed before a step of this number; none before the first."""
        chunks = _ceiling(self.prompt, self.step)
        if number < chunks:
            return max(0, number) * self.step
        return self.prompt + number - chunks

    @property
    def chunks(self) -> int:
        """Steps of the prompt."""
        return _ceiling(self.prompt, self.step)

    def held(self, spec: LayerSpec, number: int) -> int:
        """Blocks held during a step of this number."""
        computed = self.start(number)
        new = min(self.step, self.prompt - computed) if number < self.chunks else 1
        return blocks_held(
            spec,
            computed,
            new,
            shards=self.shards,
            encoder_tokens=self.encoder_tokens,
            under_way=[self.start(number - lag) for lag in range(1, self.batches)],
            prompt=self.prompt,
        )

    def prefill_peak(self, spec: LayerSpec) -> int:
        """The most blocks held while the prompt is computed."""
        whole = self.prompt // self.step
        peaks = [self._peak(spec, 0, whole, self.step)] if whole else []
        if self.prompt % self.step:
            peaks.append(self.held(spec, self.chunks - 1))
        return max(peaks)

    def decode_peak(self, spec: LayerSpec, output: int) -> int:
        """The most blocks held while `output` tokens are decoded one by one; 0 without any."""
        return self._peak(spec, self.chunks, output, 1) if output else 0

    def _peak(self, spec: LayerSpec, first: int, count: int, step: int) -> int:
        """The most held over `count` steps of equal length, the first of this number."""
        # The first steps still process what came before; the later ones all lag by equally many tokens.
        early = min(count, self.batches - 1)
        peaks = [self.held(spec, first + number) for number in range(early)]
        if count > early:
            peaks.append(self._steady(spec, first + early, count - early, step))
        return max(peaks)

    def _steady(self, spec: LayerSpec, first: int, count: int, step: int) -> int:
        block, lag = _block(spec, self.shards), (self.batches - 1) * step
        start = self.start(first)
        match spec.type:
            case SpecType.SLIDING_WINDOW | SpecType.SLIDING_WINDOW_MLA:
                return _window_peak(start, step, count, _reach(spec) + lag, block)
            case SpecType.CHUNKED_LOCAL:
                return _chunk_peak(start - lag, step, count, spec.chunk or 1, block, lag)
            case SpecType.REFERENCE_WINDOW:
                return max(self.held(spec, number) for number in _turns(self, spec, first, count))
            case SpecType.MAMBA:
                at_start = self.held(spec, first)
                if count == 1:
                    return at_start
                kept = _window_peak(start + step, step, count - 1, _reach(spec) + lag, block)
                return max(at_start, _of_state(spec, kept, at_most=self.batches + 1))
            case _:
                return self.held(spec, first + count - 1)


def blocks_held(
    spec: LayerSpec,
    computed: int,
    new: int,
    *,
    shards: int = 1,
    encoder_tokens: int = 0,
    under_way: Sequence[int] = (),
    prompt: int = 0,
) -> int:
    """Blocks held during a step of `new` tokens after `computed` ones, on one of `shards` ranks.

    `under_way` are the tokens before each step that is not yet processed: the least of them decides what is
    freed. A layer of cross attention holds the blocks of its `encoder_tokens` all the time; a reference
    window keeps those of the `prompt`. In mode `align` the steps of a prompt are those of vLLM's scheduler:
    whole blocks, but for the last.
    """
    processed = min((computed, *under_way))
    match spec.type:
        case SpecType.ENCODER_ONLY:
            return 0
        case SpecType.RING:
            return 1
        case SpecType.CROSS:
            return _ceiling(encoder_tokens, spec.block_size)
    block = _block(spec, shards)
    if spec.type is SpecType.REFERENCE_WINDOW:
        return _ceiling(computed + new, block) - _gap(spec, processed, prompt, block)
    kept = _ceiling(computed + new, block) - skipped_tokens(spec, processed) // block
    ends = {_ceiling(end, block) for end in (*under_way, computed, computed + new) if end > 0}
    # Until 0.33.0 drafts may keep a block in which no step ended.
    at_most = len(ends) if spec.packed else 1 + (computed > 0)
    return _of_state(spec, kept, at_most)


def _gap(spec: LayerSpec, processed: int, prompt: int, block: int) -> int:
    """Blocks between the prompt and the last generated tokens. Source: 0.33.0 `RSWAManager`."""
    window = getattr(spec.cache, "reference_window", 1)
    return max(0, max(prompt, processed - window) // block - _ceiling(prompt, block))


def _turns(run: Run, spec: LayerSpec, first: int, count: int) -> list[int]:
    """Steps among which a reference window holds the most: the ends, and those before a block is freed.

    It grows until the gap opens; then it goes up and down with the blocks of its two ends.
    """
    last = first + count - 1
    block = _block(spec, run.shards)
    opens = first + max(0, run.prompt + getattr(spec.cache, "reference_window", 1) - run.start(first))
    return sorted(
        {first, last} | set(range(min(opens, last), min(opens + 3 * block + run.batches, last) + 1))
    )


def _reach(spec: LayerSpec) -> int:
    """w, such that the last w - 1 tokens are still needed.

    A state needs its newest position; until 0.33.0, where all tokens count as processed, also as many before
    it as drafts may be undone.
    """
    if spec.type is SpecType.MAMBA:
        return 2 if spec.packed else spec.num_speculative_blocks + 2
    return (spec.window or 1) + spec.retained_tokens


def _of_state(spec: LayerSpec, kept: int, at_most: int) -> int:
    """Blocks of a state beside those of drafts; in mode `align` only those in which a step ended are real."""
    if spec.type is not SpecType.MAMBA:
        return kept
    if spec.mamba_cache_mode is MambaMode.ALIGN:
        kept = min(kept, at_most)
    return kept + spec.num_speculative_blocks


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


def _chunk_peak(first: int, step: int, count: int, chunk: int, block: int, lag: int) -> int:
    """The most of ⌈(x + step + lag) / B⌉ - ⌊(x - x mod c) / B⌋ over x = first, first + step and so on."""
    ahead = step + lag
    if chunk % block == 0:
        return _ceiling(greatest_residue(first, step, count, chunk) + ahead, block)
    # Chunks begin at other places of their block each time: the last step of every chunk counts.
    last = first + (count - 1) * step
    ends = (
        min(last, first + ((number + 1) * chunk - 1 - first) // step * step)
        for number in range(first // chunk, last // chunk + 1)
    )
    return max(_ceiling(x + ahead, block) - (x - x % chunk) // block for x in ends)
