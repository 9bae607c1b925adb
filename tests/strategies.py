"""Strategies built from the project's own tables, so a new kind, format or field is covered by itself."""

import json
from dataclasses import fields, replace

from hypothesis import strategies as st

from calculator import catalogue, layer_text
from calculator.caches import KINDS, Cache
from calculator.errors import FieldError
from calculator.fields import FIELDS, Share, Whole
from calculator.formats import FORMATS, KV_FORMATS, PLAIN, Storage
from calculator.own import PRESENT, Described, Imported, Members, Name, Pinned, Replaced
from calculator.scenario import DEFAULT_MODEL, MODEL_FIELDS, Scenario, catalogue_shape
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


def _imported(config: dict[str, object]) -> str:
    return FIELDS["config"].rule.parse("config", json.dumps(config))


any_layers = st.lists(
    st.lists(st.sampled_from(list(KINDS.values())).flatmap(caches), max_size=2).map(tuple),
    min_size=1,
    max_size=3,
)
layer_texts = st.builds(
    lambda sorts, times: layer_text.write((sorts * times)[:60]), any_layers, st.integers(1, 20)
)
names = st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), max_size=20)
# Of the rules in calculator.own: canonical text.
_TEXTS: dict[type, st.SearchStrategy[str]] = {
    Imported: st.sampled_from(
        ["", *(_imported(catalogue.entry(model).config) for model in catalogue.ids()[::9])]
    ),
    Described: st.one_of(st.just(""), layer_texts),
    Replaced: st.just(""),  # a place is one of a certain plan
    Name: names,
    Members: st.lists(st.sampled_from([*catalogue.ids(), PRESENT]), max_size=20, unique=True).map(",".join),
    Pinned: st.lists(st.tuples(names, layer_texts), max_size=3).map(
        lambda pairs: FIELDS["pins"].rule.parse("pins", json.dumps(pairs))
    ),
}


def values(name: str) -> st.SearchStrategy[object]:
    """Any legal value of a scenario's field."""
    rule = FIELDS[name].rule
    if type(rule) in _TEXTS:
        return _TEXTS[type(rule)]
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
_chosen = {name: values(name) for name in sorted(_own.difference(MODEL_FIELDS, ["own_name"]))}
_custom = st.builds(Scenario, model=values("model"), shape=shapes, **_chosen)
_published = st.builds(
    lambda model, **chosen: Scenario(model=model, shape=catalogue_shape(model), **chosen),
    model=values("model"),
    **_chosen,
)
_field = st.shared(st.sampled_from(["config", "layers"]), key="own model")
_own_models = st.builds(
    lambda scenario, field, text, name: scenario.changed({field: text, "own_name": name}),
    _published,
    _field,
    _field.flatmap(values),
    names,
)
scenarios = st.one_of(st.just(Scenario(model=DEFAULT_MODEL)), _published, _custom, _own_models).map(_suited)
_settings = st.fixed_dictionaries(
    {name: values(name) for name, item in FIELDS.items() if item.of_serving and name != "engine_version"}
)
served = st.builds(
    lambda scenario, chosen: replace(scenario, serving=Serving(**chosen)), scenarios, _settings
)
