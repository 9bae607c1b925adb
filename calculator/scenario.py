"""Everything the user chose, and its two forms: an address and a JSON object."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

from . import catalogue
from .caches import MLA, bounds
from .errors import FieldError
from .fields import FIELDS, TABS, VIEW_FIELDS, parse
from .formats import FORMATS, KV_FORMATS, STATE_FORMATS, Storage
from .model import ModelPlan
from .serving import Serving
from .shape import Shape, shape_of

ADDRESS_VERSION = "1"
DEFAULT_MODEL = "deepseek-v3"


@cache
def catalogue_shape(model: str) -> Shape | None:
    """A catalogue model on the sliders."""
    return shape_of(catalogue.plan(model))


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One choice of everything. Fields hold legal values; `changed` is the way to another scenario."""

    model: str = DEFAULT_MODEL
    # The model on the sliders; None for a model that the sliders cannot say.
    shape: Shape | None = field(default_factory=lambda: catalogue_shape(DEFAULT_MODEL))
    kv_cache_dtype: str = KV_FORMATS[0]
    state_dtype: str = STATE_FORMATS[0]
    serving: Serving = field(default_factory=Serving)
    tensor_parallel_size: int = 1
    context_tokens: int = 100_000
    num_sequences: int = 1
    compare_tokens: int = 100_000
    units: str = "GiB"
    axes: str = "log"
    language: str = "auto"
    theme: str = "auto"
    tab: str = TABS[0]

    @property
    def customised(self) -> bool:
        """Whether a number of the model was changed: it is then "custom, from <model>"."""
        return self.shape != catalogue_shape(self.model)

    @property
    def storage(self) -> Storage:
        """The formats of keys, values and latents, and of states."""
        return Storage(kv=FORMATS[self.kv_cache_dtype], recurrent=FORMATS[self.state_dtype])

    def plan(self) -> ModelPlan:
        """The layers of the model as chosen. Raises FieldError where numbers do not go together."""
        if self.shape is None or not self.customised:
            return catalogue.plan(self.model)
        return self.shape.plan()

    def value(self, name: str) -> Any:
        """The value of a field of `FIELDS`, or None where the model does not have it."""
        item = FIELDS[name]
        if item.of_shape:
            return getattr(self.shape, name, None)
        return getattr(self.serving if item.of_serving else self, name)

    def changed(self, values: Mapping[str, object]) -> "Scenario":
        """This scenario with `values`, typed text or numbers by field name. A new model brings its own shape.

        `latent_width` stands for kv_lora_rank: the rank follows, the rope key stays.
        Raises FieldError for the first value that its rule, or another value, does not allow.
        """
        parsed = {name: parse(name, given) for name, given in values.items()}
        scenario = self
        if "model" in parsed:
            model = parsed.pop("model")
            scenario = replace(scenario, model=model, shape=catalogue_shape(model))
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

    def address(self) -> str:
        """The query of a link: the version, the model and one key per field that differs from the default."""
        pairs = [("v", ADDRESS_VERSION), ("m", self.model)]
        start = Scenario(model=self.model, shape=catalogue_shape(self.model))
        for name, item in FIELDS.items():
            if name != "model" and self.value(name) != start.value(name):
                pairs.append((item.key, str(self.value(name))))
        return urlencode(pairs)

    def as_json(self) -> dict[str, object]:
        """What the numbers depend on: every field but how they are shown."""
        return {
            "custom": self.customised,
            **{name: self.value(name) for name in FIELDS if name not in VIEW_FIELDS},
        }


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
