"""The answers in words and tables: the estimate's numbers, in their places, as text and never as markup."""

from itertools import chain
from urllib.parse import urlencode

import pytest

from calculator import catalogue
from calculator.app.readouts import ALWAYS, IN_TABS, pieces, summary
from calculator.app.rehearsal import every_sort
from calculator.estimate import estimate
from calculator.fields import TABS
from calculator.footprint import QUANTITIES
from calculator.formats import KV_FORMATS
from calculator.locales import LANGUAGES, text
from calculator.units import exact, human
from tests.app.page import HOSTILE, SITE, SYSTEM, Page, all_pieces, changed, opened

SCENARIOS = {
    **{model: f"m={model}" for model in every_sort()},
    "windows": "a=window&L=48&g=8&w=1024&t=32768",
    "states": "a=state&g=0&sk=mamba2",
    "refused": "m=llama-3.1-8b&tp=3&n=7&u=GB",
    "one token": "t=1&n=1",
}
every_scenario = pytest.mark.parametrize("query", SCENARIOS.values(), ids=SCENARIOS)
every_language = pytest.mark.parametrize("language", LANGUAGES)


def figures(html, name="data-kv-value"):
    """Hook -> (machine value, text)."""
    found = [(data, text) for data, text in Page(html).all("data") if name in data]
    assert len({data[name] for data, _ in found}) == len(found)
    return {data[name]: (data["value"], text) for data, text in found}


def rows(html):
    """Texts of the cells of a table's body."""
    return [
        [cell.partition("</")[0].rpartition(">")[2] for cell in row.split("<t")[1:] if "</t" in cell]
        for row in html.partition("<tbody>")[2].split("<tr>")[1:]
    ]


def test_every_piece_has_its_element_in_the_page():
    page = (SITE / "index.html").read_text(encoding="utf-8")
    for name in (*ALWAYS, *chain(*IN_TABS.values())):
        assert page.count(f'id="{name}"') == 1
        assert f'piece("{name}")' in page


def test_only_the_open_tab_is_written():
    assert tuple(IN_TABS) == TABS
    for tab in TABS:
        assert tuple(pieces(opened(f"tab={tab}"))) == (*ALWAYS, *IN_TABS[tab])


@every_language
@every_scenario
def test_every_piece_is_well_formed(query, language):
    made = all_pieces(opened(query, language=language))
    assert set(made) == {*ALWAYS, *chain(*IN_TABS.values())}
    for html in made.values():
        Page(html)


@every_scenario
def test_the_headline_is_the_estimate_to_the_byte(query):
    state = opened(query)
    answer = estimate(state.scenario)
    expected = {}
    for scope, amounts in (("per_rank", answer.per_rank), ("whole_model", answer.whole_model)):
        for name in QUANTITIES:
            amount = getattr(amounts, name).value
            expected[f"{scope}.{name}"] = (str(amount), f"{exact(amount)} B")
    html = all_pieces(state)["headline"]
    assert figures(html) == expected
    large = [text for attributes, text in Page(html).all("p") if attributes.get("class") == "big"]
    assert large == [human(getattr(answer.per_rank, name).value, state.units) for name in QUANTITIES]


@every_scenario
def test_the_table_of_tp_sizes_is_the_estimate(query):
    state = opened(query)
    sizes = state.answer.by_tp()
    html = all_pieces(state)["ranks"]
    shown = figures(html, "data-kv-rank")
    totals = [row.amounts.total_bytes.value for row in sizes]
    assert shown == {
        str(row.tp): (str(total), f"{exact(total)} B") for row, total in zip(sizes, totals, strict=True)
    }
    meters = [(int(meter["value"]), int(meter["max"])) for meter, _ in Page(html).all("meter")]
    assert meters == [(total, totals[0]) for total in totals]
    chosen = [row for row, _ in Page(html).all("tr") if "aria-current" in row]
    assert len(chosen) == 1
    assert html.count("refused by the engines") == sum(not row.accepted for row in sizes)


@every_scenario
def test_the_data_of_the_curve_are_the_estimate_at_every_row(query):
    state = opened(query)
    table = rows(all_pieces(state)["curve_data"])
    contexts = [int(row[0].replace(",", "")) for row in table]
    assert state.scenario.context_tokens in contexts
    assert set(state.answer.rank.bounds()) <= set(contexts)
    for row, parts in zip(table, state.answer.curve(contexts), strict=True):
        amounts = (parts.linear, parts.bounded, parts.constant, parts.total)
        assert row[1:] == [f"{exact(amount)} B" for amount in amounts]


