"""Strategies built from the project's own tables, so a new kind, format or field is covered by itself."""

from hypothesis import strategies as st

from calculator.caches import Cache
from calculator.formats import FORMATS, Storage
from calculator.scenario import DEFAULT_MODEL, FIELDS, Scenario, Whole, catalogue_shape
from calculator.shape import Shape


def within(lowest: int, highest: int) -> st.SearchStrategy[int]:
    """Whole numbers in the bounds: the small ones that real models have, both ends, and anything between."""
    small = st.integers(lowest, min(highest, lowest + 256))
    return st.one_of(small, st.integers(lowest, highest), st.sampled_from([lowest, highest]))


def caches(kind: type[Cache]) -> st.SearchStrategy[Cache]:
    """Any instance of a kind, from the bounds in its own fields."""
    return st.builds(kind, **{name: within(*bounds) for name, bounds in kind.sized()})


def values(name: str) -> st.SearchStrategy[object]:
    """Any legal value of a scenario's field."""
    rule = FIELDS[name].rule
    return within(rule.lowest, rule.highest) if isinstance(rule, Whole) else st.sampled_from(rule.options)


def _shape(numbers: dict[str, object]) -> Shape:
    return Shape(**numbers | {"num_global_layers": min(numbers["num_global_layers"], numbers["num_layers"])})


formats = st.sampled_from(list(FORMATS.values()))
storages = st.builds(Storage, kv=formats, recurrent=formats, convolution=formats)
tensor_parallel = within(1, 1024)
contexts = within(1, FIELDS["context_tokens"].rule.highest)
shapes = st.fixed_dictionaries({name: values(name) for name, item in FIELDS.items() if item.of_shape}).map(
    _shape
)
_chosen = {name: values(name) for name, item in FIELDS.items() if not item.of_shape and name != "model"}
_custom = st.builds(Scenario, model=values("model"), shape=shapes, **_chosen)
_published = st.builds(
    lambda model, **chosen: Scenario(model=model, shape=catalogue_shape(model), **chosen),
    model=values("model"),
    **_chosen,
)
scenarios = st.one_of(st.just(Scenario(model=DEFAULT_MODEL)), _published, _custom)
