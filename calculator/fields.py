"""What can be chosen, in one table.

The address keys, the bounds of the sliders, the options of the command line and the table in the README are
read from it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from . import catalogue
from .caches import MLA, ChunkedLocal, FullAttention, GatedDeltaNet, IndexKey, Mamba2, SlidingWindow, bounds
from .engines import sglang, vllm
from .errors import FieldError
from .formats import KV_FORMATS, STATE_FORMATS
from .locales import LANGUAGES
from .own import Described, Imported, Members, Name, Pinned, Replaced
from .serving import AUTO, NEWEST, OF_ENGINE
from .shape import MAX_LAYERS, Architecture, Interleave
from .units import SYSTEMS, parse_bytes, parse_count

MAX_TOKENS = 2**27
MAX_MEMORY = 2**50
TABS = ("layers", "own", "compare", "ranks", "factors", "engine", "changed", "derivation", "data")


class Rule(Protocol):
    """What a field takes, and how its value is written into an address."""

    @property
    def words(self) -> str:
        """The legal values, as the README lists them."""

    def parse(self, name: str, given: object) -> Any:
        """The value of the field `name` from what was typed. Raises FieldError."""

    def written(self, value: Any) -> str:
        """The value in an address; `parse` reads it back."""


class Plain:
    """A rule whose values are written as they are."""

    def written(self, value: object) -> str:
        """As text."""
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Whole(Plain):
    """A whole number in [lowest, highest]; text may use separators and K, Ki, M, Mi."""

    lowest: int
    highest: int

    @property
    def words(self) -> str:
        """The legal values, as the README lists them."""
        return f"{self.lowest:,} to {self.highest:,}"

    def parse(self, name: str, given: object) -> int:
        """Raises FieldError, naming the range, for anything but a whole number in it."""
        bounds = {"lowest": self.lowest, "highest": self.highest}
        number = given if type(given) is int else parse_count(str(given), name, **bounds)
        if not self.lowest <= number <= self.highest:
            raise FieldError("error.range", field=name, value=number, **bounds)
        return number


@dataclass(frozen=True, kw_only=True)
class Memory(Whole):
    """A whole number of bytes; text may have a unit, such as 60 GiB."""

    def parse(self, name: str, given: object) -> int:
        """Raises FieldError, naming the range, for anything but whole bytes in it."""
        if isinstance(given, str) and given.strip().endswith("B"):
            try:
                amount = parse_bytes(given)
            except FieldError:
                raise FieldError("error.bytes", field=name, value=given) from None
            given = int(amount) if amount.denominator == 1 else given
        return super().parse(name, given)


@dataclass(frozen=True, kw_only=True)
class Share(Plain):
    """A decimal number up to 1; 0 leaves it to the engine."""

    words = "0 to 1, up to four decimals"

    def parse(self, name: str, given: object) -> float:
        """Raises FieldError for anything else."""
        if (
            not re.fullmatch(r"0|1|[01]?\.\d{1,4}|1\.0", str(given).strip(), re.ASCII)
            or float(str(given)) > 1
        ):
            raise FieldError("error.share", field=name, value=given)
        return float(str(given))


@dataclass(frozen=True, kw_only=True)
class Choice(Plain):
    """One of `options`."""

    options: tuple[str, ...]

    @property
    def words(self) -> str:
        """The legal values, as the README lists them."""
        return ", ".join(f"`{option}`" for option in self.options)

    def parse(self, name: str, given: object) -> str:
        """Raises FieldError, naming the options, for anything else."""
        if given not in self.options:
            raise FieldError("error.choice", field=name, value=given, options=", ".join(self.options))
        return self.options[self.options.index(str(given))]


@dataclass(frozen=True, kw_only=True)
class CatalogueId(Choice):
    """A model of the catalogue: too many to list them all to someone who mistyped one."""

    words = "an id of `python -m calculator models`"

    def parse(self, name: str, given: object) -> str:  # noqa: ARG002 - there is one such field
        """Raises FieldError, naming the nearest, for anything else."""
        if given not in self.options:
            raise catalogue.unknown(given)
        return str(given)


@dataclass(frozen=True, kw_only=True)
class Field:
    """One thing to choose: its name, its key in the address, the rule of its values, and whose part it is."""

    name: str
    key: str
    rule: Rule
    of_shape: bool = False
    of_serving: bool = False


def _sized(name: str, key: str, owner: type, attribute: str = "") -> Field:
    lowest, highest = bounds(owner, attribute or name)
    return Field(name=name, key=key, rule=Whole(lowest=lowest, highest=highest), of_shape=True)


def _chosen(name: str, key: str, options: Iterable[str], of_shape: bool = False) -> Field:
    return Field(name=name, key=key, rule=Choice(options=tuple(options)), of_shape=of_shape)


def _served(name: str, key: str, rule: Rule) -> Field:
    return Field(name=name, key=key, rule=rule, of_serving=True)


def _serving() -> Iterator[Field]:
    versions = (NEWEST, *vllm.VERSIONS, *sglang.VERSIONS)
    yield _served("engine", "e", Choice(options=tuple(OF_ENGINE)))
    yield _served("engine_version", "ev", Choice(options=versions))
    yield _served("available_memory_bytes", "mem", Memory(lowest=1, highest=MAX_MEMORY))
    yield _served("max_model_len", "ml", Whole(lowest=AUTO, highest=MAX_TOKENS))
    yield _served("pipeline_parallel_size", "pp", Whole(lowest=1, highest=256))
    yield _served("block_size", "bs", Whole(lowest=AUTO, highest=2**20))
    yield _served("max_num_batched_tokens", "bt", Whole(lowest=1, highest=MAX_TOKENS))
    yield _served("enable_prefix_caching", "pc", Choice(options=("auto", "on", "off")))
    yield _served("mamba_cache_mode", "mm", Choice(options=("auto", *vllm.MambaMode)))
    yield _served("decode_context_parallel_size", "dcp", Whole(lowest=1, highest=1024))
    yield _served("data_parallel_size", "dp", Whole(lowest=1, highest=1024))
    yield _served("page_size", "ps", Whole(lowest=AUTO, highest=4096))
    yield _served("swa_full_tokens_ratio", "sr", Share())
    yield _served("dsa_backend", "db", Choice(options=sglang.DSA_BACKENDS))
    yield _served("hisparse_host_to_device_ratio", "hs", Whole(lowest=AUTO, highest=1024))


def _table() -> Iterator[Field]:
    yield Field(name="model", key="m", rule=CatalogueId(options=catalogue.ids()))
    yield Field(name="config", key="c", rule=Imported())
    yield Field(name="layers", key="l", rule=Described())
    yield Field(name="overrides", key="o", rule=Replaced())
    yield Field(name="own_name", key="nm", rule=Name())
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
    yield from _serving()
    yield Field(name="tensor_parallel_size", key="tp", rule=Whole(lowest=1, highest=1024))
    yield Field(name="context_tokens", key="t", rule=Whole(lowest=1, highest=MAX_TOKENS))
    yield Field(name="num_sequences", key="n", rule=Whole(lowest=1, highest=1_000_000))
    yield Field(name="compare_tokens", key="ct", rule=Whole(lowest=1, highest=MAX_TOKENS))
    yield Field(name="compared", key="x", rule=Members())
    yield Field(name="pins", key="p", rule=Pinned())
    yield _chosen("units", "u", SYSTEMS)
    yield _chosen("axes", "ax", ("log", "linear"))
    yield _chosen("growth", "gr", ("bound", "held"))
    yield _chosen("language", "lang", ("auto", *LANGUAGES))
    yield _chosen("theme", "theme", ("auto", "light", "dark"))
    yield _chosen("tab", "tab", TABS)


FIELDS: Mapping[str, Field] = {item.name: item for item in _table()}
# How it is shown, not what it is.
VIEW_FIELDS = ("compare_tokens", "compared", "pins", "units", "axes", "growth", "language", "theme", "tab")


def parse(name: str, given: object) -> Any:
    """The value of the field `name` from what was typed. Raises FieldError."""
    if name == "latent_width":
        rank, rope = bounds(MLA, "kv_lora_rank"), bounds(MLA, "qk_rope_head_dim")
        return Whole(lowest=rank[0] + rope[0], highest=rank[1] + rope[1]).parse(name, given)
    return FIELDS[name].rule.parse(name, given)
