"""What must hold for every registered cache kind, format and scenario; nothing here names one of them."""

import contextlib
import io
import json
from fractions import Fraction
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator import estimate, open_address
from calculator.caches import KINDS, Growth
from calculator.cli import main
from calculator.errors import FieldError, LimitError
from calculator.estimate import EXACT_LIMIT, Estimate
from calculator.explain import symbol
from calculator.footprint import QUANTITIES, footprint
from calculator.formats import FORMATS, Storage
from calculator.model import ModelPlan
from calculator.scenario import Scenario
from tests.arithmetic import evaluate
from tests.strategies import caches, contexts, scenarios, shapes, storages, tensor_parallel

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
every_format = pytest.mark.parametrize("storage", FORMATS.values(), ids=FORMATS)


def draws(test):
    """Every kind and format is a test of its own, so each may look at fewer examples."""
    return settings(max_examples=25)(given(st.data())(test))


def kept_in(storage) -> Storage:
    return Storage(kv=storage, recurrent=storage, convolution=storage)


def weight(cache, storage, tp: int, context: int) -> Fraction:
    return cache.unit_bytes(kept_in(storage), tp).value * cache.units(context)


@every_kind
@every_format
@draws
def test_bytes_are_whole_and_never_fall_as_the_context_grows(kind, storage, data):
    cache, tp = data.draw(caches(kind)), data.draw(tensor_parallel)
    shorter, longer = sorted((data.draw(contexts), data.draw(contexts)))
    assert 0 <= weight(cache, storage, tp, shorter) <= weight(cache, storage, tp, longer)
    assert Fraction(weight(cache, storage, tp, longer)).denominator == 1


@every_kind
@every_format
@draws
def test_growth_is_what_the_kind_says(kind, storage, data):
    cache, tp, context = data.draw(caches(kind)), data.draw(tensor_parallel), data.draw(contexts)
    one = cache.unit_bytes(kept_in(storage), tp).value
    now = weight(cache, storage, tp, context)
    if cache.growth is Growth.LINEAR:
        assert cache.bound is None
        assert now == one * context
    elif cache.growth is Growth.BOUNDED:
        bound = int(cache.bound.value)
        assert now == one * min(context, bound), "never above linear, and flat from the bound on"
    else:
        assert cache.growth is Growth.CONSTANT
        assert cache.bound is None
        assert now == weight(cache, storage, tp, 1)


@every_kind
@every_format
@draws
def test_the_ranks_together_hold_the_whole_model(kind, storage, data):
    cache, tp = data.draw(caches(kind)), data.draw(tensor_parallel)
    whole = cache.unit_bytes(kept_in(storage), 1).value
    rank = cache.unit_bytes(kept_in(storage), tp).value
    assert rank <= whole, "no rank holds more than the model"
    if all(heads % tp == 0 or tp >= heads for heads in cache.split_heads):
        assert rank * tp >= whole
    if not cache.split_heads:
        assert rank == whole, "what is copied does not shrink"


@every_kind
@every_format
@draws
def test_heads_that_divide_are_split_without_a_remainder(kind, storage, data):
    cache = data.draw(caches(kind))
    common = gcd(*cache.split_heads)  # 0 where nothing is split
    tp = data.draw(st.sampled_from([size for size in range(1, 1025) if common % size == 0]))
    ranks = tp if cache.split_heads else 1
    assert cache.unit_bytes(kept_in(storage), tp).value * ranks == cache.unit_bytes(kept_in(storage), 1).value
    assert cache.accepts_tp(tp)


@every_kind
@draws
def test_every_tp_of_one_is_accepted(kind, data):
    assert data.draw(caches(kind)).accepts_tp(1)


@every_kind
@every_format
@draws
def test_the_arithmetic_shown_gives_the_value(kind, storage, data):
    cache, tp, context = data.draw(caches(kind)), data.draw(tensor_parallel), data.draw(contexts)
    formula = cache.unit_bytes(kept_in(storage), tp)
    assert evaluate(formula.numbers) == formula.value
    units = cache.units(symbol("T", context))
    assert evaluate(units.numbers) == units.value == cache.units(context)


@every_kind
@draws
def test_a_format_is_one_that_exists(kind, data):
    cache, storage = data.draw(caches(kind)), data.draw(storages)
    assert cache.format_name(storage) in FORMATS


@every_kind
@draws
def test_equal_numbers_are_equal_caches(kind, data):
    cache = data.draw(caches(kind))
    again = kind(**{name: getattr(cache, name) for name, _ in kind.sized()})
    assert cache == again
    assert len(ModelPlan(layers=((cache,), (again,))).groups()) == 1


@every_kind
def test_every_kind_says_whose_bytes_it_counts(kind):
    assert "vLLM" in kind.source
    assert "SGLang" in kind.source
    assert kind.__doc__


every_size = pytest.mark.parametrize(
    ("kind", "name", "bounds"),
    [(kind, name, bounds) for kind in KINDS.values() for name, bounds in kind.sized()],
    ids=lambda part: getattr(part, "kind", part) if not isinstance(part, tuple) else "",
)


def lowest(kind) -> dict[str, object]:
    return {name: bounds[0] for name, bounds in kind.sized()}


@every_size
@pytest.mark.parametrize("past", [-1, 1], ids=["below", "above"])
def test_a_size_outside_its_bounds_is_refused_with_the_bounds(kind, name, bounds, past):
    value = bounds[0] - 1 if past < 0 else bounds[1] + 1
    with pytest.raises(FieldError, match=f"{bounds[0]:,} to {bounds[1]:,}") as caught:
        kind(**lowest(kind) | {name: value})
    assert (caught.value.field, caught.value.value) == (name, value)


@every_size
@pytest.mark.parametrize("value", [1.0, 2.5, "8", None, True, float("nan")], ids=repr)
def test_a_size_that_is_not_a_whole_number_is_refused(kind, name, bounds, value):
    with pytest.raises(FieldError, match="not a whole number") as caught:
        kind(**lowest(kind) | {name: value})
    assert caught.value.field == name


@every_size
def test_both_bounds_are_allowed(kind, name, bounds):
    for value in bounds:
        assert getattr(kind(**lowest(kind) | {name: value}), name) == value


@given(shapes, storages, tensor_parallel, contexts, st.integers(1, 1_000_000))
def test_the_curve_at_a_context_is_the_estimate_there(shape, storage, tp, context, sequences):
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
    return value is None or isinstance(value, str | bool) or (type(value) is int and abs(value) < 2**53)


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
    assert written["per_rank"] == {name: getattr(found.per_rank, name).value for name in QUANTITIES}
    indices = sorted(index for group in written["groups"] for index in group["layers"])
    assert indices == list(range(len(found.plan.layers)))


@given(scenarios)
def test_layers_never_hold_more_tokens_than_if_none_forgot(scenario):
    tokens = Estimate(scenario=scenario, plan=scenario.plan()).layer_tokens()
    assert 0 <= tokens.held <= tokens.unforgetting


@given(scenarios)
def test_a_scenario_comes_back_from_its_address(scenario):
    opened = open_address(scenario.address())
    assert opened.scenario == scenario
    assert (opened.problems, opened.unknown) == ((), ())


@settings(max_examples=40)
@given(scenarios)
def test_the_command_line_gives_the_integers_of_the_library(scenario):
    if (found := answer(scenario)) is None:
        return
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["estimate", "--address", scenario.address(), "--json"]) == 0
    assert json.loads(printed.getvalue()) == found.as_json()
