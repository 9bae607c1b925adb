"""Strategies built from the project's own tables, so a new kind, format or field is covered by itself."""

from dataclasses import fields, replace

from hypothesis import strategies as st

from calculator.caches import Cache
from calculator.errors import FieldError
from calculator.fields import FIELDS, Share, Whole
from calculator.formats import FORMATS, KV_FORMATS, PLAIN, Storage
from calculator.scenario import DEFAULT_MODEL, Scenario, catalogue_shape
from calculator.serving import Serving
from calculator.shape import Shape


def within(lowest: int, highest: int) -> st.SearchStrategy[int]:
    """Whole numbers in the bounds: the small ones that real models have, both ends, and anything between."""
    small = st.integers(lowest, min(highest, lowest + 256))
    return st.one_of(small, st.integers(lowest, highest), st.sampled_from([lowest, highest]))


def caches(kind: type[Cache]) -> st.SearchStrategy[Cache]:
    """Any instance of a kind, from the bounds in its own fields; a size may bound another one."""

    def made(**sizes: int) -> Cache:
        try:
            return kind(**sizes)
        except FieldError as error:
            return kind(**sizes | {error.field: min(sizes[error.field], error.values["highest"])})

    return st.builds(made, **{name: within(*bounds) for name, bounds in kind.sized()})


def values(name: str) -> st.SearchStrategy[object]:
    """Any legal value of a scenario's field."""
    rule = FIELDS[name].rule
    if isinstance(rule, Share):
        return st.integers(0, 10**4).map(lambda part: part / 10**4)
    return within(rule.lowest, rule.highest) if isinstance(rule, Whole) else st.sampled_from(rule.options)


def _shape(numbers: dict[str, object]) -> Shape:
    return Shape(**numbers | {"num_global_layers": min(numbers["num_global_layers"], numbers["num_layers"])})


def storages(*held: Cache) -> st.SearchStrategy[Storage]:
    """The formats in which all of `held` can be written; every cache can be in the plain ones."""
    kept = [
        storage for storage in FORMATS.values() if all(cache.accepts(Storage(kv=storage)) for cache in held)
    ]
    return st.builds(Storage, kv=st.sampled_from(kept), recurrent=plain, convolution=plain)


def _suited(scenario: Scenario) -> Scenario:
    """`scenario`, or the same in a format that its caches can be written in."""
    held = list(scenario.plan().caches())
    kept = [name for name in KV_FORMATS if all(cache.accepts(Storage(kv=FORMATS[name])) for cache in held)]
    if scenario.kv_cache_dtype in kept:
        return scenario
    return replace(scenario, kv_cache_dtype=kept[KV_FORMATS.index(scenario.kv_cache_dtype) % len(kept)])


formats = st.sampled_from(list(FORMATS.values()))
plain = st.sampled_from(PLAIN)
tensor_parallel = within(1, 1024)
contexts = within(1, FIELDS["context_tokens"].rule.highest)
shapes = st.fixed_dictionaries({name: values(name) for name, item in FIELDS.items() if item.of_shape}).map(
    _shape
)
_own = {item.name for item in fields(Scenario)} & FIELDS.keys()
_chosen = {name: values(name) for name in sorted(_own - {"model"})}
_custom = st.builds(Scenario, model=values("model"), shape=shapes, **_chosen)
_published = st.builds(
    lambda model, **chosen: Scenario(model=model, shape=catalogue_shape(model), **chosen),
    model=values("model"),
    **_chosen,
)
scenarios = st.one_of(st.just(Scenario(model=DEFAULT_MODEL)), _published, _custom).map(_suited)
_settings = st.fixed_dictionaries(
    {name: values(name) for name, item in FIELDS.items() if item.of_serving and name != "engine_version"}
)
served = st.builds(
    lambda scenario, chosen: replace(scenario, serving=Serving(**chosen)), scenarios, _settings
)
