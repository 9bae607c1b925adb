"""How long a move of a slider takes, from the key's event to the chart that is drawn anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builder.console import BuildError
from playwright.sync_api import Error

from tests.bench.visits import Flow, fresh_browser, open_live

if TYPE_CHECKING:
    from playwright.sync_api import Playwright

SLIDER = "[data-kv-control=num_layers] input[type=range]"
WARM_UP_MOVES, MOVES = 10, 200
# kv-updated is marked in the frame that draws what Python answered. Who polls takes time from the page.
NOTE_MOVES = """(slider) => {
  let moved;
  slider.addEventListener('input', (event) => (moved = event.timeStamp), { capture: true });
  const mark = performance.mark.bind(performance);
  performance.mark = (name) => {
    const entry = mark(name);
    if (name === 'kv-updated' && moved) {
      window.benchTaken = entry.startTime - moved;
      moved = undefined;
      window.benchTold?.();
    }
    return entry;
  };
}"""
AWAIT_UPDATE = """() => new Promise((resolve, reject) => {
  window.benchTold = () => {
    if (window.benchTaken === undefined) return;
    resolve(window.benchTaken);
    delete window.benchTaken;
    delete window.benchTold;
  };
  setTimeout(() => reject(new Error('no kv-updated within 30 s of a key press')), 30_000);
  window.benchTold();
})"""


def measure_slider(playwright: Playwright, flow: Flow, moves: int = MOVES) -> list[float]:
    """Milliseconds from a key's event on the layers slider to the drawn chart, by move, after a warm-up."""
    with fresh_browser(playwright) as context:
        page = open_live(context, flow, "slider")
        slider = page.locator(SLIDER)
        slider.evaluate(NOTE_MOVES)
        slider.focus()
        taken = []
        try:
            for move in range(WARM_UP_MOVES + moves):
                page.keyboard.press("ArrowLeft" if move // 20 % 2 == 0 else "ArrowRight")
                taken.append(float(page.evaluate(AWAIT_UPDATE)))
        except Error as error:
            raise BuildError(f"slider: move {len(taken) + 1}: {error.message.splitlines()[0]}") from error
        return taken[WARM_UP_MOVES:]
