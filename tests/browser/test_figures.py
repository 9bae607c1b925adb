"""The published figures, read off the built page, driven by keyboard and by number boxes."""

from math import log2

import pytest
from playwright.sync_api import expect

from .calculator_page import CalculatorPage, digits

TP_SIZES = (1, 2, 4, 8, 16)
DRIVERS = {
    "by keyboard": CalculatorPage.slide,
    "by number box": lambda page, field, n: page.type(field, str(n)),
}
BARS = {  # one request of 100,000 tokens in BF16: bytes by tokens, and float32 state
    "Qwen3.5-397B-A17B": (3_072_000_000, 192_061_440),
    "Kimi K2.6": (7_027_200_000, 0),
    "DeepSeek V3.2": (7_832_400_000, 0),
    "GLM 5.1": (10_015_200_000, 0),
    "MiniMax M2.7": (25_395_200_000, 0),
}

driven = pytest.mark.parametrize("drive", DRIVERS.values(), ids=DRIVERS)


@pytest.fixture
def mla(live, drive):
    """MLA, 61 layers, rank 512, rope 64, BF16, reached from LLaMA-7B."""
    live.choose("model", "llama-7b")
    live.choose("architecture", "mla")
    drive(live, "num_layers", 61)
    drive(live, "kv_lora_rank", 512)
    drive(live, "qk_rope_head_dim", 64)
    live.slide("kv_cache_dtype", "fp8")
    live.slide("kv_cache_dtype", "bf16")
    return live


@driven
def test_mla_of_61_layers_caches_70272_bytes_per_token(mla):
    assert [row[-1] for row in mla.table("layers")] == ["1,152 B"]
    assert mla.number("per_rank.bytes_per_token") == 70_272
    expect(mla.value("per_rank.bytes_per_token")).to_have_text("70,272 B")
    expect(mla.find(".tile").first.locator(".big")).to_have_text("68.6 KiB")


@driven
def test_mla_of_61_layers_takes_549_mib_at_8192_tokens(mla, drive):
    drive(mla, "context_tokens", 8192)
    assert mla.number("per_rank.total_bytes") == 70_272 * 8_192
    expect(mla.find(".tile").last.locator(".big")).to_have_text("549 MiB")


@driven
def test_mla_is_the_same_on_every_tp_rank(mla, drive):
    for tp in TP_SIZES:
        drive(mla, "tensor_parallel_size", tp)
        assert mla.number("per_rank.bytes_per_token") == 70_272
        assert mla.number("per_rank.total_bytes") == 7_027_200_000
    rows = mla.table("ranks")
    assert [row[:2] for row in rows] == [[str(tp), "70,272 B"] for tp in TP_SIZES]
    totals = mla.find("[data-kv-rank]").evaluate_all("(found) => found.map(({ value }) => value)")
    assert totals == ["7027200000"] * 5
    assert all("100 %" in row[-1] for row in rows)


