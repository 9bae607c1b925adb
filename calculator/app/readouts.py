"""The answers in words and tables, as pieces of HTML by the id of the element they fill.

The same pieces are written into the page at build time, so that nothing moves when Python takes over. What
stands in a tab is written only while the tab is open: a slider must not wait for what nobody sees.
"""

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import groupby
from typing import Any

import jinja2

from .. import catalogue, layer_text
from ..allocation import DIFFERENCE, Figure
from ..changed import comparisons
from ..comparison import Compared
from ..errors import CalculatorError
from ..estimate import ARITHMETIC
from ..explain import Derivation, Expression, symbol
from ..footprint import QUANTITIES
from ..locales import text
from ..model import ranges
from ..notation import latex, mathml
from ..own import LONGEST_NAME, pins
from ..units import SYSTEMS, exact, human
from .lines import Chart, charts
from .own import rows
from .state import State

ALWAYS = ("name", "brief", "chosen", "headline", "notices", "strip", "bars_note")
# The figure of the capacity that is in the headline, and the quantity whose formula it has.
FITTING = {"whole_requests": "whole_requests", "max_total_num_tokens": "tokens"}
# What the symbols of the headline's formulas stand for; engines use some of them for other things.
SYMBOLS = ("L", "H", "d", "d_v", "R", "D_r", "d_i", "s", "T", "w", "b", "b_w", "S", "N")
IN_TABS: Mapping[str, tuple[str, ...]] = {
    "layers": ("layers", "layer_tokens"),
    "own": ("own",),
    "compare": ("compare",),
    "ranks": ("ranks", "ranks_note"),
    "factors": ("factors",),
    "engine": ("engine",),
    "changed": ("changed",),
    "derivation": ("derivation",),
    "data": ("curve_data", "bars_data"),
}


@cache
def templates() -> jinja2.Environment:
    """The page's templates; everything put into them is text, never markup."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def pieces(state: State, how: str = "") -> dict[str, str]:
    """HTML by element id: what always shows, what the open tab shows, and how the quantity `how` is made."""
    language, units = state.language, state.units
    written = (
        templates()
        .get_template("answers.html")
        .make_module(
            {
                "t": lambda key, **values: text(language, key, **values),
                "human": lambda amount: human(amount, units),
                "number": lambda amount: human(amount, units).split(" ")[0],
                "unit": lambda amount: human(amount, units).split(" ")[1],
                "exact": exact,
                "amount": lambda figure: _amount(figure, units),
                "ranges": ranges,
                "answer": state.answer,
                "scenario": state.scenario,
                "quantities": QUANTITIES,
                "parted": DIFFERENCE,
                "arithmetic": ARITHMETIC,
                "fitting": FITTING,
                "model_name": state.model_name,
                "compared": lambda: _compared(state),
                "curve": lambda: _sampled(state),
                "steps": lambda: _factors(state),
                "comparisons": lambda: comparisons(state.answer.scenario, state.answer.plan),
                "effect": lambda value, unit: _effect(value, unit, units),
                "refuses": lambda outcome: isinstance(outcome, CalculatorError),
                "own_rows": lambda: rows(state),
                "lines": lambda: _lines(state),
                "pinned": lambda: _pinned(state),
                "flagships": catalogue.FLAGSHIPS,
                "compared_rows": lambda: _compared_rows(state),
                "runs": lambda: _runs(state),
                "mathml": mathml,
                "copies": _copies,
                "result": _result,
                "asked": _derivation(state, how) if how else None,
                "quantity": lambda line: _quantity(line, language),
                "legend": _legend,
                "symbol": lambda name: mathml(symbol(name, 0), symbolic=True),
                "problems": [
                    *(text(language, "notice.unknown", key=key) for key in state.unknown),
                    *(error.message(language) for error in state.unplaced),
                ],
            }
        )
    )
    shown = (*ALWAYS, *IN_TABS[state.scenario.tab], *(("how",) if how else ()))
    return {name: str(getattr(written, name)()).strip() for name in shown}


def summary(state: State) -> dict[str, str]:
    """One sentence for each chart, and one for the live region."""
    answer, language, units = state.answer, state.language, state.units
    return {
        "curves": text(
            language,
            "chart.curves.summary",
            model=state.model_name,
            rate=human(answer.per_rank.bytes_per_token.value, units),
            tokens=state.scenario.context_tokens,
            total=human(answer.per_rank.total_bytes.value, units),
        ),
        "bars": text(
            language,
            "chart.bars.summary",
            tokens=state.scenario.compare_tokens,
            bars=", ".join(
                f"{state.compared_name(bar)} {human(bar.parts.total, units)}"
                for bar in state.compared
                if bar.parts
            ),
        ),
        "live": text(
            language,
            "live.summary",
            tokens=state.scenario.context_tokens,
            total=human(answer.per_rank.total_bytes.value, units),
            rate=human(answer.per_rank.bytes_per_token.value, units),
        ),
    }


def _factors(state: State) -> list[dict[str, Any]]:
    """The steps from MHA to each format, each with its share of the first and how many times smaller."""
    steps = state.answer.factors()
    first = Fraction(steps[0].total_bytes.value) or 1  # an encoder keeps nothing
    return [
        {
            "name": step.name,
            "heads": step.heads,
            "amount": step.total_bytes.value,
            "share": float(step.total_bytes.value / first),
            "times": f"{float(first / (step.total_bytes.value or 1)):.2f}",
            "chosen": step.name == state.scenario.kv_cache_dtype
            or (step.name == "architecture" and state.scenario.kv_cache_dtype == "bf16"),
        }
        for step in steps
    ]


def _derivation(state: State, quantity: str) -> Derivation | None:
    """How `quantity` was made; None where the present answer has none of that name."""
    return next((line for line in state.answer.derivations() if line.quantity == quantity), None)


def _quantity(line: Derivation, language: str) -> str:
    """The words of a figure on one rank; an engine's own quantity keeps its name."""
    scope, _, name = line.quantity.partition(".")
    if scope != "per_rank":
        return line.quantity
    return f"{text(language, 'scope.per_rank')}: {text(language, f'quantity.{name}')}"


