"""The tab of one's own model and the drawing of the comparison, as Python writes them."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calculator import catalogue, layer_text
from calculator.app import lines, own
from calculator.app.main import App
from calculator.app.readouts import pieces
from calculator.app.scales import with_steps
from calculator.app.state import OWN_FIELDS
from tests.app.page import HOSTILE, SYSTEM, changed, opened

LLAMA = json.dumps(catalogue.entry("llama-3.1-8b").config)


def test_every_number_has_its_place_and_origin():
    state = opened("m=gemma-3-27b&tab=own")
    found = {number.place: number for row in own.rows(state) for number in row.numbers}
    assert found["0.0.sliding_window"].origin == "text_config.sliding_window"
    assert found["1.0.num_kv_heads"].value == 16
    changed(state, overrides="1.0.num_kv_heads=4")
    found = {number.place: number for row in own.rows(state) for number in row.numbers}
    assert (found["1.0.num_kv_heads"].value, found["1.0.num_kv_heads"].origin) == (4, "typed here")
    assert found["0.0.num_kv_heads"].origin == "text_config.num_key_value_heads"


def test_groups_that_became_alike_keep_their_places():
    state = changed(opened("m=gemma-3-27b"), overrides="0.0.num_kv_heads=1,1.0.num_kv_heads=1")
    assert [row.group.indices[0] for row in own.rows(state)] == [0, 5]


@pytest.mark.parametrize("model", ["bge-large-en", "llama-3-3-nemotron-super-49b-v1", "deepseek-v4-flash"])
def test_the_plan_and_the_editor_say_any_model(model):
    state = opened(f"m={model}&tab=own")
    shown = pieces(state)["own"]
    assert shown.count("data-place") == sum(len(row.numbers) for row in own.rows(state))
    rebuilt = "+".join(
        f"{block['times']}*("
        + "+".join(
            f"{row['layers']}*"
            + (
                "/".join(
                    f"{held['kind']}({','.join(f'{name}={size}' for name, size in held['sizes'].items())})"
                    for held in row["caches"]
                )
                or "none"
            )
            for row in block["rows"]
        )
        + ")"
        for block in own.editable(state)
    )
    assert layer_text.parse(rebuilt) == state.answer.plan.layers


def test_a_refused_configuration_keeps_the_model_and_its_sentence_until_another_model_comes():
    state = changed(opened(), config='{"model_type": "fancy"}', own_name="X")
    assert state.scenario.config == ""
    assert own.messages(state)["config"].startswith("num_hidden_layers")
    assert "config" not in state.typed, "it is not read again at every move of a slider"
    changed(state, tensor_parallel_size="2")
    assert own.messages(state)["config"]
    changed(state, config=LLAMA, own_name="Mine")
    assert set(own.messages(state).values()) == {""}
    assert state.model_name == "Mine"
    changed(state, own_name="")
    assert state.model_name == "imported model"
    changed(state, layers="2*none")
    assert state.model_name == "model described by hand"
    changed(state, model="glm-5.1")
    assert (state.model_name, state.scenario.own) == ("GLM 5.1", False)


def test_what_is_wrong_in_a_link_is_told_as_a_notice():
    state = opened("c=nonsense&x=glm-9&p=zz")
    assert [error.field for error in state.unplaced] == ["config", "compared", "pins"]
    assert set(own.messages(state)) == set(OWN_FIELDS)


def test_only_the_open_tab_costs_anything():
    app = App("", SYSTEM)
    assert "own" not in app.page()
    app.change({"tab": "own"}, SYSTEM)
    assert app.page()["own"].keys() == {"messages", "layers", "name"}


def test_names_and_origins_are_text():
    state = changed(opened("tab=own"), config=LLAMA, own_name=HOSTILE[:50])
    assert "<script" not in pieces(state)["own"].replace("<script-", "")
    changed(state, tab="compare", compared="this", pins=json.dumps([[HOSTILE[:50], "none"]]))
    shown = pieces(state)["compare"]
    assert "<img" not in shown
    assert "<script" not in shown


def test_the_comparison_has_a_row_and_a_line_for_each_model_and_says_why():
    state = opened("tab=compare&x=this,deepseek-v4-flash,nemotron-h-56b-base-8k,glm-5.1&f=fp8_v4")
    shown = pieces(state)["compare"]
    placed = [one for one in state.compared if one.parts]
    assert shown.count('<g class="line ') == 2 * len(placed)
    assert all(f">{state.compared_name(one)}<" in shown for one in placed)
    state = opened("tab=compare")
    assert "only 15 keep keys and values" in pieces(state)["compare"]
    (pin,) = json.loads(pieces_pinned(state))
    assert pin == ["DeepSeek-V3", "61*mla(kv_lora_rank=512,qk_rope_head_dim=64)"]


def pieces_pinned(state):
    from calculator.app.readouts import _pinned

    return _pinned(state)


@pytest.mark.parametrize("axes", ["log", "linear"])
def test_lines_end_where_the_figures_say(axes):
    state = opened(f"tab=compare&ax={axes}")
    wide, narrow = lines.charts(state.compared, state.compared_name, 100_000, axes, 1024, str)
    for chart in (wide, narrow):
        assert len(chart.lines) == 5
        assert all(0 <= line.label <= chart.height for line in chart.lines)
        ends = [line.end[1] for line in chart.lines]
        assert ends == sorted(ends), "largest first, and so highest"
        assert len({(line.colour, line.dash) for line in chart.lines}) == 5
    assert wide.lines[0].amount == "25395200000"


def test_nothing_to_compare_is_drawn_as_nothing():
    state = opened("tab=compare&x=")
    assert state.compared == []
    assert '<g class="line ' not in pieces(state)["compare"]
    assert "÷" not in pieces(state)["bars_note"]
    assert pieces(opened("tab=compare&x=bge-large-en"))["compare"].count('<g class="line ') == 2


@given(st.lists(st.floats(0, 400), max_size=24))
def test_names_stand_apart_in_the_order_of_their_lines(ends):
    placed = lines.apart(ends, 16, 0, 400)
    assert all(at <= 400 for at in placed)
    order = sorted(range(len(ends)), key=lambda number: ends[number])
    assert all(placed[b] - placed[a] >= 15.8 for a, b in pairwise(order))


def test_both_sides_of_the_first_steps_are_among_the_points():
    assert with_steps([1, 1_000], [300]) == [1, 300, 301, 600, 601, 900, 901, 1_000]


def test_what_is_held_is_what_the_curve_and_its_table_show():
    state = opened("m=llama-4-scout-17b-16e&gr=held&tab=data")
    assert state.curve([8_193]) == state.answer.held_curve([8_193])
    assert state.curve([8_193]) != state.answer.curve([8_193])
    app = App("m=llama-4-scout-17b-16e&gr=held", SYSTEM)
    heights = list(app.views["curves"].points.data["bounded"])
    assert sum(after < before for before, after in pairwise(heights)) > 20