@driven
def test_kv_heads_are_shared_out_over_tp_ranks(live, drive):
    live.choose("model", "llama-3.1-8b")
    whole = 2 * 32 * 8 * 128 * 2
    for tp, per_rank in {1: whole, 2: whole // 2, 4: whole // 4, 8: whole // 8, 16: whole // 8}.items():
        drive(live, "tensor_parallel_size", tp)
        assert live.number("per_rank.bytes_per_token") == per_rank
        assert live.number("whole_model.bytes_per_token") == whole


def test_a_latent_width_of_576_can_be_typed_and_the_rank_follows(live):
    live.slide("kv_lora_rank", 256)
    expect(live.box("latent_width")).to_have_value("320")
    live.type("latent_width", "576")
    expect(live.box("kv_lora_rank")).to_have_value("512")
    assert live.number("per_rank.bytes_per_token") == 70_272


@driven
def test_a_window_hybrid_holds_a_fifth_of_the_layer_tokens(live, drive):
    live.choose("architecture", "window")
    drive(live, "num_layers", 48)
    drive(live, "num_global_layers", 8)
    drive(live, "sliding_window", 1024)
    drive(live, "context_tokens", 32_768)
    expect(live.piece("layer_tokens")).to_contain_text("303,104 of 1,572,864 (19.3 %)")


def test_five_flagships_at_100000_tokens_in_the_table(live):
    rows = {name: [digits(cell) for cell in cells] for name, *cells in live.table("bars_data")}
    assert rows == {name: [tokens, 0, state, tokens + state] for name, (tokens, state) in BARS.items()}
    expect(live.find("#bars_note")).to_contain_text("7.78 with state")
    expect(live.find("#bars_note")).to_contain_text("8.27 by tokens")


def test_what_hangs_at_the_mouse_says_a_bar_once(live):
    live.find("#bars").hover(position={"x": 120, "y": 100})
    hanging = live.find(".bk-Tooltip:visible")
    hanging.wait_for()
    said = hanging.evaluate("({ shadowRoot }) => shadowRoot.textContent")
    assert [row in said for row in BARS].count(True) == 1
    assert said.count(" B") == 1


def test_five_flagships_are_drawn_in_proportion(live):
    (bars,) = [glyph for glyph in live.drawn()["bars"]["glyphs"] if glyph["type"] == "HBar"]
    data = bars["data"]
    longest = 25_395_200_000
    parts = zip(data["name"], data["left"], data["right"], data["exact"], strict=True)
    drawn = [(name, left * longest, right * longest, digits(exact)) for name, left, right, exact in parts]
    expected = [
        (name, start, end, tokens + state)
        for name, (tokens, state) in BARS.items()
        for start, end in ((0, tokens), (tokens, tokens), (tokens, tokens + state))
    ]
    assert [name for name, *_ in drawn] == [name for name, *_ in expected]
    assert [edges for _, *edges in drawn] == [pytest.approx(edges) for _, *edges in expected]


def test_the_bars_follow_their_own_context(live):
    live.type("compare_tokens", "200K")
    rows = {cells[0]: digits(cells[-1]) for cells in live.table("bars_data")}
    assert rows == {name: 2 * tokens + state for name, (tokens, state) in BARS.items()}


@pytest.mark.parametrize(
    ("model", "lines"),
    [
        ("llama-7b", {"linear", "total"}),
        ("deepseek-v3", {"linear", "total"}),
        ("gemma-3-27b", {"linear", "bounded", "total"}),
        ("mistral-7b-v0.1", {"bounded", "total"}),
        ("qwen3.5-397b-a17b", {"linear", "constant", "total"}),
    ],
)
def test_there_is_a_line_for_each_way_of_growing(live, model, lines):
    live.set(model=model)
    drawn = {name for name in ("linear", "bounded", "constant", "total") if live.line(name)}
    assert drawn == lines


def parts_by_context(page):
    """The curve's data table: {context in words: {part: bytes}}."""
    names = ("linear", "bounded", "constant", "total")
    return {
        f"{tokens} tokens": dict(zip(names, map(digits, cells), strict=True))
        for tokens, *cells in page.table("curve_data")
    }


def test_the_drawn_curve_equals_its_table_on_linear_axes(live):
    live.set(model="gemma-3-27b", axes="linear")
    table = parts_by_context(live)
    assert "1,024 tokens" in table
    highest = table["1,048,576 tokens"]["total"]
    for name in ("linear", "bounded", "total"):
        line = live.line(name)
        drawn = {tokens: line[tokens] * highest for tokens in table if tokens in line}
        shared = {tokens: table[tokens][name] for tokens in drawn}
        assert {"1,024 tokens", "100,000 tokens", "1,048,576 tokens"} <= set(shared)
        assert drawn == pytest.approx(shared)


def test_the_drawn_curve_equals_its_table_on_logarithmic_axes(live):
    live.set(model="gemma-3-27b")
    table, line = parts_by_context(live), live.line("total")
    known = [tokens for tokens in table if tokens in line]
    first, last = known[0], known[-1]
    span = (line[last] - line[first]) / log2(table[last]["total"] / table[first]["total"])
    for tokens in known:
        rise = span * log2(table[tokens]["total"] / table[first]["total"])
        assert line[tokens] - line[first] == pytest.approx(rise)


def test_growth_stops_where_the_window_is_marked(live):
    live.set(model="gemma-3-27b")
    bounded = live.line("bounded")
    heights = list(bounded.values())
    at = list(bounded).index("1,024 tokens")
    assert heights[: at + 1] == sorted(set(heights[: at + 1]))
    assert set(heights[at:]) == {heights[at]}
    glyphs = live.drawn()["curves"]["glyphs"]
    (mark,) = [glyph for glyph in glyphs if glyph["type"] == "Segment"]
    (line,) = [glyph for glyph in glyphs if glyph["field"].get("y") == "bounded"]
    places = [line["data"]["tokens"].index(tokens) for tokens in ("1,024 tokens", "100,000 tokens")]
    assert mark["data"]["x"] == [line["data"]["x"][place] for place in places]
    assert "1,024" in mark["data"]["text"][0]


def test_axes_switch_between_logarithmic_and_linear(live):
    def middle():
        glyph = live.drawn()["curves"]["glyphs"][0]
        return glyph["data"]["x"][glyph["data"]["tokens"].index("100,000 tokens")]

    assert middle() == pytest.approx((log2(100_000) - 8) / 12)
    live.choose("axes", "linear")
    assert middle() == pytest.approx(100_000 / 2**20)
    live.choose("axes", "log")
    assert middle() == pytest.approx((log2(100_000) - 8) / 12)
