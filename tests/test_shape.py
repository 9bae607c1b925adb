from dataclasses import fields, replace

import pytest
from hypothesis import given

from calculator import catalogue
from calculator.caches import (
    MLA,
    ChunkedLocal,
    FullAttention,
    GatedDeltaNet,
    IndexKey,
    Mamba2,
    SinkAttention,
    SlidingWindow,
)
from calculator.errors import FieldError
from calculator.model import ModelPlan
from calculator.shape import Architecture, Interleave, Shape, shape_of
from tests.strategies import shapes

FULL = FullAttention(num_kv_heads=8, head_size=128, head_size_v=128)
LATENT = MLA(kv_lora_rank=512, qk_rope_head_dim=64)
HYBRID = {"num_layers": 10, "num_global_layers": 2}


def test_a_shape_starts_as_the_latents_of_deepseek_v3():
    assert Shape().plan() == ModelPlan(layers=((LATENT,),) * 61)
    assert Shape().latent_width == 576


def test_full_attention_in_every_layer():
    assert Shape(architecture=Architecture.FULL, num_layers=3).plan().layers == ((FULL,),) * 3


def test_an_index_key_stands_beside_each_latent():
    shape = Shape(num_layers=2, index_head_dim=128)
    assert shape.plan().layers == ((LATENT, IndexKey(index_head_dim=128)),) * 2


@pytest.mark.parametrize(
    ("interleave", "placed"),
    [(Interleave.EVERY, {4, 9}), (Interleave.FIRST, {0, 1}), (Interleave.LAST, {8, 9})],
)
def test_where_the_full_layers_of_a_hybrid_stand(interleave, placed):
    shape = Shape(architecture=Architecture.WINDOW, interleave=interleave, **HYBRID)
    assert shape.global_layers() == placed
    full = {index for index, layer in enumerate(shape.plan().layers) if layer == (FULL,)}
    assert full == placed


@pytest.mark.parametrize(
    ("layers", "full", "placed"),
    [
        (62, 10, {5, 11, 17, 23, 29, 35, 41, 47, 53, 59}),  # Gemma-3-27B: every sixth, two windows at the end
        (60, 15, set(range(3, 60, 4))),  # Qwen3.5-397B-A17B: every fourth
        (48, 8, {5, 11, 17, 23, 29, 35, 41, 47}),
        (5, 5, {0, 1, 2, 3, 4}),
        (5, 0, set()),
        (5, 3, {0, 1, 2}),
    ],
)
def test_every_nth_layer_is_full_counted_from_the_end_of_its_block(layers, full, placed):
    assert Shape(num_layers=layers, num_global_layers=full).global_layers() == placed


@pytest.mark.parametrize(
    ("changes", "other"),
    [
        (
            {"architecture": Architecture.WINDOW, "sliding_window": 512},
            SlidingWindow(num_kv_heads=8, head_size=128, head_size_v=128, sliding_window=512),
        ),
        (
            {"architecture": Architecture.WINDOW, "window_kind": ChunkedLocal.kind, "sliding_window": 512},
            ChunkedLocal(num_kv_heads=8, head_size=128, head_size_v=128, attention_chunk_size=512),
        ),
        (
            {"architecture": Architecture.STATE},
            GatedDeltaNet(
                linear_num_key_heads=16,
                linear_num_value_heads=64,
                linear_key_head_dim=128,
                linear_value_head_dim=128,
                conv_kernel=4,
            ),
        ),
        (
            {"architecture": Architecture.STATE, "state_kind": Mamba2.kind},
            Mamba2(mamba_num_heads=128, mamba_head_dim=64, state_size=128, n_groups=8, conv_kernel=4),
        ),
    ],
)
def test_what_the_other_layers_of_a_hybrid_hold(changes, other):
    layers = Shape(interleave=Interleave.FIRST, **HYBRID, **changes).plan().layers
    assert layers == ((FULL,),) * 2 + ((other,),) * 8


@pytest.mark.parametrize("architecture", [Architecture.WINDOW, Architecture.STATE])
@pytest.mark.parametrize("full", [-1, 11])
def test_more_full_layers_than_layers_are_refused_with_the_bound(architecture, full):
    shape = Shape(architecture=architecture, num_layers=10, num_global_layers=full)
    with pytest.raises(FieldError, match=r"^Full-attention layers: -?\d+ is outside 0 to 10\.") as caught:
        shape.plan()
    assert caught.value.field == "num_global_layers"


