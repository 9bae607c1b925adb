"""HiSparse: all latents in host memory, the needed ones on the device.

Source: SGLang 0.5.13 `mem_cache/hisparse_memory_pool.py`.
"""

from ...explain import Expression, least, symbol


def logical_tokens(device_tokens: int, host_to_device_ratio: int) -> Expression:
    """Tokens that requests may take: `device tokens · ratio`."""
    return symbol("tokens", device_tokens) * symbol("ratio", host_to_device_ratio)


def device_buffer_size(top_k: int) -> Expression:
    """The latents that a long request keeps on the device unless the user says otherwise: `2 · top_k`."""
    return 2 * symbol("top_k", top_k)


def device_latents(tokens: int, buffer_size: int, page_size: int) -> Expression:
    """Latents of a request of `tokens` on the device: at most the buffer and one page."""
    return least(symbol("T", tokens), symbol("buffer", buffer_size) + symbol("P", page_size))
