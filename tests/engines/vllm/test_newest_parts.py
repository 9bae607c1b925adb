"""Parts of vLLM 0.33.0's rules by themselves: hits inside a block, strides, packed pages."""

from dataclasses import replace

import pytest

from calculator.caches import (
    MLA,
    CompressedLatent,
    FullAttention,
    ReferenceWindow,
    SlidingWindow,
)
from calculator.engines.vllm import Settings, allocate, blocks, equal_pages, layout
from calculator.engines.vllm.cases import RUNNERS
from calculator.engines.vllm.fine_prefix import common_hit, resolve_block_sizes
from calculator.engines.vllm.group import Group, members
from calculator.engines.vllm.held import Run, blocks_held
from calculator.engines.vllm.hybrid import align
from calculator.engines.vllm.inputs import layer_spec
from calculator.engines.vllm.model import MambaMode
from calculator.engines.vllm.prefix import CachedGroup
from calculator.engines.vllm.promotion import keeping_all_else
from calculator.engines.vllm.rules import rules_of
from calculator.engines.vllm.settings import CacheLayout
from calculator.engines.vllm.side_by_side import group_layers
from calculator.engines.vllm.spec import SpecType
from calculator.engines.vllm.uniform import mergeable
from calculator.errors import EngineError, FieldError
from calculator.formats import FP8_DS_MLA, Storage
from calculator.model import ModelPlan
from tests.engines.vllm.shapes import CROSS, FULL, HEADS, LATENT, MAMBA, V4_WINDOW, WINDOW, spec

RULES = rules_of("0.33.0")
ODD = MLA(kv_lora_rank=500, qk_rope_head_dim=60)
RING = {
    "type": "CircularBufferSpec",
    "block_size": 8,
    "num_kv_heads": 2,
    "head_size": 128,
    "dtype": "bfloat16",
}
BASE = {"block_size": 16, "num_kv_heads": 8, "head_size": 128, "dtype": "bfloat16"}


def new(cache=FULL, block_size=16, **more):
    return spec(cache, block_size, packed=True, **more)


def cached(made, *numbers, **more):
    return CachedGroup(spec=made, cached=frozenset(numbers), **more)


def planned(kind, *specs, **config):
    """The answer to a case of one layer per spec, with memory for 64 KiB times 100."""
    return RUNNERS[kind](
        {
            "layers": [str(number) for number in range(len(specs))],
            "specs": {str(number): {**BASE, **spec} for number, spec in enumerate(specs)},
            "available_memory": 6_553_600,
            "config": {"max_model_len": 1024, "max_num_batched_tokens": 256, **config},
        },
        "0.33.0",
    )


# --- plans ---


