"""The calculator's page as a person uses it: keys, boxes, lists, and what can be read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from calculator.app.readouts import IN_TABS
from calculator.fields import TABS

from .watched import LOADED_MILLISECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Locator, Page

DEFAULTS = {
    "tensor_parallel_size": "1",
    "kv_cache_dtype": "bf16",
    "context_tokens": "100000",
    "num_sequences": "1",
    "compare_tokens": "100000",
    "units": "GiB",
    "axes": "log",
    "growth": "bound",
    "language": "auto",
    "theme": "auto",
}
TAB_OF = {piece: tab for tab, pieces in IN_TABS.items() for piece in pieces}
TAB_OF |= {"own_numbers": "own", "compared_models": "compare"}  # tables inside a piece

# The charts as Bokeh drew them; typed arrays become lists.
DRAWN = """() => {
  const plain = (value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
  const columns = (source) =>
    Object.fromEntries([...(source.data instanceof Map ? source.data : Object.entries(source.data))]
      .map(([name, values]) => [name, plain(values)]));
  const labels = (axis) =>
    [...(axis.major_label_overrides instanceof Map
      ? axis.major_label_overrides : Object.entries(axis.major_label_overrides))];
  const read = (figure) => ({
    glyphs: figure.renderers.filter((one) => one.glyph).map(({ glyph, data_source }) => ({
      type: glyph.type,
      field: Object.fromEntries(['x', 'y', 'left', 'right', 'text']
        .map((name) => [name, glyph[name]?.field]).filter(([, name]) => name)),
      colour: (glyph.line_color ?? glyph.fill_color ?? glyph.text_color)?.value ?? null,
      ink: glyph.text_color?.value ?? null,
      data: columns(data_source),
    })),
    x_label: figure.below[0]?.axis_label ?? null,
    x_ticks: figure.below[0] ? labels(figure.below[0]) : [],
    y_ticks: figure.left[0] ? labels(figure.left[0]) : [],
    tick_colour: figure.below[0]?.major_label_text_color?.value
      ?? figure.below[0]?.major_label_text_color ?? null,
  });
  const figures = [];
  for (const model of Bokeh.documents.at(-1)._all_models.values()) {
    if (model.renderers && model.below) figures.push(read(model));
  }
  const [bars] = figures.filter((figure) => figure.glyphs.some(({ type }) => type === 'HBar'));
  const [curves] = figures.filter((figure) => figure.glyphs.some(({ type }) => type === 'Line'));
  return { curves, bars };
}"""

WRITTEN = "(data) => Object.keys(data).every((name) => !name.endsWith('_text') || data[name].every(Boolean))"


def digits(text: str) -> int:
    """`70,272 B` -> 70272."""
    return int(re.sub(r"[^\d]", "", text))


class CalculatorPage:
    """Works in a page and in a frame alike; the keyboard is always the page's."""

    def __init__(self, page: Page, frame: Frame | None = None) -> None:
        self.page = page
        self.frame = frame or page.main_frame

    # ---- coming up ----------------------------------------------------------------------------------------

    def wait_for(self, state: str) -> None:
        self.find(f'html[data-kv-state="{state}"]').wait_for(state="attached", timeout=LOADED_MILLISECONDS)

    def open(self, url: str) -> CalculatorPage:
        """Open `url` and wait until the page is live."""
        self.page.goto(url)
        self.wait_for("live")
        return self

    def result(self) -> dict[str, Any]:
        """The result JSON, once Python has answered every change made so far."""
        return self.frame.evaluate("() => kvCalculator.result()")

    settle = result

    # ---- reading ------------------------------------------------------------------------------------------

    def find(self, selector: str) -> Locator:
        return self.frame.locator(selector)

    def control(self, field: str) -> Locator:
        return self.find(f'[data-kv-control="{field}"]')

    def box(self, field: str) -> Locator:
        return self.control(field).locator("input[type=text], select")

    def slider(self, field: str) -> Locator:
        return self.control(field).locator("input[type=range]")

    def message(self, field: str) -> Locator:
        return self.control(field).locator(".message")

    def value(self, quantity: str) -> Locator:
        return self.find(f'[data-kv-value="{quantity}"]')

    def number(self, quantity: str) -> int:
        """A read-out, as a machine reads it."""
        return int(self.value(quantity).get_attribute("value"))

    def fields(self) -> list[str]:
        """The controls that are on the page now."""
        return self.find("[data-kv-control]:not([hidden])").evaluate_all(
            "(found) => found.map(({ dataset }) => dataset.kvControl)"
        )

    def piece(self, name: str) -> Locator:
        """What stands in a tab, which is opened for it."""
        self.open_tab(TAB_OF[name])
        return self.find(f"#{name}")

    def table(self, name: str) -> list[list[str]]:
        """The rows of a table's body, cell by cell."""
        self.open_tab(TAB_OF[name])
        return self.find(f"#{name} tbody tr").evaluate_all(
            "(rows) => rows.map(({ cells }) => [...cells].map((cell) => cell.textContent.trim()))"
        )

    def drawn(self) -> dict[str, Any]:
        """What Bokeh drew: `curves` and `bars`, with the texts that follow when changes pause."""
        self.frame.wait_for_function(f"() => ({WRITTEN})(({DRAWN})().curves.glyphs[0].data)")
        return self.frame.evaluate(DRAWN)

    def line(self, name: str) -> dict[str, float]:
        """Height of one line of the curves by context in words; absent points are left out."""
        (glyph,) = [
            glyph
            for glyph in self.drawn()["curves"]["glyphs"]
            if glyph["type"] == "Line" and glyph["field"]["y"] == name
        ]
        heights = zip(glyph["data"]["tokens"], glyph["data"][name], strict=True)
        return {tokens: height for tokens, height in heights if height == height}

    def address(self) -> str:
        """The query in the address bar of this page or frame."""
        return self.frame.evaluate("() => location.search")

    # ---- doing --------------------------------------------------------------------------------------------

    def open_tab(self, name: str) -> None:
        """Open a tab, unless it is open, and wait for what stands in it."""
        tab = self.find(f"#tab-{name}")
        if tab.get_attribute("aria-selected") != "true":
            tab.click()
            self.settle()

    def type(self, field: str, text: str) -> None:
        """Replace what is in a box, key by key, and wait for the answer."""
        self.box(field).focus()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Delete")
        self.page.keyboard.type(text)
        self.settle()

    def paste(self, field: str, text: str) -> None:
        """Replace what is in a box at once, and wait for the answer."""
        self.box(field).focus()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)
        self.settle()

    def choose(self, field: str, option: str) -> None:
        """Choose from a list with the arrow keys, or find a model by its id."""
        box = self.box(field)
        if box.get_attribute("role") == "combobox":
            box.focus()
            self.page.keyboard.press("Control+A")
            self.page.keyboard.insert_text(option)
            self.page.keyboard.press("Enter")
            self.settle()
            return
        options, now = box.evaluate(
            """({ options, value }) =>
              [[...options].filter(({ hidden }) => !hidden).map((one) => one.value), value]"""
        )
        steps = options.index(option) - (options.index(now) if now in options else -1)
        box.focus()
        for _ in range(abs(steps)):
            self.page.keyboard.press("ArrowDown" if steps > 0 else "ArrowUp")
        self.settle()

    def slide(self, field: str, stop: int | str) -> None:
        """Move a slider to a stop with Home, PageUp and the arrow keys."""
        slider = self.slider(field)
        target = slider.evaluate("(range, stop) => JSON.parse(range.dataset.stops).indexOf(stop)", stop)
        assert 0 <= target <= int(slider.get_attribute("max")), f"{field} does not reach {stop}"
        slider.focus()
        self.page.keyboard.press("Home")
        while int(slider.input_value()) < target:
            self.page.keyboard.press("PageUp")
        while int(slider.input_value()) > target:
            self.page.keyboard.press("ArrowLeft")
        self.settle()

    def set(self, **fields: str) -> None:
        """Bring controls to these texts, whatever kind they are."""
        for field, text in fields.items():
            if self.box(field).input_value().replace(",", "") == text:
                continue
            if self.box(field).evaluate("(box) => box.matches('select, [role=combobox]')"):
                self.choose(field, text)
            else:
                self.type(field, text)

    def reset(self, model: str = "deepseek-v3") -> None:
        """The published `model` in the default surroundings."""
        if "state_dtype" in self.fields():
            self.set(state_dtype="fp32")
        self.set(model="kimi-k2.6")  # choosing another one first restores the numbers of a changed model
        self.set(model=model, **DEFAULTS)
        self.open_tab(TABS[0])
