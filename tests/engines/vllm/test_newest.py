"""What vLLM 0.33.0 does that 0.22.0 did not: layouts, padding, pages side by side, DeepSeek-V4.1."""

from dataclasses import replace

import pytest

from calculator.caches import (
    MLA,
    ChunkedLocal,
    CompressedIndexKey,
    CompressedLatent,
    FullAttention,
    HiddenState,
    IndexKey,
    Mamba2,
    ReferenceWindow,
    RingBuffer,
    SlidingWindow,
    SlidingWindowMLA,
    SparseIndexKey,
)
from calculator.engines.vllm import Settings, allocate, equal_pages, hisparse, layout
from calculator.engines.vllm.group import Group, members
from calculator.engines.vllm.newest_cases import kv_cache_layout
from calculator.engines.vllm.packed_inputs import GivenRing
from calculator.engines.vllm.rules import rules_of
from calculator.engines.vllm.settings import CacheLayout, MambaMode
from calculator.errors import EngineError, FieldError
from calculator.formats import BF16, FP8, FP8_V4, INT4_PER_TOKEN_HEAD, NVFP4_DS_MLA, Storage
from calculator.model import ModelPlan
from tests.engines.vllm.shapes import FULL, HEADS, INDEX, LATENT, MAMBA, V4_LAYERS, WINDOW, spec

NEW = "0.33.0"
GIB = 2**30
V41_WINDOW = SlidingWindowMLA(head_size=512, qk_rope_head_dim=64, sliding_window=128)
ODD = MLA(kv_lora_rank=500, qk_rope_head_dim=60)
RING = RingBuffer(ring_width=1024, ring_tokens=2)


def v41(ratio: int):
    latent = CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=ratio)
    index = CompressedIndexKey(index_head_dim=128, compress_ratio=ratio)
    return (V41_WINDOW, latent, index, *((RING,) if ratio == 2 else ()))


def allocated(layers, kv=BF16, version=NEW, **settings):
    plan = ModelPlan(layers=tuple(layer if isinstance(layer, tuple) else (layer,) for layer in layers))
    return allocate(plan, Storage(kv=kv), Settings(**settings), version)


def refused(layers, kv=BF16, version=NEW, **settings):
    with pytest.raises(EngineError) as refusal:
        allocated(layers, kv, version, **settings)
    assert refusal.value.message("zh")
    return refusal.value.key


@pytest.mark.parametrize(
    ("key", "layers", "chosen"),
    [
        ("vllm.format_since", [FULL], {"kv": INT4_PER_TOKEN_HEAD, "version": "0.22.0"}),
        ("vllm.kind", [(FULL, SparseIndexKey(index_head_dim=128))], {"version": "0.22.0"}),
        ("vllm.kind", [ReferenceWindow(**HEADS, reference_window=64)], {"version": "0.22.0"}),
        ("vllm.kind", [v41(2)], {"version": "0.22.0", "kv": FP8_V4}),
        ("vllm.mode", [FULL, MAMBA], {"mamba_cache_mode": MambaMode.ALL}),
        (
            "vllm.pcp_state",
            [FULL, MAMBA],
            {"prefill_context_parallel_size": 2, "tensor_parallel_size": 2},
        ),
        ("vllm.v4_format", [v41(2)], {"kv": INT4_PER_TOKEN_HEAD}),
        ("vllm.block", [v41(2)], {"kv": FP8_V4, "block_size": 63}),
    ],
)
def test_what_a_version_lacks_is_refused(key, layers, chosen):
    assert refused(layers, **chosen) == key


def test_int4_packs_two_elements_beside_its_scales():
    assert allocated([FULL], INT4_PER_TOKEN_HEAD).bytes_per_block.value == 16 * 8 * 2 * (64 + 4)


def test_minimax_m3_has_a_16_bit_index_key_beside_k_and_v():
    found = allocated([FULL, (FULL, SparseIndexKey(index_head_dim=128))], max_model_len=1024)
    assert sum(group.num_layers for group in found.groups) == 3


@pytest.mark.parametrize(("chosen", "key"), [(False, 256), (True, 128)])
def test_minimax_m3_may_have_index_keys_of_eight_bits(chosen, key):
    """A key of 128 elements: `indexer_kv_dtype` decides its type, not the format of K and V."""
    found = allocated(
        [FULL, (FULL, SparseIndexKey(index_head_dim=128))], FP8, max_model_len=1024, fp8_indexer=chosen
    )
    specs = [spec for group in found.groups for spec, _ in group.members if spec.indexer]
    assert [spec.real_page.value / spec.block_size for spec in specs] == [key]


