"""What must hold for every registered cache kind, format and scenario; nothing here names one of them."""

import contextlib
import io
import json
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import gcd, isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator import estimate, open_address
from calculator.caches import KINDS, Cache, Growth, TokenCache
from calculator.cli import main
from calculator.errors import FieldError, LimitError
from calculator.estimate import EXACT_LIMIT, Estimate
from calculator.explain import symbol
from calculator.footprint import QUANTITIES, Parts, footprint
from calculator.formats import FORMATS, KV_FORMATS, PLAIN, Storage
from calculator.model import ModelPlan
from calculator.scenario import Scenario
from tests.arithmetic import evaluate
from tests.strategies import caches, contexts, scenarios, served, shapes, storages, tensor_parallel

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A cache, formats that it can be written in, and what is asked of it."""

    cache: Cache
    storage: Storage
    tp: int
    contexts: tuple[int, int]

    def unit(self, tp: int) -> Fraction:
        return self.cache.unit_bytes(self.storage, tp).value

    def bytes(self, context: int) -> Fraction:
        return self.unit(self.tp) * self.cache.units(context)


@st.composite
def cases(draw, kind) -> Case:
    cache = draw(caches(kind))
    storage = draw(storages(cache))
    return Case(
        cache=cache, storage=storage, tp=draw(tensor_parallel), contexts=(draw(contexts), draw(contexts))
    )


def law(holds):
    """A test per kind. Formats are drawn as the sizes are, so that kinds and formats do not multiply."""

    @every_kind
    def test(kind):
        settings(max_examples=15)(given(cases(kind))(holds))()

    test.__doc__ = holds.__doc__
    return test


@law
def test_bytes_are_whole_never_fall_as_the_context_grows_and_grow_as_the_kind_says(case):
    cache, (shorter, longer) = case.cache, sorted(case.contexts)
    one, now = case.unit(case.tp), case.bytes(longer)
    assert 0 <= case.bytes(shorter) <= now
    assert Fraction(now).denominator == 1
    if cache.growth is Growth.LINEAR:
        assert cache.bound is None
        line = one * Fraction(longer, cache.tokens_per_unit)
        assert now <= line, "never above linear"
        assert line == 0 or line - now < one, "and within one unit of it"
        assert cache.units(cache.tokens_per_unit * longer) == longer
        return
    assert cache.tokens_per_unit == 1
    if cache.growth is Growth.BOUNDED:
        assert now == one * min(longer, int(cache.bound.value)), (
            "never above linear, and flat from the bound on"
        )
    else:
        assert cache.growth is Growth.CONSTANT
        assert cache.bound is None
        assert now == case.bytes(1)


@law
def test_the_arithmetic_shown_gives_the_value(case):
    cache, (context, _) = case.cache, case.contexts
    formula = cache.unit_bytes(case.storage, case.tp)
    assert evaluate(formula.numbers) == formula.value
    units = cache.units(symbol("T", context))
    assert evaluate(units.numbers) == units.value == cache.units(context)


def shares_bytes(case: Case) -> bool:
    """Whether elements of several heads share a byte or a scale, so that what is split rounds anew."""
    if not isinstance(case.cache, TokenCache) or case.cache.row(1).heads is None:
        return False
    row, weigh = case.cache.row(1), case.cache.stored_in(case.storage).row_bytes
    return weigh(row).value != row.heads.value * weigh(replace(row, heads=symbol("H", 1))).value


ROUNDED_AWAY = 2  # bytes of a row: less than one of elements, less than one of scales


@law
def test_the_ranks_together_hold_the_whole_model(case):
    cache, tp = case.cache, case.tp
    whole, rank = case.unit(1), case.unit(tp)
    assert rank <= whole, "no rank holds more than the model"
    if all(heads % tp == 0 or tp >= heads for heads in cache.split_heads):
        assert rank * tp >= whole - (ROUNDED_AWAY * tp if shares_bytes(case) else 0)
    if not cache.split_heads:
        assert rank == whole, "what is copied does not shrink"
        assert cache.accepts_tp(tp)
        return
    common = gcd(*cache.split_heads)
    divisors = [size for size in range(1, 1025) if common % size == 0]
    even = divisors[tp % len(divisors)]
    assert cache.accepts_tp(even)
    assert case.unit(even) * even <= whole
    assert case.unit(even) * even == whole or shares_bytes(case), "split without a remainder"


@law
def test_formats_and_numbers_are_what_they_are_called(case):
    cache = case.cache
    stored = cache.stored_in(case.storage)
    assert FORMATS[stored.name] == stored
    assert all(cache.accepts(Storage(kv=plain)) for plain in PLAIN)
    again = type(cache)(**{name: getattr(cache, name) for name, _ in cache.sized()})
    assert cache == again
    assert len(ModelPlan(layers=((cache,), (again,))).groups()) == 1
    assert cache.accepts_tp(1)


@every_kind
def test_a_format_that_a_kind_refuses_is_an_error_that_names_both(kind):
    cache = kind(**smallest(kind))
    for name in KV_FORMATS:
        scenario = Planned(of=ModelPlan(layers=((cache,),)), kv_cache_dtype=name)
        if cache.accepts(scenario.storage):
            assert estimate(scenario).plan is scenario.of
            continue
        with pytest.raises(FieldError) as refused:
            estimate(scenario)
        assert (refused.value.key, refused.value.field) == ("error.format", "kv_cache_dtype")
        assert name in str(refused.value)
        assert kind.kind in str(refused.value)


@dataclass(frozen=True, kw_only=True)
class Planned(Scenario):
    """A scenario of layers that no catalogue model has."""

    of: ModelPlan

    def plan(self) -> ModelPlan:
        return self.of


@every_kind
def test_every_kind_says_whose_bytes_it_counts(kind):
    assert kind.__doc__
    assert kind.source
    for owner, version in re.findall(r"(vLLM|SGLang|transformers)(.*?)(?:;|$)", kind.source):
        assert re.match(r" \d+\.\d+\.\d+ \w", version), (owner, version)


def smallest(kind) -> dict[str, object]:
    return {name: bounds[0] for name, bounds in kind.sized()}


def largest(kind) -> dict[str, object]:
    return {name: bounds[1] for name, bounds in kind.sized()}


@every_kind
def test_a_size_outside_its_bounds_is_refused_with_the_bounds_and_both_bounds_are_allowed(kind):
    assert all(
        getattr(kind(**sizes), name) == sizes[name]
        for sizes in (smallest(kind), largest(kind))
        for name in sizes
    )
    for name, bounds in kind.sized():
        for sizes, value in ((smallest(kind), bounds[0] - 1), (largest(kind), bounds[1] + 1)):
            with pytest.raises(FieldError, match=f"{bounds[0]:,} to {bounds[1]:,}") as caught:
                kind(**sizes | {name: value})
            assert (caught.value.field, caught.value.value) == (name, value)


@every_kind
@pytest.mark.parametrize("value", [1.0, 2.5, "8", None, True, float("nan")], ids=repr)
def test_a_size_that_is_not_a_whole_number_is_refused(kind, value):
    for name, _ in kind.sized():
        with pytest.raises(FieldError, match="not a whole number") as caught:
            kind(**smallest(kind) | {name: value})
        assert caught.value.field == name


layers = st.lists(
    st.lists(st.sampled_from(list(KINDS.values())).flatmap(caches), max_size=2).map(tuple),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40)
@given(st.data(), layers, tensor_parallel, contexts, st.integers(1, 1_000_000))
def test_the_parts_of_any_layers_are_the_figures_with_their_arithmetic(data, held, tp, context, sequences):
    plan = ModelPlan(layers=tuple(held))
    storage = data.draw(storages(*plan.caches()))
    weighed = footprint(plan, storage, tp)
    amounts, parts = weighed.amounts(context, sequences), weighed.parts(context)
    assert parts.total * sequences == amounts.total_bytes.value
    naive = dict.fromkeys(Growth, 0)
    for cache in chain.from_iterable(held):
        naive[cache.growth] += cache.unit_bytes(storage, tp).value * cache.units(context)
    assert parts == Parts(**{growth.value: int(naive[growth]) for growth in Growth})
    assert parts.linear <= amounts.bytes_per_token.value * context
    assert parts.bounded <= amounts.bounded_bytes.value
    assert parts.constant == amounts.constant_bytes.value
    for name in QUANTITIES:
        amount = getattr(amounts, name)
        assert evaluate(amount.numbers) == amount.value
    longest = max(weighed.bounds(), default=1)
    assert weighed.parts(longest).bounded == amounts.bounded_bytes.value


@settings(max_examples=50)
@given(st.data(), shapes, tensor_parallel, contexts, st.integers(1, 1_000_000))
def test_the_curve_at_a_context_is_the_estimate_there(data, shape, tp, context, sequences):
    storage = data.draw(storages(*shape.plan().caches()))
    weighed = footprint(shape.plan(), storage, tp)
    amounts = weighed.amounts(context, sequences)
    parts = weighed.parts(context)
    assert parts.total * sequences == amounts.total_bytes.value
    assert parts.linear == amounts.bytes_per_token.value * context
    assert parts.bounded <= amounts.bounded_bytes.value
    assert parts.constant == amounts.constant_bytes.value
    longest = max(weighed.bounds(), default=1)
    assert weighed.parts(longest).bounded == amounts.bounded_bytes.value


def answer(scenario: Scenario) -> Estimate | None:
    """The estimate, or None where it is refused, and rightly, because it would not be exact."""
    whole = footprint(scenario.plan(), scenario.storage, 1)
    amounts = whole.amounts(scenario.context_tokens, scenario.num_sequences)
    largest = max(getattr(amounts, name).value for name in QUANTITIES)
    if largest < EXACT_LIMIT:
        return estimate(scenario)
    with pytest.raises(LimitError) as refused:
        estimate(scenario)
    assert refused.value.values == {"value": largest, "highest": EXACT_LIMIT}
    return None


def holds_numbers_json_can_carry(value: object) -> bool:
    if isinstance(value, dict | list):
        return all(map(holds_numbers_json_can_carry, value.values() if isinstance(value, dict) else value))
    if isinstance(value, float):
        return isfinite(value)
    return value is None or isinstance(value, str | bool) or (type(value) is int and abs(value) < 2**53)


def number(written: int | dict[str, int]) -> Fraction:
    if isinstance(written, dict):
        return Fraction(written["numerator"], written["denominator"])
    return Fraction(written)


@settings(max_examples=50)
@given(scenarios)
def test_an_estimate_is_its_own_derivation(scenario):
    if (found := answer(scenario)) is None:
        return
    lines = found.derivations()
    for line in lines:
        assert evaluate(line.expression.numbers) == line.value
    shown = {line.quantity: line.value for line in lines}
    for name in QUANTITIES:
        assert shown[f"per_rank.{name}"] == getattr(found.per_rank, name).value
    assert lines[-1].quantity == "per_rank.total_bytes"


@settings(max_examples=50)
@given(scenarios)
def test_an_estimate_agrees_with_its_curve_its_table_and_its_json(scenario):
    if (found := answer(scenario)) is None:
        return
    total = found.per_rank.total_bytes.value
    assert found.curve([scenario.context_tokens])[0].total == total
    rows = {row.tp: row.amounts.total_bytes.value for row in found.by_tp()}
    assert rows[scenario.tensor_parallel_size] == total
    assert rows[1] == found.whole_model.total_bytes.value
    assert total <= found.whole_model.total_bytes.value < EXACT_LIMIT
    written = found.as_json()
    assert json.loads(json.dumps(written)) == written
    assert holds_numbers_json_can_carry(written)
    assert {name: number(written["per_rank"][name]) for name in QUANTITIES} == {
        name: getattr(found.per_rank, name).value for name in QUANTITIES
    }
    indices = sorted(index for group in written["groups"] for index in group["layers"])
    assert indices == list(range(len(found.plan.layers)))


@settings(max_examples=50)
@given(scenarios)
def test_layers_never_hold_more_tokens_than_if_none_forgot(scenario):
    tokens = Estimate(scenario=scenario, plan=scenario.plan()).layer_tokens()
    assert 0 <= tokens.held <= tokens.unforgetting


@settings(max_examples=50)
@given(st.one_of(scenarios, served))
def test_a_scenario_comes_back_from_its_address(scenario):
    opened = open_address(scenario.address())
    assert opened.scenario == scenario
    assert (opened.problems, opened.unknown) == ((), ())


@settings(max_examples=25)
@given(scenarios)
def test_the_command_line_gives_the_integers_of_the_library(scenario):
    if (found := answer(scenario)) is None:
        return
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["estimate", "--address", scenario.address(), "--json"]) == 0
    assert json.loads(printed.getvalue()) == found.as_json()