@pytest.mark.parametrize("architecture", [Architecture.FULL, Architecture.MLA])
def test_a_number_that_the_architecture_does_not_read_waits_for_another(architecture):
    assert len(Shape(architecture=architecture, num_layers=1, num_global_layers=8).plan().layers) == 1


@given(shapes)
def test_only_the_fields_in_use_change_the_plan(shape):
    unused = {item.name for item in fields(Shape)} - shape.used()
    defaults = {item.name: item.default for item in fields(Shape) if item.name in unused}
    assert replace(shape, **defaults).plan() == shape.plan()


# More than two sorts of layers, kinds that have no sliders, or an order that no rule of the sliders gives.
UNSAYABLE = {
    "bart-base",
    "bge-large-en",
    "deepseek-v4-flash",
    "deepseek-v4-pro",
    "falcon-h1-tiny-90m-instruct",
    "falcon-mamba-7b",
    "gemma-4-31b-it-nvfp4",
    "glm-5.2",
    "granite-4.0-h-350m",
    "kimi-linear-48b-a3b-instruct",
    "lfm2-350m",
    "lfm2-8b-a1b",
    "llama-3-3-nemotron-super-49b-v1",
    "llama-3.2-11b-vision",
    "mimo-v2-flash",
    "minimax-m1",
    "minimax-m3",
    "nemotron-h-56b-base-8k",
    "nvidia-nemotron-3-super-120b-a12b-fp8",
    "nvidia-nemotron-3.5-lightning-30b-a3b-nvfp4",
    "recurrentgemma-2b",
    "ring-mini-linear-2.0-4bit",
    "rwkv-5-world-3b",
    "step-3.7-flash",
    "whisper-large-v3",
    "zamba2-7b",
}


@pytest.mark.parametrize("model", catalogue.ids())
def test_a_catalogue_model_comes_back_from_the_sliders(model):
    shape = shape_of(catalogue.plan(model))
    if model in UNSAYABLE:
        assert shape is None
        return
    assert shape is not None
    assert shape.plan().layers == catalogue.plan(model).layers


@given(shapes)
def test_a_plan_made_by_the_sliders_can_be_said_by_the_sliders(shape):
    found = shape_of(shape.plan())
    assert found is not None
    assert found.plan().layers == shape.plan().layers


@pytest.mark.parametrize("interleave", Interleave)
@pytest.mark.parametrize(
    "numbers",
    [
        {"architecture": Architecture.FULL, "head_size": 64},
        {"architecture": Architecture.MLA, "qk_rope_head_dim": 0},
        {"architecture": Architecture.MLA, "index_head_dim": 64},
        {"architecture": Architecture.WINDOW, "sliding_window": 7},
        {"architecture": Architecture.WINDOW, "sliding_window": 7, "window_kind": ChunkedLocal.kind},
        {"architecture": Architecture.STATE, "linear_key_head_dim": 7},
        {"architecture": Architecture.STATE, "n_groups": 7, "state_kind": Mamba2.kind},
    ],
    ids=str,
)
def test_every_architecture_comes_back_with_its_numbers(interleave, numbers):
    shape = Shape(interleave=interleave, **HYBRID, **numbers)
    found = shape_of(shape.plan())
    assert {name: getattr(found, name) for name in shape.used()} == {
        name: getattr(shape, name) for name in shape.used()
    }


WINDOW = SlidingWindow(num_kv_heads=8, head_size=128, head_size_v=128, sliding_window=64)
OTHER = SlidingWindow(num_kv_heads=8, head_size=128, head_size_v=128, sliding_window=65)


@pytest.mark.parametrize(
    "layers",
    [
        ((FULL,), (WINDOW,), (OTHER,)),  # three groups
        ((WINDOW,), (OTHER,)),  # two windows
        ((FULL, WINDOW, LATENT),),  # three caches in a layer
        ((FULL,), ()),  # a layer without a cache
        ((FULL,), (FULL,), (WINDOW,), (FULL,), (WINDOW,)),  # an order of its own
        ((LATENT,), (LATENT, IndexKey(index_head_dim=128))),  # an index in some layers only
        ((FULL, WINDOW),),
        ((FULL,), (replace(FULL, head_size=64),)),
        ((FULL,), (LATENT,)),
        ((FULL,), (SinkAttention(num_kv_heads=8, head_size=128, head_size_v=128, sink_len=4),)),
    ],
    ids=str,
)
def test_a_plan_that_the_sliders_cannot_say_has_no_shape(layers):
    assert shape_of(ModelPlan(layers=layers)) is None
