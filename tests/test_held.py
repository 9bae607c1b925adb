"""What a request holds at a moment, beside the most that it may take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator import Scenario, estimate
from calculator.caches import KINDS, ChunkedLocal, SlidingWindow
from calculator.footprint import Parts
from tests.strategies import caches

SIZES = {"num_kv_heads": 8, "head_size": 128, "head_size_v": 128}
any_cache = st.sampled_from(list(KINDS.values())).flatmap(caches)


@given(any_cache, st.integers(1, 2**27))
def test_no_more_is_held_than_may_be_needed(cache, tokens):
    assert 0 <= cache.held(tokens) <= cache.units(tokens)


def test_a_window_slides_and_a_chunk_is_a_saw_tooth():
    window, chunk = SlidingWindow(sliding_window=4, **SIZES), ChunkedLocal(attention_chunk_size=4, **SIZES)
    assert [window.held(tokens) for tokens in range(1, 10)] == [1, 2, 3, 4, 4, 4, 4, 4, 4]
    assert [chunk.held(tokens) for tokens in range(1, 10)] == [1, 2, 3, 4, 1, 2, 3, 4, 1]


def answer(**values: object):
    return estimate(Scenario().changed(values))


def test_logical_bytes_held_are_those_of_the_tokens():
    scout = answer(model="llama-4-scout-17b-16e", num_sequences=3)
    full, at_start = scout.held_curve([8192, 8193])
    row = 2 * 8 * 128 * 2  # keys and values, 8 heads of 128 in 16 bit
    assert full == Parts(linear=12 * row * 8192, bounded=36 * row * 8192, constant=0).times(3)
    assert at_start == Parts(linear=12 * row * 8193, bounded=36 * row, constant=0).times(3)
    assert scout.held_steps() == {8192}
    assert answer().held_steps() == frozenset()


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    "model", ["llama-3.1-8b", "deepseek-v3", "gemma-3-27b", "qwen3.5-9b", "mistral-7b-v0.1"]
)
def test_an_engine_holds_no_more_than_it_reserves(engine, model):
    answered = answer(model=model, engine=engine, max_model_len=2**20)
    contexts = [1, 15, 16, 17, 1_000, 4_096, 5_000, 100_000]
    held = answered.held_curve(contexts)
    for tokens, parts in zip(contexts, held, strict=True):
        most = answered.allocated.request(tokens)
        assert 0 < parts.total <= most.total
        assert (
            most.total
            == answer(
                model=model, engine=engine, context_tokens=tokens, max_model_len=2**20
            ).allocated.per_rank.total_bytes.value
        )
    assert [parts.linear for parts in held] == sorted(parts.linear for parts in held)


def test_vllm_holds_whole_blocks():
    llama = answer(model="llama-3.1-8b", engine="vllm")
    block = 16 * 131_072
    assert llama.held_steps() == {16}
    assert [parts.total for parts in llama.held_curve([1, 16, 17, 32])] == [
        block,
        block,
        2 * block,
        2 * block,
    ]
    assert llama.allocated.request(17) == Parts(linear=2 * block, bounded=0, constant=0)


def test_a_window_of_vllm_begins_inside_a_block():
    mistral = answer(model="mistral-7b-v0.1", engine="vllm")
    blocks = [parts.bounded // (16 * 131_072) for parts in mistral.held_curve([4_096, 4_097, 4_098, 8_000])]
    assert blocks == [256, 257, 257, 256]


def test_states_stay_as_they_are():
    states = {parts.constant for parts in answer(model="qwen3.5-9b").held_curve([1, 1_000, 10**6])}
    assert len(states) == 1