@pytest.mark.parametrize("kv", [FP8, NVFP4_DS_MLA])
def test_deepseek_v4_1_keeps_windows_records_and_rings(kv):
    found = allocated([v41(1)] * 4 + [v41(2)] * 4, kv, block_size=64, max_model_len=4096)
    assert found.bytes_per_block.value > 0
    assert sum(group.num_layers for group in found.groups) == 3 * 8 + 4


def test_deepseek_v4_keeps_its_index_keys_in_four_bits_where_asked():
    layers = [V4_LAYERS[4], V4_LAYERS[128], V4_LAYERS[0]]
    wide, narrow = (
        allocated(layers, FP8, fp4_indexer=chosen, max_model_len=4096).bytes_per_block.value
        for chosen in (False, True)
    )
    assert narrow <= wide


def test_windows_of_two_sizes_are_types_of_their_own():
    longer = SlidingWindow(**HEADS, sliding_window=2048)
    found = allocated([FULL, WINDOW, longer] * 4)
    assert sorted(group.spec.window or 0 for group in found.groups) == [0, 1024, 2048]
    assert not equal_pages._can_merge(
        [spec(WINDOW, packed=True, unforgetting=True), spec(longer, packed=True, unforgetting=True)]
    )


def test_what_no_page_fits_becomes_one_container_of_full_attention():
    made = [spec(cache, packed=True) for cache in (FULL, WINDOW, ODD)]
    (found,) = equal_pages.group_padded_layers(made)
    assert found.container
    assert found.num_layers == 3
    hidden = HiddenState(num_hidden_states=4, hidden_size=128)
    for other in (hidden, ChunkedLocal(**HEADS, attention_chunk_size=64)):
        with pytest.raises(EngineError, match="unify"):
            equal_pages._container([*made, spec(other, packed=True)])


def test_no_container_where_the_windows_cannot_be_of_one_type():
    with pytest.raises(EngineError, match="unify"):
        equal_pages._container(
            [spec(cache, packed=True) for cache in (FULL, MLA(kv_lora_rank=500, qk_rope_head_dim=60))]
        )


def test_blocks_grow_where_a_token_of_hidden_states_does_not_fit():
    wide = HiddenState(num_hidden_states=16, hidden_size=8192)
    small = FullAttention(num_kv_heads=1, head_size=16, head_size_v=16)
    found = equal_pages.group_padded_layers([spec(small, packed=True), spec(wide, packed=True)])
    pages = {member.page_size_bytes for group in found for member, _ in group.members}
    assert len(pages) == 1
    assert found[0].spec.block_size > 16
    padded = Group(members=((spec(small, packed=True).padded(2048), (0,)),))
    assert equal_pages._scaled(padded, 2).spec.page_size_bytes == 4096
    # 16 tokens of 528 bytes, up to 8640: `SlidingWindowMLASpec.merge` keeps the page, not the alignment.
    window = SlidingWindowMLA(head_size=528, qk_rope_head_dim=0, sliding_window=128)
    aligned = replace(spec(window, packed=True, storage=Storage(kv=FP8)), alignment=576)
    assert equal_pages._scaled(Group(members=((aligned, (0,)),)), 2).spec.page_size_bytes == 2 * 8640


def test_a_group_has_the_class_of_its_first_layer():
    """`create_kv_cache_group_specs` merges the layers of each group, not of the whole type."""
    reference = ReferenceWindow(**HEADS, reference_window=64)
    made = [spec(cache, packed=True) for cache in (FULL, reference, WINDOW)]
    found = equal_pages.group_padded_layers(made)
    assert [group.spec.type.value for group in found] == [
        "FullAttentionSpec",
        "RSWASpec",
        "SlidingWindowSpec",
    ]


def test_a_state_is_padded_and_a_page_that_divides_grows():
    big, state = spec(FULL, packed=True), spec(MAMBA, packed=True)
    page = state.page_size_bytes
    assert equal_pages._padded(state, page) is state
    assert equal_pages._padded(state, page + 16).page_size_bytes == page + 16
    assert equal_pages._padded(big, 2 * big.page_size_bytes).block_size == 32
    assert equal_pages._grown(big, big.page_size_bytes) is big


