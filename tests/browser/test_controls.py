"""Controls: each is reached by keyboard, acts, and is there only where the architecture uses it."""

import re

import pytest
from playwright.sync_api import expect

COMMON = {
    *("model", "architecture", "num_layers", "tensor_parallel_size", "kv_cache_dtype", "context_tokens"),
    *("num_sequences", "engine", "compare_tokens", "units", "axes", "growth", "language", "theme"),
}
HEADS = {"num_kv_heads", "head_size", "head_size_v"}
HYBRID = HEADS | {"num_global_layers", "interleave"}
DELTA_NET = {
    *("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim"),
    "conv_kernel",
}
MAMBA = {"mamba_num_heads", "mamba_head_dim", "state_size", "n_groups", "conv_kernel"}
USED = {
    "full": HEADS,
    "mla": {"kv_lora_rank", "qk_rope_head_dim", "latent_width", "index_head_dim"},
    "window": HYBRID | {"window_kind", "sliding_window"},
    "state": HYBRID | {"state_kind", "state_dtype"} | DELTA_NET,
    "mamba2": HYBRID | {"state_kind", "state_dtype"} | MAMBA,
}
# Each control is tried once, where it first occurs.
TRIED = {
    "mla": COMMON | USED["mla"],
    "full": HEADS,
    "window": USED["window"] - HEADS,
    "state": DELTA_NET | {"state_dtype"},
    "mamba2": MAMBA,
}
NOT_SLIDERS = {
    *("model", "architecture", "latent_width", "interleave", "window_kind", "state_kind"),
    *("engine", "units", "axes", "growth", "language", "theme"),
}


def switch(page, shape):
    """To an architecture, or to the second kind of state."""
    page.set(architecture="state" if shape == "mamba2" else shape)
    if "state_kind" in page.fields():
        page.set(state_kind="mamba2" if shape == "mamba2" else "gated_delta_net")


def said(page):
    """All that the page says about the scenario: numbers, words, charts."""
    result = {name: part for name, part in page.result().items() if name != "scenario"}
    # Not the live region: it speaks later, when the user pauses.
    texts = page.find("#answers > :not(#live)").all_text_contents()
    return result, texts, page.drawn()


def step(page, locator):
    """One step with an arrow key, and one back."""
    forward, back = "ArrowRight", "ArrowLeft"
    if locator.evaluate("(one) => one.tagName === 'SELECT'"):
        forward, back = "ArrowDown", "ArrowUp"
        last = locator.evaluate("(select) => select.selectedIndex === select.options.length - 1")
    else:
        last = locator.evaluate("(range) => range.value === range.max")
    locator.focus()
    page.page.keyboard.press(back if last else forward)
    page.settle()


@pytest.mark.parametrize("shape", USED)
def test_an_architecture_shows_the_controls_that_it_uses(live, shape):
    switch(live, shape)
    assert set(live.fields()) == COMMON | USED[shape]
    for field in COMMON | USED[shape]:
        assert live.box(field).is_visible()
        assert live.slider(field).count() == (field not in NOT_SLIDERS)


@pytest.mark.parametrize("shape", USED)
def test_tab_reaches_every_control_and_shows_where_it_is(live, shape):
    switch(live, shape)
    live.page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    live.find("h1").click()
    reached = set()
    while True:
        live.page.keyboard.press("Tab")
        field, kind, outline = live.page.evaluate(
            """() => {
              const now = document.activeElement, style = getComputedStyle(now);
              return [now.closest('[data-kv-control]')?.dataset.kvControl ?? now.id,
                      now.type ?? now.tagName, style.outlineStyle + ' ' + style.outlineWidth];
            }"""
        )
        if kind == "BODY" or ((field, kind) in reached and field in COMMON):
            break
        assert outline == "solid 2px", f"{field} {kind} does not show that it has the focus"
        reached.add((field, kind))
    boxes = {field for field, kind in reached if kind in {"text", "select-one"}}
    sliders = {field for field, kind in reached if kind == "range"}
    assert boxes >= COMMON | USED[shape]
    assert sliders == ((COMMON | USED[shape]) - NOT_SLIDERS) | {"layer"}


