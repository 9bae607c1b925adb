"""Two thousand moves of a slider leave nothing behind, in Python or in the browser: run by `bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .inspected import Inspected

if TYPE_CHECKING:
    from .calculator_page import CalculatorPage

WARM_UP, MOVES = 500, 2000
AT_ONCE = 10  # moves of the mouse between two waits for the answer: the page may put them together
# What one move makes, a patch and pieces of the page, is thousands of bytes: kept, it would show. What
# browsers and dictionaries keep by chance does not grow with the moves.
BYTES_PER_MOVE = {"python": 100, "worker": 500, "page": 1000}
COUNT = """() => {
  window.moves = window.answers = 0;
  document.addEventListener('input', () => (window.moves += 1), { capture: true });
  new PerformanceObserver((list) => (window.answers += list.getEntriesByName('kv-updated').length))
    .observe({ type: 'mark' });
}"""


def test_two_thousand_moves_leave_nothing_behind(fresh: CalculatorPage, site: str) -> None:
    inspected = Inspected(fresh.page)
    fresh.open(site)
    fresh.page.evaluate(COUNT)

    _drag(fresh, WARM_UP - 100)
    # What replaces an older piece counts as new, so the tracing begins before the first reading.
    inspected.python("__import__('_tracemalloc').start()")
    moves, answers = _drag(fresh, WARM_UP)
    before = _held(inspected)
    all_moves, all_answers = _drag(fresh, MOVES)
    after = _held(inspected)

    moves, answers = all_moves - moves, all_answers - answers
    growth = {part: round((after[part] - before[part]) / moves) for part in before}
    print(f"{moves} moves, {answers} answers, growth in bytes per move: {growth}")
    assert answers >= moves / AT_ONCE
    assert {part: grown for part, grown in growth.items() if grown > BYTES_PER_MOVE[part]} == {}


def _drag(calculator: CalculatorPage, moves: int) -> tuple[int, int]:
    """Drag the thumb to and fro until the page has seen so many moves in all: these moves, and answers."""
    mouse, slider = calculator.page.mouse, calculator.slider("num_layers")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    assert box
    height = box["y"] + box["height"] / 2
    stations = [box["x"] + box["width"] * share for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.7, 0.5, 0.3)]
    mouse.move(stations[0], height)
    mouse.down()
    seen = [0, 0]
    while seen[0] < moves:
        for station in stations:
            mouse.move(station, height, steps=AT_ONCE)
            calculator.settle()
        seen = calculator.page.evaluate("[moves, answers]")
    mouse.up()
    return seen[0], seen[1]


def _held(inspected: Inspected) -> dict[str, int]:
    inspected.python("__import__('gc').collect()")
    return {
        "python": inspected.python("__import__('_tracemalloc').get_traced_memory()[0]"),
        "worker": inspected.worker_bytes(),
        "page": inspected.page_bytes(),
    }
