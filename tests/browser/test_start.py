"""What the page shows and takes before Python is there: its snapshot is held back until a test lets it go."""

import pytest
from playwright.sync_api import expect

from .calculator_page import CalculatorPage
from .conftest import watching
from .faults import SLICES
from .inspected import Inspected
from .watched import origin

GLM_5_1 = 10_015_200_000  # bytes of 100,000 tokens: golden case of models.json
DEEPSEEK_V3 = 70_272
FRAME = """() => {
  const chart = [...Bokeh.index.roots].find(({ el }) => el.parentElement?.id === 'curves');
  const { left, top, width, height } = chart.frame.bbox;
  const { x, y } = chart.el.getBoundingClientRect();
  return { x: x + left, y: y + top, width, height };
}"""


@pytest.fixture
def held(browser, faulty, faults):
    """A page whose Python cannot start yet."""
    faults.slowed = r"snapshot-\w+\.zst"
    with watching(browser, origin(faulty)) as watched:
        yield CalculatorPage(watched.page)


def let_go(page, faults):
    assert page.find("html").get_attribute("data-kv-state") in {"loading", "painted"}
    faults.allowed.release(SLICES)
    page.wait_for("live")


def drawn(page):
    return page.find("#curves > :not(.still)")


def test_the_answer_and_its_charts_are_there_without_python(held, faulty, faults):
    held.page.goto(faulty)
    assert held.number("per_rank.bytes_per_token") == DEEPSEEK_V3
    held.wait_for("painted")
    assert held.drawn()["curves"]["glyphs"]
    assert held.find(".still").count() == 0
    let_go(held, faults)


def test_pictures_stand_where_bokeh_draws(held, fresh, faulty, site):
    held.page.route("**/bokeh.min.js", lambda route: None)  # neither comes nor fails
    held.page.goto(faulty, wait_until="commit")
    expect(held.find("#curves .still polyline.total")).to_be_visible()
    expect(held.find("#bars .still .row")).to_have_count(5)
    expect(held.find("#bars .still")).to_contain_text("MiniMax M2.7")
    expect(held.find("#bars .still")).to_contain_text("23.7 GiB")
    pictured = {name: held.find(f"#{name}").bounding_box() for name in ("curves", "bars")}
    frame = held.find("#curves .still .frame").bounding_box()
    fresh.page.goto(site)
    fresh.wait_for("live")
    assert {name: fresh.find(f"#{name}").bounding_box() for name in pictured} == pictured
    assert frame == pytest.approx(fresh.page.evaluate(FRAME), abs=4)


def test_a_link_to_a_model_shows_its_answer_without_python(held, faulty, faults):
    held.page.goto(f"{faulty}?v=1&m=glm-5.1&lang=zh")
    expect(held.find("html")).to_have_attribute("data-kv-answer", "still")
    assert held.number("per_rank.total_bytes") == GLM_5_1
    expect(held.find("#name")).to_be_visible()
    expect(held.find("#name")).to_have_text("GLM 5.1")
    expect(held.find("#headline h2").first).to_have_text("每 token（每个 rank）")
    expect(held.find("#curves .still polyline.total")).to_be_visible()
    expect(drawn(held)).not_to_be_visible()
    let_go(held, faults)
    expect(drawn(held)).to_be_visible()
    assert held.find(".still").count() == 0
    assert held.number("per_rank.total_bytes") == GLM_5_1


def test_a_link_with_other_numbers_shows_no_number_that_it_does_not_mean(held, faulty, faults):
    held.page.goto(f"{faulty}?v=1&m=glm-5.1&L=7")
    expect(held.find("html")).to_have_attribute("data-kv-answer", "waiting")
    for shown in held.find("#headline p, .still, #name, #layers").all():
        expect(shown).not_to_be_visible()
    let_go(held, faults)
    expect(held.find("#headline p").first).to_be_visible()
    assert held.result()["scenario"]["num_layers"] == 7
    assert held.number("per_rank.bytes_per_token") == held.result()["per_rank"]["bytes_per_token"]


def test_the_default_model_by_its_name_is_there_at_once(held, faulty, faults):
    held.page.goto(f"{faulty}?v=1&m=deepseek-v3")
    assert held.find("html").get_attribute("data-kv-answer") is None
    expect(held.find("#headline p").first).to_be_visible()
    assert held.number("per_rank.bytes_per_token") == DEEPSEEK_V3
    let_go(held, faults)


def test_three_sliders_moved_before_live_all_arrive(held, faulty, faults):
    held.page.goto(faulty)
    for field, key in (
        ("tensor_parallel_size", "ArrowRight"),
        ("num_layers", "ArrowLeft"),
        ("context_tokens", "Home"),
    ):
        held.slider(field).press(key)
    shown = {
        field: held.box(field).input_value().replace(",", "") for field in ("num_layers", "context_tokens")
    }
    let_go(held, faults)
    scenario = held.result()["scenario"]
    assert scenario["tensor_parallel_size"] == 2
    assert scenario["num_layers"] == 60
    assert {field: str(scenario[field]) for field in shown} == shown
    assert held.number("per_rank.bytes_per_token") == 60 * 1_152


def test_what_is_typed_before_live_arrives_with_the_rest(held, faulty, faults):
    held.page.goto(faulty)
    held.box("num_layers").fill("30")
    for _ in range(3):
        held.slider("tensor_parallel_size").press("ArrowRight")
    held.box("context_tokens").fill("8192")
    let_go(held, faults)
    scenario = held.result()["scenario"]
    expect(held.box("num_layers")).to_have_value("30")
    expect(held.box("context_tokens")).to_have_value("8192")
    expect(held.box("tensor_parallel_size")).to_have_value("8")
    typed = ("num_layers", "tensor_parallel_size", "context_tokens")
    assert [scenario[name] for name in typed] == [30, 8, 8192]
    assert held.number("per_rank.total_bytes") == 30 * 1_152 * 8_192


def test_no_collection_of_garbage_looks_through_what_was_kept(fresh, site):
    inspected = Inspected(fresh.page)
    fresh.open(site)
    kept = inspected.python("__import__('gc').get_freeze_count()")
    looked_through = inspected.python("len(__import__('gc').get_objects())")
    assert kept > 10 * looked_through