@pytest.mark.parametrize("shape", TRIED)
def test_every_slider_changes_the_answer_and_its_box_changes_it_back(live, shape):
    switch(live, shape)
    for field in sorted(TRIED[shape] - NOT_SLIDERS):
        before, text, position = said(live), live.box(field).input_value(), live.slider(field).input_value()
        step(live, live.slider(field))
        assert live.box(field).input_value() != text, field
        assert said(live) != before, field
        live.set(**{field: text.replace(",", "")})
        assert live.slider(field).input_value() == position, field
        assert said(live) == before, field


@pytest.mark.parametrize("shape", ["mla", "window"])
def test_every_list_changes_the_answer_and_back(live, shape):
    switch(live, shape)
    for field in sorted(TRIED[shape] & NOT_SLIDERS - {"model", "latent_width", "state_kind", "growth"}):
        before, option = said(live), live.box(field).input_value()
        if field in {"language", "theme"}:
            other = {"language": "zh", "theme": "dark"}[field]
            live.choose(field, other)
        else:
            step(live, live.box(field))
        assert said(live) != before, field
        live.choose(field, option)
        assert said(live) == before, field


def test_changing_a_number_makes_the_model_custom_until_it_is_chosen_again(live):
    expect(live.find("#name")).to_have_text("DeepSeek-V3")
    live.slide("num_layers", 60)
    expect(live.find("#name")).to_have_text("custom, from DeepSeek-V3")
    expect(live.page).to_have_title(re.compile("custom, from DeepSeek-V3"))
    assert live.result()["scenario"]["custom"] is True
    expect(live.box("model")).to_have_value("custom, from DeepSeek-V3")
    live.choose("model", "deepseek-v3")
    expect(live.find("#name")).to_have_text("DeepSeek-V3")
    expect(live.box("num_layers")).to_have_value("61")
    assert live.result()["scenario"]["custom"] is False


def test_surroundings_do_not_make_a_model_custom(live):
    live.set(tensor_parallel_size="8", kv_cache_dtype="fp8", context_tokens="8192", num_sequences="4")
    expect(live.find("#name")).to_have_text("DeepSeek-V3")


def test_another_architecture_and_back_loses_no_number(live):
    live.set(kv_lora_rank="448")
    live.choose("architecture", "full")
    live.set(num_kv_heads="4")
    live.choose("architecture", "mla")
    expect(live.box("kv_lora_rank")).to_have_value("448")
    live.choose("architecture", "full")
    expect(live.box("num_kv_heads")).to_have_value("4")


def test_dtype_has_a_slider_and_a_list(live):
    for dtype, size in {"fp8": 1, "bf16": 2, "fp16": 2, "fp32": 4}.items():
        live.slide("kv_cache_dtype", dtype)
        expect(live.box("kv_cache_dtype")).to_have_value(dtype)
        assert live.number("per_rank.bytes_per_token") == 61 * 576 * size
    live.choose("kv_cache_dtype", "fp8")
    expect(live.slider("kv_cache_dtype")).to_have_value("0")


def test_a_box_takes_values_between_and_beyond_the_stops(live):
    live.type("num_layers", "300")
    assert live.number("per_rank.bytes_per_token") == 300 * 1_152
    assert live.slider("num_layers").input_value() == live.slider("num_layers").get_attribute("max")
    live.type("kv_lora_rank", "100")
    assert live.number("per_rank.bytes_per_token") == 300 * (100 + 64) * 2


def test_a_box_reads_short_counts_and_writes_them_out(live):
    live.type("context_tokens", "128Ki")
    expect(live.box("context_tokens")).to_have_value("128Ki")  # as typed, while the box is in use
    live.page.keyboard.press("Tab")
    expect(live.box("context_tokens")).to_have_value("131,072")
    assert live.result()["scenario"]["context_tokens"] == 131_072


