"""Pages, growth and what is really held."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from calculator.caches import MLA, ChunkedLocal, FullAttention, ReferenceWindow, SlidingWindow
from calculator.engines.vllm.growth import admission_cap, request_bytes, request_pages
from calculator.engines.vllm.held import Run, blocks_held
from calculator.engines.vllm.progression import floor_sum, greatest_residue, reaches
from calculator.engines.vllm.settings import MambaMode, Settings
from calculator.engines.vllm.spec import SpecType
from calculator.errors import EngineError, FieldError
from calculator.formats import (
    BF16,
    FP8,
    FP8_DS_MLA,
    FP8_PER_TOKEN_HEAD,
    FP8_V4,
    NVFP4,
    TURBOQUANT,
    Storage,
)
from tests.engines.vllm import naive
from tests.engines.vllm.shapes import (
    C4,
    C4_STATE,
    C4I,
    C128,
    CHUNK,
    CROSS,
    ENCODER,
    FULL,
    GDN,
    HEADS,
    HIDDEN,
    INDEX,
    LATENT,
    RULES,
    SINK,
    V4_WINDOW,
    WINDOW,
    spec,
    v4,
)

small = st.integers(1, 12)


@pytest.mark.parametrize(
    ("layer", "bytes_"),
    [  # formulas.md 3.1
        (spec(FULL), 65_536),
        (spec(WINDOW), 65_536),
        (spec(FULL, storage=Storage(kv=NVFP4)), 18_432),
        (spec(CHUNK), 65_536),
        (spec(SINK), 65_536),
        (spec(FULL, storage=Storage(kv=TURBOQUANT[1])), 17_152),
        (spec(LATENT, 64), 73_728),
        (spec(LATENT, 64, storage=Storage(kv=FP8_DS_MLA)), 41_984),
        (spec(INDEX, 64), 8_448),
        (spec(HIDDEN), 524_288),
        (spec(GDN), 4_268_032),
        (spec(FULL, storage=Storage(kv=FP8_PER_TOKEN_HEAD)), 33_792),
        (v4(V4_WINDOW, 64), 37_440),
        (v4(C4, 256), 37_440),
        (v4(C128, 256), 1_728),
        (v4(C4I, 256), 8_640),
        (v4(C4_STATE, 4), 32_832),
    ],
)
def test_pages_of_the_document(layer, bytes_):
    assert layer.page_size_bytes == bytes_


@given(small, small, small, small, st.sampled_from([(BF16, 2, 0), (FP8, 1, 0), (FP8_PER_TOKEN_HEAD, 1, 4)]))
def test_a_page_is_its_elements_and_scales(block_size, heads, key, value, stored):
    kv, element, scale = stored
    cache = FullAttention(num_kv_heads=heads, head_size=key, head_size_v=value)
    layer = spec(cache, block_size, storage=Storage(kv=kv))
    assert layer.page_size_bytes == naive.page_bytes(block_size, heads, key, value, element, scale)
    assert layer.real_page.value == naive.page_bytes(block_size, heads, key, value, element)


@settings(max_examples=40)
@given(st.integers(1, 80), st.integers(1, 300), st.integers(0, 80))
def test_a_latent_page_is_its_entries(block_size, rank, rope):
    layer = spec(MLA(kv_lora_rank=rank, qk_rope_head_dim=rope), block_size)
    assert layer.page_size_bytes == naive.latent_page_bytes(block_size, 1, rank, rope, packed=None)
    packed = spec(layer.cache, block_size, storage=Storage(kv=FP8_DS_MLA))
    assert packed.page_size_bytes == naive.latent_page_bytes(block_size, 1, rank, rope, packed="656")


@pytest.mark.parametrize(("cache", "ratio"), [(C4, 4), (C128, 128)])
@pytest.mark.parametrize("block_size", [128, 256, 300])
def test_a_v4_page_is_aligned(cache, ratio, block_size):
    expected = naive.latent_page_bytes(block_size, ratio, 448, 64, packed="584", align=576)
    assert v4(cache, block_size).page_size_bytes == expected
    assert v4(cache, block_size).storage_block_size == block_size // ratio


def test_a_given_page_is_the_page_but_never_smaller_than_its_content():
    assert spec(page_size_padded=70_000).page_size_bytes == 70_000
    assert spec(GDN, page_size_padded=4_292_608).page_size_bytes == 4_292_608
    with pytest.raises(EngineError, match="65,536"):
        _ = spec(page_size_padded=60_000).page_size_bytes


def test_a_spec_knows_its_class():
    assert spec(FULL).type is SpecType.FULL
    assert spec(FULL, storage=Storage(kv=TURBOQUANT[0])).type is SpecType.TURBOQUANT
    assert spec(WINDOW, unforgetting=True).type is SpecType.FULL
    assert spec(V4_WINDOW, storage=Storage(kv=FP8_V4)).model_version == "deepseek_v4"


@pytest.mark.parametrize(
    ("step", "cap"),
    [(1, 257), (2, 258), (17, 258), (512, 289), (2_048, 385), (8_192, 769), (16_384, 1_281)],
)
def test_the_cap_of_a_window(step, cap):
    layer = spec(SlidingWindow(**HEADS, sliding_window=4096))
    found = admission_cap(layer, Settings(max_model_len=131_072, max_num_batched_tokens=step), RULES)
    assert found.value == cap


@pytest.mark.parametrize(
    ("layer", "chosen", "pages"),
    [
        (spec(LATENT, 64), Settings(max_model_len=163_840), 2_560),
        (spec(LATENT, 64), Settings(max_model_len=163_840, decode_context_parallel_size=8), 320),
        (spec(LATENT, 64), Settings(max_model_len=131_072, prefill_context_parallel_size=2), 1_024),
        (spec(CROSS), Settings(max_num_encoder_input_tokens=1_500), 94),
        (spec(CROSS), Settings(max_num_batched_tokens=160), 10),
        (spec(ENCODER), Settings(), 0),
        (spec(CHUNK), Settings(max_model_len=131_072, max_num_batched_tokens=1), 513),
        (spec(GDN, num_speculative_blocks=3), Settings(mamba_cache_mode=MambaMode.NONE), 4),
        (spec(GDN, num_speculative_blocks=3), Settings(mamba_cache_mode=MambaMode.ALIGN), 5),
        (spec(GDN, 528), Settings(max_model_len=131_072, mamba_cache_mode=MambaMode.ALL), 249),
    ],
)
def test_growth(layer, chosen, pages):
    assert request_pages(layer, chosen, RULES).value == pages
    assert request_bytes(layer, chosen, RULES).value == pages * layer.page_size_bytes


def test_only_windows_and_chunks_have_a_cap():
    assert admission_cap(spec(FULL), Settings(), RULES) is None


def test_a_window_refuses_context_parallelism():
    with pytest.raises(EngineError, match="context parallelism"):
        request_pages(spec(WINDOW), Settings(decode_context_parallel_size=2), RULES)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 60), st.integers(0, 60))
def test_progressions_without_walking(count, modulus, step, first):
    terms = [first + step * k for k in range(count)]
    assert floor_sum(count, modulus, step, first) == sum(term // modulus for term in terms)
    assert greatest_residue(first, step, count, modulus) == max(term % modulus for term in terms)
    for residue in range(1, modulus + 1):
        assert reaches(first, step, count, modulus, residue) == any(t % modulus >= residue for t in terms)


LAYERS = st.one_of(
    st.builds(lambda block: (spec(FULL, block), naive.Request(block)), small),
    st.builds(
        lambda block, window: (
            spec(SlidingWindow(**HEADS, sliding_window=window), block),
            naive.Request(block, window=window),
        ),
        small,
        st.integers(1, 40),
    ),
    st.builds(
        lambda block, chunk: (
            spec(ChunkedLocal(**HEADS, attention_chunk_size=chunk), block),
            naive.Request(block, chunk=chunk),
        ),
        small,
        st.integers(1, 40),
    ),
    st.builds(
        lambda block, window, retained: (
            spec(SlidingWindow(**HEADS, sliding_window=window), block, retained_tokens=retained),
            naive.Request(block, window=window + retained),
        ),
        small,
        st.integers(1, 40),
        st.integers(0, 5),
    ),
    st.builds(
        lambda block, window: (
            spec(ReferenceWindow(**HEADS, reference_window=window), block),
            naive.Request(block, kept=window),
        ),
        small,
        st.integers(1, 40),
    ),
    st.builds(
        lambda block, drafts, mode: (
            spec(GDN, block, num_speculative_blocks=drafts, mamba_cache_mode=mode),
            naive.Request(block, drafts=drafts),
        ),
        small,
        st.integers(0, 3),
        st.sampled_from([MambaMode.NONE, MambaMode.ALL]),
    ),
)


@given(LAYERS, st.integers(1, 90), st.integers(1, 30), st.integers(0, 50), st.integers(1, 4))
def test_blocks_held_as_in_a_block_table(layers, prompt, step, output, batches):
    layer, request = layers
    assume(batches == 1 or request.drafts is None)  # states are freed otherwise while batches overlap
    prefill, decode, last = request.run(prompt, step, output, batches)
    run = Run(prompt=prompt, step=step, batches=batches)
    assert run.prefill_peak(layer) == prefill
    assert run.decode_peak(layer, output) == decode
    assert run.held(layer, run.chunks + output - 1) == last
    if output and batches == 1 and request.kept is None:
        assert blocks_held(layer, prompt + output - 1, 1) == last


@given(LAYERS, st.integers(1, 90), st.integers(1, 30))
def test_the_cap_is_never_exceeded(layers, prompt, step):
    layer, _ = layers
    cap = admission_cap(layer, Settings(max_model_len=prompt, max_num_batched_tokens=step), RULES)
    # The engine's cap of a chunk has no block for one that begins inside a block.
    assume(cap is not None and (layer.chunk is None or layer.chunk % layer.block_size == 0))
    assert Run(prompt=prompt, step=step).prefill_peak(layer) <= cap.value


@given(LAYERS, st.integers(1, 200), st.integers(1, 30))
def test_growth_is_monotone_and_covers_the_tokens(layers, context, step):
    layer, _ = layers
    shorter, longer = (
        request_pages(layer, Settings(max_model_len=length, max_num_batched_tokens=step), RULES).value
        for length in (context, context + 1)
    )
    assert shorter <= longer


def test_aligned_states_keep_the_last_and_the_current_one():
    layer = spec(GDN, 16, num_speculative_blocks=1, mamba_cache_mode=MambaMode.ALIGN)
    assert blocks_held(layer, 0, 160) == 2
    assert blocks_held(layer, 160, 160) == 3
    assert Run(prompt=160, step=160).prefill_peak(layer) == 2
    assert Run(prompt=480, step=160).prefill_peak(layer) == 3
    assert Run(prompt=480, step=480).decode_peak(layer, 40) == 3


def test_chunks_that_begin_inside_a_block():
    layer = spec(ChunkedLocal(**HEADS, attention_chunk_size=10), 4)
    prefill, decode, _ = naive.Request(4, chunk=10).run(95, 7, 30)
    assert (Run(prompt=95, step=7).prefill_peak(layer), Run(prompt=95, step=95).decode_peak(layer, 30)) == (
        prefill,
        decode,
    )


def test_the_documents_window_while_decoding():
    layer = spec(SlidingWindow(**HEADS, sliding_window=4096))
    assert Run(prompt=20_000, step=2_048).prefill_peak(layer) == 384
    assert Run(prompt=20_000, step=20_000).decode_peak(layer, 100) == 257
    assert {blocks_held(layer, 20_000 + token, 1) for token in range(64)} == {256, 257}


def test_layers_beside_the_decoder():
    assert blocks_held(spec(CROSS), 500, 1, encoder_tokens=1_500) == 94
    assert Run(prompt=500, step=500, encoder_tokens=1_500).decode_peak(spec(CROSS), 10) == 94
    assert blocks_held(spec(ENCODER), 500, 1) == 0


def test_ranks_that_share_tokens_hold_fewer_blocks():
    assert blocks_held(spec(LATENT, 64), 163_839, 1, shards=8) == 320


@pytest.mark.parametrize("value", [0, 1025, 1.5])
def test_settings_have_bounds(value):
    with pytest.raises(FieldError, match="1,024"):
        Settings(tensor_parallel_size=value)
