"""Units of NIXL and the host pool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator.caches import FullAttention, SlidingWindow
from calculator.engines.vllm.sending import Layout, cpu_offload, nixl
from calculator.errors import EngineError, FieldError
from tests.engines.vllm.shapes import FULL, HEADS, LATENT, V4_WINDOW, spec, v4

LLAMA = {"num_layers": 32, "num_tokens": 131_072}


def test_regions_of_nixl():
    joint = nixl(spec(FULL), Layout.TRITON_ATTN, **LLAMA)
    assert (joint.memory_regions_per_layer, joint.block_len.value, joint.descriptor.value) == (
        1,
        65_536,
        32_768,
    )
    latent = nixl(spec(LATENT, 64), Layout.MLA, num_layers=61, num_tokens=131_072)
    assert (latent.descriptors_per_layer_per_block, latent.total_bytes.value) == (1, 9_210_691_584)
    assert nixl(v4(V4_WINDOW, 64), Layout.MLA, num_layers=1, num_tokens=1_000).num_blocks.value == 3


@given(st.integers(1, 64), st.integers(1, 5_000), st.integers(0, 100_000))
def test_windows_are_clipped(block_size, window, tokens):
    layer = spec(SlidingWindow(**HEADS, sliding_window=window), block_size)
    sent = nixl(layer, Layout.FLASH_ATTN, num_layers=1, num_tokens=tokens).num_blocks.value
    assert sent <= -(-tokens // block_size)
    assert sent * block_size >= min(tokens, window)


@pytest.mark.parametrize(
    ("bytes_per_block", "world_size", "cpu_bytes", "blocks"),
    [  # formulas.md 7.1
        (2_097_152, 1, 64 * 2**30, 32_768),
        (655_360, 8, 512 * 2**30, 104_857),
        (4_497_408, 8, 256 * 2**30, 7_639),
        (0, 8, 256 * 2**30, 0),
    ],
)
def test_the_host_pool(bytes_per_block, world_size, cpu_bytes, blocks):
    found = cpu_offload(
        bytes_per_block=bytes_per_block, block_sizes=[16], world_size=world_size, cpu_bytes_to_use=cpu_bytes
    )
    assert found.num_cpu_blocks.value == blocks


def test_host_blocks_of_several_device_blocks():
    given_sizes = {"bytes_per_block": 10, "world_size": 2, "cpu_bytes_to_use": 1_000}
    found = cpu_offload(**given_sizes, block_sizes=[64], offloaded_block_size=256)
    assert (found.block_size_factor, found.num_cpu_blocks.value, found.cpu_page.value) == (4, 12, 40)
    for sizes in ([64, 32], [48], []):
        with pytest.raises(EngineError, match="host blocks"):
            cpu_offload(**given_sizes, block_sizes=sizes, offloaded_block_size=256)
    with pytest.raises(EngineError, match="host blocks"):
        cpu_offload(**given_sizes, block_sizes=[64], offloaded_block_size=0)


def test_layouts_fit_their_kinds():
    with pytest.raises(EngineError, match="mla"):
        nixl(spec(FULL), Layout.MLA, **LLAMA)
    with pytest.raises(EngineError, match="flash_attn"):
        nixl(spec(LATENT), Layout.FLASH_ATTN, **LLAMA)


@pytest.mark.parametrize("field", ["num_layers", "num_tokens"])
def test_bounds(field):
    with pytest.raises(FieldError, match="-1"):
        nixl(spec(FullAttention(**HEADS)), Layout.FLASH_ATTN, **{**LLAMA, field: -1})
