"""What cannot be taken: a message beside the field, the last good answer stays, nothing typed is lost."""

import pytest
from playwright.sync_api import expect

from calculator.caches import MLA, FullAttention, SlidingWindow, bounds
from calculator.fields import MAX_TOKENS
from calculator.shape import MAX_LAYERS

from .calculator_page import DEFAULTS

HUGE = "1" + "0" * 30
BAD = ("0", "-1", "1.5", "abc", "", HUGE)
ROPE = 64
RANGES = {
    "num_layers": (1, MAX_LAYERS),
    "sliding_window": bounds(SlidingWindow, "sliding_window"),
    "num_kv_heads": bounds(FullAttention, "num_kv_heads"),
    "latent_width": (bounds(MLA, "kv_lora_rank")[0], bounds(MLA, "kv_lora_rank")[1]),
    "context_tokens": (1, MAX_TOKENS),
    "tensor_parallel_size": (1, 1024),
}
ARCHITECTURES = {"latent_width": "mla"}


def is_refused(page, field, text):
    """The field says what is wrong and keeps the text; the rest of the page keeps the last good answer."""
    expect(page.message(field)).not_to_be_empty()
    expect(page.box(field)).to_have_attribute("aria-invalid", "true")
    expect(page.box(field)).to_have_value(text)


@pytest.mark.parametrize("field", RANGES)
def test_a_bad_number_is_refused_beside_its_box(live, field):
    live.set(architecture=ARCHITECTURES.get(field, "window"))
    good, before = live.box(field).input_value(), live.result()
    headline = live.find("#headline").inner_text()
    lowest, highest = RANGES[field]
    for text in BAD:
        live.paste(field, text)  # typed key by key, 1.5 is a legal 1 on its way
        is_refused(live, field, text)
        if field != "latent_width":
            expect(live.message(field)).to_contain_text(f"{lowest:,} to {highest:,}")
        live.page.keyboard.press("Tab")  # leaving the box does not lose the text
        live.settle()
        is_refused(live, field, text)
        assert live.result() == before
        assert live.find("#headline").inner_text() == headline
    live.type(field, good)
    expect(live.message(field)).to_be_empty()
    expect(live.box(field)).not_to_have_attribute("aria-invalid", "true")
    assert live.result() == before


@pytest.mark.parametrize("text", BAD)
def test_a_bad_latent_width_names_the_range_of_rank_and_rope(live, text):
    live.paste("latent_width", text)
    is_refused(live, "latent_width", text)
    lowest, highest = bounds(MLA, "kv_lora_rank")
    _, rope = bounds(MLA, "qk_rope_head_dim")
    assert live.message("latent_width").inner_text().count(" to ") == 1
    expect(live.message("latent_width")).to_contain_text(f"{lowest:,} to {highest + rope:,}")


def test_a_latent_width_below_its_rope_part_names_what_is_left_for_the_rank(live):
    live.type("latent_width", "64")
    is_refused(live, "latent_width", "64")
    lowest, highest = bounds(MLA, "kv_lora_rank")
    expect(live.message("latent_width")).to_contain_text(f"{lowest + ROPE:,} to {highest + ROPE:,}")


def test_two_bad_fields_each_keep_their_text_and_message(live):
    before = live.result()
    live.type("num_layers", "none")
    live.type("context_tokens", "0")
    is_refused(live, "num_layers", "none")
    is_refused(live, "context_tokens", "0")
    assert live.result() == before
    live.type("num_layers", "60")
    expect(live.message("num_layers")).to_be_empty()
    is_refused(live, "context_tokens", "0")
    live.type("context_tokens", "1000")
    expect(live.message("context_tokens")).to_be_empty()
    assert live.number("per_rank.total_bytes") == 60 * 1_152 * 1_000


def test_a_good_change_beside_a_bad_one_is_taken(live):
    live.type("num_layers", "none")
    live.type("context_tokens", "1000")
    assert live.number("per_rank.total_bytes") == 61 * 1_152 * 1_000
    is_refused(live, "num_layers", "none")


def test_more_full_attention_layers_than_layers_are_refused_until_there_are_more_layers(live):
    live.set(architecture="window", num_layers="20")
    before = live.result()
    live.paste("num_global_layers", "21")
    is_refused(live, "num_global_layers", "21")
    expect(live.message("num_global_layers")).to_contain_text("0 to 20")
    assert live.result() == before
    live.type("num_layers", "30")
    expect(live.message("num_global_layers")).to_be_empty()
    scenario = live.result()["scenario"]
    assert (scenario["num_layers"], scenario["num_global_layers"]) == (30, 21)


def test_more_than_can_be_counted_exactly_is_refused(live):
    live.set(num_sequences="1000000", context_tokens="100000")
    before = live.result()
    live.paste("context_tokens", "128Mi")
    is_refused(live, "context_tokens", "128Mi")
    assert live.result() == before
    live.set(num_sequences="1")
    expect(live.message("context_tokens")).to_be_empty()
    assert live.number("per_rank.total_bytes") == 70_272 * 2**27


def test_a_refusal_is_said_in_the_present_language(live):
    live.type("num_layers", "none")
    english = live.message("num_layers").inner_text()
    live.choose("language", "zh")
    expect(live.message("num_layers")).not_to_have_text(english)
    expect(live.message("num_layers")).to_contain_text("1,024")
    is_refused(live, "num_layers", "none")


def test_a_slider_clears_the_refusal_of_its_box(live):
    live.type("num_layers", "none")
    live.slide("num_layers", 60)
    expect(live.message("num_layers")).to_be_empty()
    expect(live.box("num_layers")).to_have_value("60")


def test_choosing_a_model_clears_refusals_of_its_numbers_but_not_of_others(live):
    live.type("num_layers", "none")
    live.type("context_tokens", "none")
    live.choose("model", "kimi-k2.6")
    expect(live.message("num_layers")).to_be_empty()
    is_refused(live, "context_tokens", "none")
    live.set(context_tokens=DEFAULTS["context_tokens"])
