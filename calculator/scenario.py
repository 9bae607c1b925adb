"""Everything the user chose, and its two forms: an address and a JSON object."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

from . import catalogue, layer_text
from .caches import MLA, bounds
from .errors import FieldError
from .fields import FIELDS, TABS, VIEW_FIELDS, parse
from .formats import FORMATS, KV_FORMATS, STATE_FORMATS, Storage
from .model import ModelPlan
from .own import own_plan
from .serving import Serving
from .shape import Shape, shape_of

ADDRESS_VERSION = "1"
DEFAULT_MODEL = "deepseek-v3"


MODEL_FIELDS = ("model", "config", "layers", "overrides")


@lru_cache(256)
def own_shape(model: str, config: str, layers: str, replaced: str) -> Shape | None:
    """A model on the sliders, before anyone moves them."""
    return shape_of(own_plan(model, config, layers, replaced))


def catalogue_shape(model: str) -> Shape | None:
    """A catalogue model on the sliders."""
    return own_shape(model, "", "", "")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One choice of everything. Fields hold legal values; `changed` is the way to another scenario."""

    model: str = DEFAULT_MODEL
    # Instead of the catalogue's: an imported configuration or layers in text (calculator.own), and its name.
    config: str = ""
    layers: str = ""
    overrides: str = ""  # numbers of either that were replaced
    own_name: str = ""
    # The model on the sliders; None for a model that the sliders cannot say.
    shape: Shape | None = field(default_factory=lambda: catalogue_shape(DEFAULT_MODEL))
    kv_cache_dtype: str = KV_FORMATS[0]
    state_dtype: str = STATE_FORMATS[0]
    serving: Serving = field(default_factory=Serving)
    tensor_parallel_size: int = 1
    context_tokens: int = 100_000
    num_sequences: int = 1
    compare_tokens: int = 100_000
    compared: str = ",".join(catalogue.FLAGSHIPS)
    pins: str = ""
    units: str = "GiB"
    axes: str = "log"
    growth: str = "bound"  # the curves: what a request may take, or what it holds at the moment
    language: str = "auto"
    theme: str = "auto"
    tab: str = TABS[0]

    @property
    def own(self) -> bool:
        """Whether the model is not one of the catalogue."""
        return bool(self.config or self.layers)

    @property
    def published(self) -> Mapping[str, object] | None:
        """The configuration that the model was read from; None for layers described by hand."""
        if self.own:
            return json.loads(self.config) if self.config else None
        return catalogue.entry(self.model).config

    @property
    def customised(self) -> bool:
        """Whether a number of the model was changed: it is then "custom, from <model>"."""
        return bool(self.overrides) or self._moved

    @property
    def _moved(self) -> bool:
        """Whether a slider stands elsewhere than at the model's number."""
        return self.shape != self._shape()

    def _shape(self) -> Shape | None:
        return own_shape(self.model, self.config, self.layers, self.overrides)

    @property
    def storage(self) -> Storage:
        """The formats of keys, values and latents, and of states."""
        return Storage(kv=FORMATS[self.kv_cache_dtype], recurrent=FORMATS[self.state_dtype])

    def check_format(self, plan: ModelPlan) -> None:
        """Raises FieldError for a plan with a cache that cannot be written in the chosen formats."""
        for held in plan.caches():
            if not held.accepts(self.storage):
                raise FieldError(
                    "error.format", field="kv_cache_dtype", value=self.kv_cache_dtype, kind=held.kind
                )

    def plan(self) -> ModelPlan:
        """The layers of the model as chosen. Raises FieldError where numbers do not go together."""
        if self.shape is None or not self._moved:
            return own_plan(self.model, self.config, self.layers, self.overrides)
        return self.shape.plan()

    def unreplaced(self) -> ModelPlan:
        """The plan in whose groups `overrides` counts."""
        return self.plan() if self._moved else own_plan(self.model, self.config, self.layers, "")

    def value(self, name: str) -> Any:
        """The value of a field of `FIELDS`, or None where the model does not have it."""
        item = FIELDS[name]
        if item.of_shape:
            return getattr(self.shape, name, None)
        return getattr(self.serving if item.of_serving else self, name)

    def changed(self, values: Mapping[str, object]) -> "Scenario":
        """This scenario with `values`, typed text or numbers by field name. A new model brings its own shape.

        A catalogue model, a configuration and layers in text take each other's place. A number that is
        replaced where sliders were moved makes layers in text of them first.

        `latent_width` stands for kv_lora_rank: the rank follows, the rope key stays.
        Raises FieldError for the first value that its rule, or another value, does not allow.
        """
        parsed = {name: parse(name, given) for name, given in values.items()}
        scenario = self._on({name: parsed.pop(name) for name in MODEL_FIELDS if name in parsed})
        shape = scenario.shape or Shape()
        width = parsed.pop("latent_width", None)
        own = {name: parsed.pop(name) for name in list(parsed) if FIELDS[name].of_shape}
        if width is not None:
            rope = own.get("qk_rope_head_dim", shape.qk_rope_head_dim)
            own["kv_lora_rank"] = _rank(width, rope)
        if own:
            scenario = replace(scenario, shape=replace(shape, **own))
        served = {name: parsed.pop(name) for name in list(parsed) if FIELDS[name].of_serving}
        scenario = replace(scenario, **parsed, serving=scenario.serving.changed(served))
        scenario.plan()
        return scenario

    def _on(self, given: Mapping[str, str]) -> "Scenario":
        """This scenario with another model, or with other numbers replaced in its own."""
        if not given:
            return self
        kept = given.keys() == {"overrides"}
        if kept and self._moved:  # the sliders' numbers must not be lost: they become the layers
            return self.as_layers().changed(given)
        config = given.get("config", self.config if kept else "")
        layers = given.get("layers", self.layers if kept else "")
        model = given.get("model", DEFAULT_MODEL if config or layers else self.model)
        replaced = given.get("overrides", "")
        return replace(
            self,
            model=model,
            config=config,
            layers=layers,
            overrides=replaced,
            own_name=self.own_name if kept else "",
            shape=own_shape(model, config, layers, replaced),
        )

    def as_layers(self) -> "Scenario":
        """The same layers, described in text."""
        fixed = Scenario().changed({"layers": layer_text.write(self.plan().layers)})
        return replace(
            self,
            model=fixed.model,
            config="",
            layers=fixed.layers,
            overrides="",
            shape=fixed.shape,
        )

    def address(self) -> str:
        """The query of a link: the version, the model and one key per field that differs from the default."""
        pairs = [("v", ADDRESS_VERSION)]
        start = Scenario(shape=self._shape())
        for name, item in FIELDS.items():
            value = self.value(name)
            if value != start.value(name) or (name == "model" and not self.own):
                pairs.append((item.key, item.rule.written(value)))
        return urlencode(pairs, safe="*(),/=")

    def as_json(self) -> dict[str, object]:
        """What the numbers depend on: every field but how they are shown."""
        values = {name: self.value(name) for name in FIELDS if name not in VIEW_FIELDS}
        return {"custom": self.customised, **values, "model": None if self.own else self.model}


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A scenario read from an address, with what could not be taken from it as it stood."""

    scenario: Scenario
    problems: tuple[FieldError, ...] = ()  # field values: the nearest legal one, or the default, is used
    unknown: tuple[str, ...] = ()  # keys that this version does not know


def open_address(query: str) -> Opened:
    """The scenario of a link. Never raises: what is wrong in it is reported beside a scenario that works."""
    names = {item.key: name for name, item in FIELDS.items()}
    problems: list[FieldError] = []
    values: dict[str, object] = {}
    given = dict(parse_qsl(query.lstrip("?"), keep_blank_values=True))
    version = given.pop("v", ADDRESS_VERSION)
    if version != ADDRESS_VERSION:
        problems.append(FieldError("error.version", field="version", value=version, known=ADDRESS_VERSION))
    given.pop("sw", None)  # whether the page may have a service worker: no part of a scenario
    for key in (key for key in given if key in names):
        try:
            values[names[key]] = parse(names[key], given[key])
        except FieldError as error:
            problems.append(error)
            _take_nearest(values, error)
    while True:
        try:
            scenario = Scenario().changed(values)
            break
        except FieldError as error:  # legal numbers that do not go together
            problems.append(error)
            values.pop(error.field, None)
            _take_nearest(values, error)
    unknown = tuple(key for key in given if key not in names)
    return Opened(scenario=scenario, problems=tuple(problems), unknown=unknown)


def _take_nearest(values: dict[str, object], error: FieldError) -> None:
    """Put the bound next to a number that was out of range; nothing where no number was given."""
    match error.value, error.values.get("lowest"), error.values.get("highest"):
        case int(number), int(lowest), int(highest):
            values[error.field] = min(max(number, lowest), highest)


def _rank(width: int, rope: int) -> int:
    lowest, highest = bounds(MLA, "kv_lora_rank")
    if not lowest <= width - rope <= highest:
        raise FieldError(
            "error.range", field="latent_width", value=width, lowest=lowest + rope, highest=highest + rope
        )
    return width - rope