def test_the_planner_decides_what_a_window_retains():
    """`get_global_kv_cache_groups` writes max(0, look-ahead - 1) into every window."""
    window = {"type": "SlidingWindowSpec", "sliding_window": 100, "extra_retained_tokens": 40}
    blocks_of = {n: planned("kv_cache_config", window, num_prefill_lookahead_tokens=n) for n in (0, 30)}
    assert blocks_of[0]["num_blocks_per_request"] == -(-(99 + 256) // 16) + 1
    assert blocks_of[30]["num_blocks_per_request"] == -(-(99 + 29 + 256) // 16) + 1


@pytest.mark.parametrize(
    "cache", [WINDOW, ReferenceWindow(**HEADS, reference_window=40)], ids=["window", "reference"]
)
def test_what_ranks_do_not_share_out_has_its_own_blocks_at_the_peak(cache):
    """The peaks are those of the single steps, with blocks of one rank."""
    run, alone = Run(prompt=300, step=70, shards=2, batches=2), new(cache, replicated=True)
    steps = [run.held(alone, number) for number in range(run.chunks + 90)]
    assert run.prefill_peak(alone) == max(steps[: run.chunks])
    assert run.decode_peak(alone, 90) == max(steps[run.chunks :])
    assert steps[0] == -(-70 // 16)


def test_places_of_given_blocks_and_of_pages_that_no_layout_takes():
    full = {"type": "FullAttentionSpec"}
    placed = planned("cache_placement", full, num_gpu_blocks_override=7, kv_cache_layout="BHLNC")
    assert (placed["num_blocks"], placed["backing_bytes"]) == (7, 7 * 65536)
    wide = {**full, "head_size": 192}
    refused = planned("cache_placement", full, wide, kv_cache_layout="BHLNC")
    assert refused == {"error": "layout_cannot_express_mixed_pages"}


def test_what_no_other_request_reuses_is_not_offloaded():
    """`build_offloading_config` leaves a ring out, so host blocks of 64 tokens suit all groups."""
    case = {
        "layers": ["full", "ring"],
        "specs": {"full": {**BASE, "type": "FullAttentionSpec"}, "ring": RING},
        "available_memory": 10**9,
        "config": {"max_model_len": 1024, "kv_cache_layout": "BLHNC"},
        "cpu_bytes_to_use": 10**9,
        "world_size": 1,
        "offloaded_block_size": 64,
    }
    stored = RUNNERS["cpu_offload"](case, "0.33.0")
    assert (stored["gpu_block_size"], stored["block_size_factor"]) == ([16], 4)
    inner = {**case, "config": {**case["config"], "kv_cache_layout": "BHLNC"}}
    with pytest.raises(EngineError, match="one size"):
        RUNNERS["cpu_offload"](inner, "0.33.0")


def test_only_padded_pages_are_longer_steps():
    """BHLNC, two layers of 8 heads: heads lie outside of the layers, so a layer is one head's 16 tokens."""
    full = {"type": "FullAttentionSpec"}
    (placed,) = planned("cache_placement", full, full, kv_cache_layout="BHLNC")["placements"]
    assert placed["layer_stride_bytes"] == 16 * 512
    assert placed["view_strides_bytes"] == [2 * 65536, 2 * 16 * 512, 512, 2]


@pytest.mark.parametrize(
    ("prompt", "step", "drafts", "batches", "peaks"),
    [
        (1_000, 32, 1, 3, (5, 4)),
        (1_080, 32, 3, 3, (7, 6)),
        (1_483, 64, 1, 2, (4, 3)),
        (17, 128, 0, 2, (1, 2)),
        (4_000, 512, 0, 3, (4, 4)),
        (1_000, 128, 0, 1, (2, 2)),
    ],
)
def test_states_of_steps_under_way_are_kept(prompt, step, drafts, batches, peaks):
    """Peaks as the engine's own `MambaManager` held them in blocks of 32 tokens, step by step."""
    state = new(MAMBA, 32, mamba_cache_mode=MambaMode.ALIGN, num_speculative_blocks=drafts)
    run = Run(prompt=prompt, step=step, batches=batches)
    assert (run.prefill_peak(state), run.decode_peak(state, 50)) == peaks


def test_drafts_that_are_undone_keep_no_older_state():
    """0.33.0 frees by what is processed; 0.22.0 subtracts the drafts from what is computed."""
    drafts = {"mamba_cache_mode": MambaMode.ALIGN, "num_speculative_blocks": 3}
    assert blocks_held(new(MAMBA, 16, **drafts), 17, 1) == 4
    assert blocks_held(spec(MAMBA, 16, **drafts), 17, 1) == 5


# --- prefix hits ---


def test_a_hit_needs_groups_and_a_length():
    for groups, longest in (([], 16), ([cached(new())], -1)):
        with pytest.raises(FieldError):
            common_hit(groups, longest)


def test_one_group_is_looked_up_by_itself():
    assert common_hit([cached(new(), 0, 1)], 64).tokens == 32
    ring = new(WINDOW, replayed=True)
    assert not ring.prefix_cached
    assert common_hit([cached(ring, 0)], 64).tokens == 0
    with pytest.raises(EngineError):
        common_hit([cached(new(WINDOW), 0)], 64, context_parallel_size=2)


def test_what_cannot_be_looked_up_is_refused():
    """`MambaManager` and `HybridKVCacheCoordinator` assert each of these."""
    last_only, ring = new(MAMBA, 64), layer_spec(RING, RULES)
    with pytest.raises(EngineError, match="align"):
        common_hit([cached(last_only, 0)], 64)
    with pytest.raises(EngineError, match="None of the 2"):
        common_hit([cached(ring, 0), cached(ring, 0)], 64)
    with pytest.raises(EngineError, match="16, does not divide"):
        common_hit([cached(new(), 0), cached(new(WINDOW, 4), 0)], 64, hash_block_size=16)


def test_windows_are_not_shared_by_ranks():
    with pytest.raises(EngineError, match="prefixes"):
        common_hit([cached(new(), 0), cached(new(WINDOW), 0)], 64, context_parallel_size=2)


def test_a_hit_may_end_inside_a_block_where_a_state_was_kept():
    state = new(MAMBA, 64, mamba_cache_mode=MambaMode.ALIGN)
    full = new(FULL, 64)
    groups = [cached(full, 0, units=frozenset({4, 5})), cached(state, units=frozenset({4}))]
    assert common_hit(groups, 128, hash_block_size=16).tokens == 80
    drafted = common_hit(groups, 128, hash_block_size=16, eagle=True)
    assert drafted.tokens <= 80
    ring = cached(new(WINDOW, 16, replayed=True), 0)
    assert common_hit([*groups, ring], 128, hash_block_size=16).tokens <= 80


def test_three_kinds_shorten_one_another_until_none_does():
    short, long = (SlidingWindow(**HEADS, sliding_window=size) for size in (32, 64))
    groups = [cached(new(), *range(8)), cached(new(short), *range(2, 6)), cached(new(long), *range(4), 7)]
    assert common_hit(groups, 128).tokens == 64
    assert common_hit(groups, 128, eagle=True).tokens <= 64
    state = cached(new(MAMBA, mamba_cache_mode=MambaMode.ALIGN), 1)
    assert common_hit([*groups[1:], state], 128).tokens <= 64
    one_drafted = [groups[0], groups[1], cached(new(long), *range(8), drafted=True)]
    assert common_hit(one_drafted, 128, eagle=True).tokens <= 128


def test_sizes_of_blocks_and_hashes():
    state, full = new(MAMBA, 64, mamba_cache_mode=MambaMode.ALIGN), new(FULL, 32)
    assert resolve_block_sizes([full], block_size=32) == (32, 32, 32)
    with pytest.raises(EngineError):
        resolve_block_sizes([full], block_size=32, hash_block_size=16)
    assert resolve_block_sizes([full, state], block_size=32, hashes_used=False) == (64, 64, 64)
    # A connector hashes in finer units, but without prefix caching no hit ends inside a block.
    assert resolve_block_sizes([full, state], block_size=32, prefix_caching=False) == (64, 32, 64)
    with pytest.raises(EngineError):
        resolve_block_sizes([full, state], block_size=32, hash_block_size=24)
    assert resolve_block_sizes([full, state], block_size=32) == (64, 32, 32)


# --- pages and strides ---


def test_layers_one_after_another_have_strides_of_their_own():
    odd = new(LATENT, stride_bytes=4096)
    group = Group(members=members([odd, new()], [0, 1]), container=True)
    rows = next(one for one in CacheLayout if not one.block_outer)
    assert RULES.block_bytes([group], rows).value % 4096 == 0
    kernel = new(LATENT, 128, stride_kernel_block=64)
    assert kernel.stride_alignment == new(LATENT, 64).page_size_bytes
    assert new(LATENT, 64, stride_kernel_block=64).stride_alignment == 1


def test_no_group_takes_no_blocks():
    assert blocks.blocks_per_request([], Settings(), RULES).value == 0


def test_types_that_differ_in_a_note_are_one():
    same = [(new(), [0]), (new(), [1]), (new(WINDOW, unforgetting=True), [2])]
    assert [layers for _, layers in equal_pages._merged(same)] == [[0, 1, 2]]
    windows = [
        (new(SlidingWindow(**HEADS, sliding_window=size), unforgetting=True), [size]) for size in (8, 9)
    ]
    assert [layers for _, layers in equal_pages._merged(windows)] == [[8], [9]]


def test_blocks_beside_states_are_whole_ones_of_all_backends():
    found = align(
        token_page=1000,
        state_page=50_000,
        block_size=16,
        kernel_block_size=16,
        mode=MambaMode.ALIGN,
        backend_block_size=48,
    )
    assert found.block_size.value % 48 == 0


def test_a_layout_that_shares_no_pages_of_two_sizes_between_sharded_and_whole_caches():
    inner = [one for one in CacheLayout if one.whole_pages and not one.block_outer]
    halved = new(FullAttention(num_kv_heads=4, head_size=128, head_size_v=128), replicated=True)
    with pytest.raises(EngineError, match="one size"):
        layout.resolve([inner], [new(), halved])


def test_padding_grows_with_the_block():
    assert keeping_all_else(new(WINDOW).padded(70_000), [32]).page_size_padded == 131_072


def test_a_pattern_that_does_not_repeat_is_refused():
    tiny = FullAttention(num_kv_heads=1, head_size=64, head_size_v=64)
    slim = SlidingWindow(num_kv_heads=4, head_size=128, head_size_v=128, sliding_window=1024)
    with pytest.raises(EngineError, match="side by side"):
        group_layers([new(cache) for cache in (tiny, WINDOW, WINDOW, slim)])


def test_no_container_where_other_kinds_are_left():
    with pytest.raises(EngineError, match="unify"):
        equal_pages._container([new(), new(WINDOW), new(ODD), new(CROSS)])


def test_states_are_refused_by_ranks_that_share_tokens_until_0_33_0():
    plan = ModelPlan(layers=((FULL,), (MAMBA,)))
    chosen = Settings(tensor_parallel_size=16, decode_context_parallel_size=2)
    with pytest.raises(EngineError) as refusal:
        allocate(plan, Storage(), chosen, "0.22.0")
    assert refusal.value.key == "vllm.cp_state"
    assert allocate(plan, Storage(), chosen, "0.33.0").groups


def test_a_window_of_latents_needs_a_compressor():
    with pytest.raises(EngineError) as refusal:
        allocate(ModelPlan(layers=((V4_WINDOW,),)), Storage(), Settings(), "0.33.0")
    assert refusal.value.key == "vllm.sliding_latent"


def test_latents_beside_states_have_blocks_of_at_least_128():
    plan = ModelPlan(layers=((LATENT,), (MAMBA,)))
    now = allocate(plan, Storage(), Settings(), "0.33.0").groups
    assert max(group.spec.block_size for group in now) % 128 == 0


def test_a_padded_page_is_part_of_the_type():
    aligned = new(LATENT, alignment=4096)
    assert mergeable([aligned, aligned])
    assert not mergeable([aligned, new(LATENT)])


def test_a_ring_a_stride_and_states_of_half_a_token():
    given = {**BASE, "type": "CircularBufferSpec", "num_kv_heads": 1, "head_size": 64}
    assert blocks_held(layer_spec(given, RULES), 100, 1) == 1
    strided = {
        **BASE,
        "type": "MLAAttentionSpec",
        "num_kv_heads": 1,
        "block_stride_alignment": "multiple_of:8",
    }
    assert layer_spec({**strided, "attn_backend": "FLASHMLA"}, RULES).stride_kernel_block == 8
    halves = {**BASE, "type": "FullAttentionSpec", "attn_backend": "X", "tokens_per_state": "1/2"}
    assert layer_spec(halves, RULES).entries.value == 32


@pytest.mark.parametrize(
    ("given", "page"),
    [
        ({"type": "FullAttentionSpec", "num_head_slots": 2}, 2 * 16 * 512),
        ({"type": "FullAttentionSpec", "num_head_slots": 2, "state_content_bytes": 136}, 2 * 16 * 136),
        ({"type": "FullAttentionSpec", "tokens_per_state": 2}, 8 * 8 * 512),
        (
            {
                "type": "SlidingWindowMLASpec",
                "num_kv_heads": 1,
                "sliding_window": 64,
                "tokens_per_state": 4,
            },
            4 * 256,
        ),
    ],
)
def test_a_page_is_slots_times_states_times_content(given, page):
    """`AttentionSpec.unpadded_page_size_bytes`: a given number of slots stands for that of the heads."""
    assert layer_spec({**BASE, **given}, RULES).page_size_bytes == page


def test_reference_windows_are_a_type_of_their_own():
    window = new(ReferenceWindow(**HEADS, reference_window=64))
    assert not mergeable([window, new()])
    assert not mergeable([window, new(ReferenceWindow(**HEADS, reference_window=32))])
    assert mergeable([window, window])


def test_full_attention_takes_reference_windows_in():
    """`FullAttentionSpec.merge` asks for its class, of which RSWASpec is one, not for a window."""
    assert mergeable([new(), new(ReferenceWindow(**HEADS, reference_window=64))])


def test_the_656_byte_form_ignored_a_ratio():
    cache = CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=4)
    old, now = (
        replace(spec(cache, 64, storage=Storage(kv=FP8_DS_MLA), cache_dtype="fp8_ds_mla"), packed=packed)
        for packed in (False, True)
    )
    assert (old.entries.value, now.entries.value) == (64, 16)


# --- specs as the golden file has them ---


@pytest.mark.parametrize(
    "given",
    [
        {"type": "CircularBufferSpec", "head_size_v": 64},
        {"type": "HiddenStateCacheSpec"},
        {"type": "CrossAttentionSpec"},
        {"type": "EncoderOnlyAttentionSpec"},
        {"type": "SinkFullAttentionSpec", "sink_len": 16},
        {"type": "RSWASpec", "rswa_window": 64},
        {"type": "FullAttentionSpec", "sliding_window": 64},
        {"type": "FullAttentionSpec", "attention_chunk_size": 64},
        {"type": "ChunkedLocalAttentionSpec", "attention_chunk_size": 64},
        {"type": "FullAttentionSpec", "attn_backend": "TURBOQUANT", "kv_quant_mode": "turboquant_4bit_nc"},
        {"type": "FullAttentionSpec", "state_content_bytes": 4096, "head_size_v": 64},
    ],
    ids=lambda given: given["type"],
)
def test_every_type_of_spec_is_read(given):
    assert layer_spec({**BASE, **given}, RULES).type is SpecType(given["type"])


def test_a_backend_that_packs_one_width_refuses_two():
    with pytest.raises(EngineError, match="one width"):
        layer_spec({**BASE, "type": "FullAttentionSpec", "attn_backend": "B12X", "head_size_v": 64}, RULES)
    assert V4_WINDOW.sliding_window == 128
