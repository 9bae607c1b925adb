"""Everything the user chose, and its forms: an address, a JSON object, typed text.

`FIELDS` is the one table of what can be chosen: the address keys, the bounds of the sliders, the options of
the command line and the table in the README are read from it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

from . import catalogue
from .caches import MLA, ChunkedLocal, FullAttention, GatedDeltaNet, IndexKey, Mamba2, SlidingWindow, bounds
from .errors import FieldError
from .formats import FORMATS, KV_FORMATS, STATE_FORMATS, Storage
from .locales import LANGUAGES
from .model import ModelPlan
from .shape import MAX_LAYERS, Architecture, Interleave, Shape, shape_of
from .units import SYSTEMS, parse_count

ADDRESS_VERSION = "1"
DEFAULT_MODEL = "deepseek-v3"
MAX_TOKENS = 2**27


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A whole number in [lowest, highest]; text may use separators and K, Ki, M, Mi."""

    lowest: int
    highest: int

    def parse(self, name: str, given: object) -> int:
        """Raises FieldError, naming the range, for anything but a whole number in it."""
        bounds = {"lowest": self.lowest, "highest": self.highest}
        number = given if type(given) is int else parse_count(str(given), name, **bounds)
        if not self.lowest <= number <= self.highest:
            raise FieldError("error.range", field=name, value=number, **bounds)
        return number


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of `options`."""

    options: tuple[str, ...]

    def parse(self, name: str, given: object) -> str:
        """Raises FieldError, naming the options, for anything else."""
        if given not in self.options:
            raise FieldError("error.choice", field=name, value=given, options=", ".join(self.options))
        return self.options[self.options.index(str(given))]


@dataclass(frozen=True, kw_only=True)
class Field:
    """One thing to choose: its name, its key in the address, the rule of its values."""

    name: str
    key: str
    rule: Whole | Choice
    of_shape: bool = False


def _sized(name: str, key: str, owner: type, attribute: str = "") -> Field:
    lowest, highest = bounds(owner, attribute or name)
    return Field(name=name, key=key, rule=Whole(lowest=lowest, highest=highest), of_shape=True)


def _chosen(name: str, key: str, options: Iterable[str], of_shape: bool = False) -> Field:
    return Field(name=name, key=key, rule=Choice(options=tuple(options)), of_shape=of_shape)


def _table() -> Iterator[Field]:
    yield _chosen("model", "m", catalogue.ids())
    yield _chosen("architecture", "a", Architecture, of_shape=True)
    yield Field(name="num_layers", key="L", rule=Whole(lowest=1, highest=MAX_LAYERS), of_shape=True)
    yield _sized("num_kv_heads", "h", FullAttention)
    yield _sized("head_size", "d", FullAttention)
    yield _sized("head_size_v", "dv", FullAttention)
    yield _sized("kv_lora_rank", "r", MLA)
    yield _sized("qk_rope_head_dim", "rope", MLA)
    yield Field(
        name="index_head_dim",
        key="ix",
        rule=Whole(lowest=0, highest=bounds(IndexKey, "index_head_dim")[1]),
        of_shape=True,
    )
    yield _chosen("window_kind", "wk", (SlidingWindow.kind, ChunkedLocal.kind), of_shape=True)
    yield _sized("sliding_window", "w", SlidingWindow)
    yield Field(name="num_global_layers", key="g", rule=Whole(lowest=0, highest=MAX_LAYERS), of_shape=True)
    yield _chosen("interleave", "il", Interleave, of_shape=True)
    yield _chosen("state_kind", "sk", (GatedDeltaNet.kind, Mamba2.kind), of_shape=True)
    yield _sized("linear_num_key_heads", "lkh", GatedDeltaNet)
    yield _sized("linear_num_value_heads", "lvh", GatedDeltaNet)
    yield _sized("linear_key_head_dim", "lkd", GatedDeltaNet)
    yield _sized("linear_value_head_dim", "lvd", GatedDeltaNet)
    yield _sized("mamba_num_heads", "mh", Mamba2)
    yield _sized("mamba_head_dim", "md", Mamba2)
    yield _sized("state_size", "ms", Mamba2)
    yield _sized("n_groups", "mg", Mamba2)
    yield _sized("conv_kernel", "k", GatedDeltaNet)
    yield _chosen("kv_cache_dtype", "f", KV_FORMATS)
    yield _chosen("state_dtype", "sf", STATE_FORMATS)
    yield Field(name="tensor_parallel_size", key="tp", rule=Whole(lowest=1, highest=1024))
    yield Field(name="context_tokens", key="t", rule=Whole(lowest=1, highest=MAX_TOKENS))
    yield Field(name="num_sequences", key="n", rule=Whole(lowest=1, highest=1_000_000))
    yield Field(name="compare_tokens", key="ct", rule=Whole(lowest=1, highest=MAX_TOKENS))
    yield _chosen("units", "u", SYSTEMS)
    yield _chosen("axes", "ax", ("log", "linear"))
    yield _chosen("language", "lang", ("auto", *LANGUAGES))
    yield _chosen("theme", "theme", ("auto", "light", "dark"))


FIELDS: Mapping[str, Field] = {item.name: item for item in _table()}
VIEW_FIELDS = ("compare_tokens", "units", "axes", "language", "theme")  # how it is shown, not what it is


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
    tensor_parallel_size: int = 1
    context_tokens: int = 100_000
    num_sequences: int = 1
    compare_tokens: int = 100_000
    units: str = "GiB"
    axes: str = "log"
    language: str = "auto"
    theme: str = "auto"

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
        return getattr(self.shape, name, None) if FIELDS[name].of_shape else getattr(self, name)

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
        scenario = replace(scenario, **parsed)
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


def parse(name: str, given: object) -> Any:
    """The value of the field `name` from what was typed. Raises FieldError."""
    if name == "latent_width":
        rank, rope = bounds(MLA, "kv_lora_rank"), bounds(MLA, "qk_rope_head_dim")
        return Whole(lowest=rank[0] + rope[0], highest=rank[1] + rope[1]).parse(name, given)
    return FIELDS[name].rule.parse(name, given)


def _rank(width: int, rope: int) -> int:
    lowest, highest = bounds(MLA, "kv_lora_rank")
    if not lowest <= width - rope <= highest:
        raise FieldError(
            "error.range", field="latent_width", value=width, lowest=lowest + rope, highest=highest + rope
        )
    return width - rope