def test_the_data_of_the_bars_are_the_comparison():
    state = opened()
    expected = [
        [
            bar.name,
            *(f"{exact(getattr(bar.parts, part))} B" for part in ("linear", "bounded", "constant", "total")),
        ]
        for bar in state.compared
    ]
    assert rows(all_pieces(state)["bars_data"]) == expected


def test_the_note_states_largest_by_smallest_with_and_without_state():
    note = all_pieces(opened())["bars_note"]
    assert "7.78" in note
    assert "8.27" in note


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("storage", KV_FORMATS)
def test_models_that_the_format_cannot_hold_are_named_and_fewer_than_two_bars_have_no_ratio(
    storage, language
):
    state = changed(opened(), language=language, model="llama-7b", kv_cache_dtype=storage)
    assert state.problems.keys() <= {"kv_cache_dtype"}
    shown = all_pieces(state)
    placed = {bar.key for bar in state.compared if bar.parts}
    left_out = [catalogue.entry(model).name for model in catalogue.FLAGSHIPS if model not in placed]
    assert len(rows(shown["bars_data"])) == len(placed)
    for name in left_out:
        assert name in shown["bars_note"]
    assert bool(left_out) == (
        text(language, "bars.left_out", names=", ".join(left_out)) in shown["bars_note"]
    )
    assert summary(state)["bars"]


def test_one_bar_or_none_is_compared_with_nothing():
    state = opened("tab=data")
    for bars in (state.compared[:1], []):
        state.compared = bars
        shown = pieces(state)
        note = shown["bars_note"]
        assert "÷" not in note
        assert len(rows(shown["bars_data"])) == len(bars)


def test_the_layers_say_which_what_and_how_much():
    (row,) = rows(all_pieces(opened())["layers"])
    assert row[1:3] == ["MLA latent with rope key", "BF16"]
    assert row[-1] == "1,152 B"
    layers = all_pieces(opened("m=gemma-3-27b"))["layers"]
    assert layers.count("<tr>") == 1 + len(opened("m=gemma-3-27b").answer.plan.groups())


def test_the_layer_tokens_of_a_window_hybrid_are_counted():
    held = all_pieces(opened(SCENARIOS["windows"]))["layer_tokens"]
    for number in ("303,104", "1,572,864", "19.3"):
        assert number in held


def test_where_every_rank_keeps_a_copy_the_page_says_so():
    assert "full copy" in all_pieces(opened())["ranks_note"]
    assert "full copy" not in all_pieces(opened("m=llama-7b"))["ranks_note"]


@every_scenario
def test_the_strip_has_every_layer_in_its_order(query):
    state = opened(query)
    strip = Page(pieces(state)["strip"])
    groups = state.answer.plan.groups()
    order = [int(run["data-group"]) for run, _ in strip.all("i") for _ in range(int(run["data-layers"]))]
    assert [groups[group].caches for group in order] == list(state.answer.plan.layers)
    assert len(strip.all("li")) == len(groups)
    for (item, words), group in zip(strip.all("li"), groups, strict=True):
        assert str(len(group.indices)) in words
        for cache in group.caches:
            assert text("en", f"kind.{cache.kind}") in item["data-stores"]
            assert text("en", f"growth.{cache.growth}") in item["data-stores"]


@every_scenario
def test_every_derivation_ends_in_its_number(query):
    state = opened(query)
    page = Page(all_pieces(state)["derivation"])
    lines = state.answer.derivations()
    assert [text for _, text in page.all("dt")] == [line.quantity for line in lines]
    results = [text for _, text in page.all("mtext")]
    assert results == [f"{exact(line.value)}{' B' if 'bytes' in line.quantity else ''}" for line in lines]
    copies = [button["data-copy"] for button, _ in page.all("button")]
    for line, result, texts, latex in zip(lines, results, copies[::2], copies[1::2], strict=True):
        made = line.expression
        assert texts == f"{line.quantity} = {made.symbols} = {made.numbers} = {result}"
        assert latex.count(" = ") == 2
    for line, (_, shown) in zip(lines, page.all("dd"), strict=True):
        assert line.source in shown


