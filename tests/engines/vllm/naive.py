"""A second opinion: stored elements and blocks counted one by one. Imports nothing of the calculator."""


def page_bytes(block_size, num_kv_heads, key, value, element_bytes, scale_bytes=0):
    """Every element of every token and head, and a scale for each of its two vectors."""
    size = 0
    for _token in range(block_size):
        for _head in range(num_kv_heads):
            size += sum(element_bytes for _ in range(key)) + scale_bytes
            size += sum(element_bytes for _ in range(value)) + scale_bytes
    return size


def latent_page_bytes(block_size, ratio, rank, rope, *, packed, align=1):
    """One entry for every full group of `ratio` tokens, then bytes until the alignment is met."""
    size, waiting = 0, 0
    for _token in range(block_size):
        waiting += 1
        if waiting < ratio:
            continue
        waiting = 0
        if packed == "656":
            size += rank + sum(4 for start in range(0, rank, 128) if start + 128 <= rank) + 2 * rope
        elif packed == "584":
            size += rank + sum(1 for start in range(0, rank, 64) if start + 64 <= rank) + 1 + 2 * rope
        else:
            size += 2 * (rank + rope)
    while size % align:
        size += 1
    return size


class Request:
    """A block table as the engine keeps it: blocks in front of what is needed become None.

    `kept`: the prompt stays, and so many of the generated tokens.
    """

    def __init__(self, block_size, *, window=None, chunk=None, drafts=None, kept=None):
        self.block_size, self.window, self.chunk = block_size, window, chunk
        self.drafts, self.kept = drafts, kept
        self.table = []

    def needed_from(self, computed):
        """The first token that the next one attends to."""
        if self.window is not None:
            return max(0, computed + 1 - self.window)
        if self.chunk is not None:
            first = 0
            while first + self.chunk <= computed:
                first += self.chunk
            return first
        if self.drafts is not None:
            return max(0, computed - self.drafts - 1)
        return 0

    def freed(self, number, processed, prompt):
        """Whether a block holds nothing that is needed after `processed` tokens."""
        first, end = number * self.block_size, (number + 1) * self.block_size
        if self.kept is not None:
            return first >= prompt and end <= processed - self.kept
        return end <= self.needed_from(processed)

    def step(self, computed, new, processed, prompt):
        """Blocks held while `new` tokens are computed."""
        for number in range(len(self.table)):
            if self.freed(number, processed, prompt):
                self.table[number] = None
        while len(self.table) * self.block_size < computed + new + (self.drafts or 0) * self.block_size:
            self.table.append("block")
        return sum(entry is not None for entry in self.table)

    def run(self, prompt, step, output, batches=1):
        """(peak while the prompt is computed, peak while decoding, blocks at the end).

        With several `batches` under way blocks are freed by what the steps before them have processed.
        """
        computed, prefill, decode, last, starts = 0, 0, 0, 0, []
        while computed < prompt + output:
            new = min(step, prompt - computed) if computed < prompt else 1
            starts.append(computed)
            processed = starts[-batches] if len(starts) >= batches else 0
            last = self.step(computed, new, processed, prompt)
            if computed < prompt:
                prefill = max(prefill, last)
            else:
                decode = max(decode, last)
            computed += new
        return prefill, decode, last


def pool_blocks(available, pages):
    """Blocks taken one after another until the memory is full."""
    blocks, left = 0, available
    while left >= sum(pages):
        left -= sum(pages)
        blocks += 1
    return blocks