def _result(line: Derivation) -> str:
    """The value that a derivation comes to, with its unit."""
    return f"{exact(line.value)} B" if "bytes" in line.quantity else exact(line.value)


def _copies(line: Derivation) -> dict[str, str]:
    """A derivation as one line of plain text and of LaTeX."""
    made, result = line.expression, _result(line)
    symbols, numbers = (latex(made, symbolic=symbolic) for symbolic in (True, False))
    digits = result.replace(",", "{,}").replace(" B", r"\ \mathrm{B}")
    return {
        "text": f"{line.quantity} = {made.symbols} = {made.numbers} = {result}",
        "latex": f"{symbols} = {numbers} = {digits}",
    }


def _legend(line: Derivation) -> list[str]:
    """The symbols of a headline's formula that have words, in the order of `SYMBOLS`."""
    scope, _, quantity = line.quantity.partition(".")
    found = set(_names(line.expression)) if scope == "per_rank" else set()
    if quantity != "total_bytes":
        found.discard("N")  # of a state it is the size
    return [name for name in SYMBOLS if name in found]


def _names(expression: Expression) -> Iterator[str]:
    yield expression.name
    for part in expression.parts:
        yield from _names(part)


def _amount(figure: Figure, units: str) -> str:
    """A figure of the capacity with its unit; multiples keep two decimals, as the engine prints them."""
    value = figure.value.value
    if figure.unit == "times":
        return f"{float(value):.2f}×"
    if figure.unit == "bytes":
        whole = Fraction(value)
        return f"{human(whole, units)} ({exact(whole)} B)"
    return exact(Fraction(value))


def _effect(value: Expression | None, unit: str, units: str) -> str:
    """A figure of one version; a dash where there is none."""
    return "–" if value is None else _amount(Figure(name="", unit=unit, value=value), units)


def _compared(state: State) -> dict[str, Any]:
    bars = [one for one in state.compared if one.parts]
    sizes = [bar.parts.total for bar in bars]
    growing = sorted(bar.parts.linear + bar.parts.bounded for bar in bars)
    # One bar, or one that takes nothing, has nothing to be compared with.
    compare = len(bars) > 1 and growing[0] > 0
    return {
        "bars": [(state.compared_name(bar), bar.parts) for bar in bars],
        "ratio": f"{sizes[-1] / sizes[0]:.2f}" if compare else "",
        "ratio_tokens": f"{growing[-1] / growing[0]:.2f}" if compare else "",
        "left_out": [state.compared_name(one) for one in state.compared if one.refusal],
    }


def _lines(state: State) -> list[Chart]:
    scenario = state.scenario
    return charts(
        state.compared,
        state.compared_name,
        scenario.compare_tokens,
        scenario.axes,
        SYSTEMS[scenario.units][1],
        lambda amount: human(amount, scenario.units),
    )


def _compared_rows(state: State) -> Iterator[dict[str, Any]]:
    """The models that have figures, smallest first, each with how often it is the smallest and why."""
    placed = [one for one in state.compared if one.parts]
    least = next((one.parts.total for one in placed if one.parts.total), 1)
    for one in placed:
        rates = [getattr(one.weighed, name) for name in QUANTITIES[:3]]
        yield {
            "name": state.compared_name(one),
            "columns": (*QUANTITIES[:3], "total"),
            "amounts": [*rates, one.parts.total],
            "times": one.parts.total / least,
            "why": _why(state, one),
            "remove": one.key,
        }


def _pinned(state: State) -> str:
    """The pins with the present model among them."""
    scenario = state.scenario
    present = (state.model_name[:LONGEST_NAME], layer_text.write(state.answer.plan.layers))
    kept = [(name, layers) for name, layers in pins(scenario.pins) if layers != present[1]]
    return json.dumps([*kept, present])


def _why(state: State, one: Compared) -> str:
    """What makes the bar as long as it is: of a flagship in a sentence, else the kinds in words."""
    if one.key in catalogue.FLAGSHIPS:
        return text(state.language, f"why.{one.key}")
    kinds = (
        f"{len(group.indices)} × "
        + (
            " + ".join(text(state.language, f"kind.{cache.kind}") for cache in group.caches)
            or text(state.language, "own.nothing")
        )
        for group in one.plan.groups()
    )
    return ", ".join(kinds)


def _sampled(state: State) -> list[tuple[int, Any]]:
    """A dozen points of the curve for its data table."""
    powers = (2**power for power in range(10, 21, 2))
    tokens = sorted({*powers, state.scenario.context_tokens, *state.answer.rank.bounds()})
    return list(zip(tokens, state.curve(tokens), strict=True))


def _runs(state: State) -> Iterator[tuple[int, int]]:
    """The layers in their order as runs of equal ones: (number of the group, how many)."""
    groups = state.answer.plan.groups()
    group_of = {index: number for number, group in enumerate(groups) for index in group.indices}
    for number, run in groupby(group_of[index] for index in sorted(group_of)):
        yield number, len(list(run))