@every_language
@every_scenario
def test_how_shows_the_formula_of_the_number_that_is_asked_for(query, language):
    state = opened(query, language=language)
    for name in QUANTITIES:
        (line,) = [one for one in state.answer.derivations() if one.quantity == f"per_rank.{name}"]
        page = Page(pieces(state, f"per_rank.{name}")["how"])
        assert [words for _, words in page.all("mtext")] == [f"{exact(line.value)} B"]
        assert page.all("button")[0][0]["data-copy"].startswith(
            f"per_rank.{name} = {line.expression.symbols} = "
        )
        assert f"per_rank.{name}" in {
            button["data-how"] for button, _ in Page(pieces(state)["headline"]).all("button")
        }
    assert "how" not in pieces(state)
    assert pieces(state, HOSTILE)["how"] == ""


def test_the_legend_says_what_the_symbols_of_a_formula_stand_for():
    legend = Page(pieces(opened(), "per_rank.bytes_per_token")["how"])
    assert dict(
        zip([words for _, words in legend.all("dt")], [words for _, words in legend.all("dd")], strict=True)
    ) == {
        "L": "layers of the group",
        "R": "rank of the latent (kv_lora_rank)",
        "Dr": "size of the rope key",
        "s": "bytes per element",
    }
    assert "sequences" in pieces(opened("n=7"), "per_rank.total_bytes")["how"]
    # In a state the same letter is the size of the state.
    assert "sequences" not in pieces(opened("a=state&sk=mamba2&n=7"), "per_rank.constant_bytes")["how"]


def test_the_factors_of_deepseek_v3_are_those_of_the_published_example():
    table = rows(pieces(opened("tab=factors"))["factors"])
    shown = figures(pieces(opened("tab=factors"))["factors"], "data-kv-factor")
    assert shown["mha"] == ("499712000000", "499,712,000,000 B")  # 128 heads of 192 + 128, 61 layers
    assert shown["architecture"] == ("7027200000", "7,027,200,000 B")
    assert "÷ 71.11" in pieces(opened("tab=factors"))["factors"]
    assert len(table) > 3


def test_a_changed_model_has_no_query_heads_and_the_page_says_so():
    factors = pieces(opened("tab=factors&L=7"))["factors"]
    assert "MHA:" not in factors
    assert text("en", "factors.no_heads") in factors


@every_language
def test_the_notices_are_the_estimates(language):
    state = opened("m=llama-3.1-8b&tp=3", language=language)
    assert len(Page(all_pieces(state)["notices"]).all("p")) == len(state.answer.notices()) > 0
    assert all_pieces(opened())["notices"].count("<p>") == len(opened().answer.notices())


@pytest.mark.parametrize("given", [{HOSTILE: "1"}, {"v": HOSTILE}, {"m": HOSTILE}, {"t": HOSTILE}])
def test_what_an_address_says_is_text_and_never_markup(given):
    state = opened(urlencode(given))
    for html in all_pieces(state).values():
        assert "<img" not in html
        assert not any(
            name.startswith("on") for _, attributes, _ in Page(html).elements for name in attributes
        )
    told = Page(all_pieces(state)["notices"]).all("p")
    if given.keys() & {HOSTILE, "v"}:
        assert any(HOSTILE in text for _, text in told)


def test_a_changed_model_is_custom():
    state = opened()
    assert state.model_name == "DeepSeek-V3"
    assert changed(state, num_layers="7").model_name == "custom, from DeepSeek-V3"
    assert all_pieces(state)["name"] == "custom, from DeepSeek-V3"
    assert changed(state, num_layers="61").model_name == "DeepSeek-V3"


@every_language
@every_scenario
def test_the_sentences_for_screen_readers_state_the_numbers(query, language):
    state = opened(query, language=language)
    told = summary(state)
    total = human(state.answer.per_rank.total_bytes.value, state.units)
    assert told.keys() == {"curves", "bars", "live"}
    assert total in told["curves"]
    assert total in told["live"]
    assert state.model_name in told["curves"]
    for bar in state.compared:
        if bar.parts:
            assert f"{bar.name} {human(bar.parts.total, state.units)}" in told["bars"]


def test_units_change_the_large_numbers_and_never_the_exact_ones():
    state = opened()
    before = all_pieces(state)["headline"]
    state.change({"units": "GB"}, SYSTEM)
    after = all_pieces(state)["headline"]
    assert figures(before) == figures(after)
    assert "KiB" in before
    assert "KiB" not in after