def test_leaving_a_box_at_once_never_shows_the_old_number(live):
    shown = record(live, "num_layers", "input[type=text]")
    live.box("num_layers").focus()
    live.page.keyboard.press("Control+A")
    live.page.keyboard.type("62")
    live.page.keyboard.press("Tab")
    live.settle()
    values = shown()
    assert "61" not in values[values.index("62") :]
    assert values[-1] == "62"


RECORD = """(input) => {
  const values = [];
  window.stopRecording = () => { recording = false; return values; };
  let recording = true;
  (function look() {
    if (values.at(-1) !== input.value) values.push(input.value);
    if (recording) requestAnimationFrame(look);
  })();
  const proto = Object.getPrototypeOf(input), own = Object.getOwnPropertyDescriptor(proto, 'value');
  Object.defineProperty(input, 'value', {
    configurable: true,
    get() { return own.get.call(this); },
    set(text) { own.set.call(this, text); values.push(String(own.get.call(this))); },
  });
}"""


def record(page, field, part):
    """Start noting every value that an input shows; the answer stops it and returns the values in order."""
    locator = page.control(field).locator(part)
    locator.evaluate(RECORD)

    def stop():
        locator.evaluate("(input) => { delete input.value; }")
        return page.page.evaluate("() => stopRecording()")

    return stop


def drag(page, field):
    """With the mouse from the slider's first position to its last."""
    slider = page.slider(field)
    slider.focus()
    page.page.keyboard.press("Home")
    page.settle()
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.page.mouse.move(box["x"] + 6, middle)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + box["width"] + 20, middle, steps=80)
    page.page.mouse.up()


def test_a_fast_drag_ends_at_its_last_value_and_never_jumps_back(live):
    live.slide("num_layers", 1)
    positions = record(live, "num_layers", "input[type=range]")
    drag(live, "num_layers")
    live.settle()
    seen = [int(position) for position in positions()]
    assert seen == sorted(seen)
    assert len(set(seen)) > 20
    assert live.result()["scenario"]["num_layers"] == 128
    expect(live.box("num_layers")).to_have_value("128")
    assert live.number("per_rank.bytes_per_token") == 128 * 1_152


def test_moves_while_python_is_busy_are_sent_as_one(live):
    sent = live.page.evaluate(
        """async () => {
          const sent = [], post = Worker.prototype.postMessage;
          Worker.prototype.postMessage = function (message) {
            if (message.type === 'change') sent.push(message.changes.num_layers);
            return post.call(this, message);
          };
          const range = document.querySelector('[data-kv-control=num_layers] input[type=range]');
          for (let at = 0; at < 100; at += 1) {
            range.value = at;
            range.dispatchEvent(new Event('input', { bubbles: true }));
          }
          await kvCalculator.result();
          Worker.prototype.postMessage = post;
          return sent;
        }"""
    )
    assert sent == ["1", "100"]
    assert live.number("per_rank.bytes_per_token") == 100 * 1_152


def test_changes_sent_together_keep_their_order(live):
    change = """(changes) => {
      for (const [field, text] of changes) {
        const box = document.getElementById(`box-${field}`);
        box.value = text;
        box.dispatchEvent(new Event('input', { bubbles: true }));
        if (field === 'model') box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
      }
    }"""
    # The first change occupies Python; the others wait together.
    live.page.evaluate(change, [["num_sequences", "2"], ["num_layers", "10"], ["model", "gemma-3-27b"]])
    assert live.result()["scenario"]["num_layers"] == 62
    assert live.result()["scenario"]["custom"] is False
    live.page.evaluate(change, [["num_sequences", "1"], ["model", "deepseek-v3"], ["num_layers", "10"]])
    assert live.result()["scenario"]["num_layers"] == 10
    live.page.evaluate(change, [["num_sequences", "2"], ["latent_width", "576"], ["kv_lora_rank", "256"]])
    assert live.result()["scenario"]["kv_lora_rank"] == 256
    live.page.evaluate(change, [["num_sequences", "1"], ["kv_lora_rank", "256"], ["latent_width", "576"]])
    assert live.result()["scenario"]["kv_lora_rank"] == 512