BLOCKS, OTHER = CacheLayout.BLHNC, CacheLayout.LBHNC


def test_layouts_that_the_engine_cannot_give():
    halved = FullAttention(num_kv_heads=4, head_size=128, head_size_v=128)
    full, half = spec(FULL, packed=True), spec(halved, packed=True)
    whole = [chosen for chosen in CacheLayout if not chosen.whole_pages]
    with pytest.raises(EngineError, match="one size"):
        layout.resolve([whole], [full, half])
    inner = [chosen for chosen in CacheLayout if chosen.whole_pages and not chosen.block_outer]
    with pytest.raises(EngineError, match="one size"):
        layout.check_expressible(inner[0], [Group(members=((each, (0,)),)) for each in (full, half)])
    gapped = Group(members=((full.padded(70_000), (0,)),))
    with pytest.raises(EngineError, match="gap"):
        layout.check_expressible(whole[0], [gapped])
    layout.check_expressible(inner[0], [gapped])
    with pytest.raises(EngineError, match="cannot keep"):
        layout.resolve([[OTHER]], [full], requested=BLOCKS.value)
    with pytest.raises(EngineError, match="No cache layout"):
        layout.resolve([[BLOCKS], [OTHER]], [full])
    assert layout.resolve([[BLOCKS, OTHER], [OTHER, BLOCKS], [OTHER]], [full]) == OTHER
    assert layout.resolve([None], [full], requested=layout.resolve([None], [full]).value)
    assert kv_cache_layout({"backend_layouts": [[BLOCKS.value], [OTHER.value]], "specs": []}, NEW) == {
        "error": "no_common_layout"
    }


def test_hisparse_refuses_what_has_no_indexer_or_no_rows_of_its_own():
    latent, index = spec(LATENT, packed=True, leads_indexer=True), spec(INDEX, packed=True, indexer=True)
    chosen = hisparse.HiSparse(index_topk=2048, host_pool_gib=1)
    assert chosen.buffer.value == 4096
    with pytest.raises(FieldError):
        assert replace(chosen, device_buffer_size=1).buffer
    with pytest.raises(EngineError, match="needs sparse"):
        hisparse.plan([latent, spec(FULL, packed=True)], chosen, Settings(), rules_of(NEW), GIB)
    inner = next(one for one in CacheLayout if one.block_outer)
    settings = Settings(kv_cache_layout=inner, max_model_len=4096)
    shared = [latent, index, replace(latent, leads_indexer=False)]
    assert hisparse.plan(shared, chosen, settings, rules_of(NEW), 64 * GIB).num_blocks.value > 0
    given = replace(settings, num_gpu_blocks_override=123)
    assert hisparse.plan(shared, chosen, given, rules_of(NEW), 64 * GIB).num_blocks.value == 123
    outer = next(one for one in CacheLayout if not one.block_outer)
    with pytest.raises(EngineError, match="HiSparse refuses"):
        hisparse.plan([latent, index], chosen, Settings(kv_cache_layout=outer), rules_of(NEW), GIB)


def test_a_group_without_layers_takes_nothing():
    here = Group(members=members([spec(FULL, packed=True)], [0])).on_stage(frozenset())
    assert rules_of(NEW).block_bytes([here], CacheLayout.BLHNC).value == 0


def test_rings_have_entries_of_two_vectors():
    ring = GivenRing(ring_width=64, ring_tokens=4, heads=2, element_bytes=2)
    assert ring.slots.value == 4


def test_the_index_of_an_ordinary_model_may_be_of_four_bits():
    layers = [(LATENT, IndexKey(index_head_dim=128))] * 2
    wide, narrow = (
        allocated(layers, FP8, fp4_indexer=chosen).bytes_per_block.value for chosen in (False, True)
    )
    assert wide - narrow == 2 * 64 * (132 - 68)


def test_mamba_states_are_kept_twice_with_reuse_and_once_without():
    state = Mamba2(conv_kernel=4, mamba_num_heads=16, mamba_head_dim=64, state_size=128, n_groups=1)
    on, off = (
        allocated([FULL, state], enable_prefix_caching=chosen, available_memory_bytes=GIB, max_model_len=4096)
        for chosen in (None, False)
    )
    assert on.pool.blocks_per_request.value > off.pool.blocks_per_request.value


def test_a_field_outside_its_bounds_is_named():
    with pytest.raises(FieldError):
        Settings(max_num_batched_tokens=0)
