"""What a scenario holds besides a catalogue model: a model of one's own, and the set it is compared with.

Every value is canonical text, so that a scenario stays plain data; each rule says how the text is read, and
how it is written into an address.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from . import catalogue, layer_text, overrides
from .errors import ConfigError, FieldError, RefusedConfigError
from .hf_config import essential, read_config
from .hf_config.document import parse
from .model import ModelPlan
from .packing import packed, unpacked

LONGEST_NAME = 60
MOST_COMPARED = 40
PRESENT = "this"  # the model on the page, whatever it is
_KEPT = 64  # plans that are read once


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A config.json: its text or path, or what an address carries. Kept are the keys that decide the plan."""

    words = "a config.json; packed: deflated, base64url"

    def parse(self, name: str, given: object) -> str:
        """JSON in one order of keys, or nothing. Raises FieldError with the importer's sentence."""
        if given == "":
            return ""
        try:
            if isinstance(given, Path) or str(given).lstrip("\ufeff \t\r\n").startswith("{"):
                return _canonical(essential(given if isinstance(given, Path) else str(given)))
            carried = _canonical(parse(unpacked(str(given), name)))
            imported(carried)  # what an address carries is read like any file
        except ConfigError as refusal:
            raise RefusedConfigError(name, str(given)[:20], refusal) from refusal
        return carried

    def written(self, value: str) -> str:
        """Packed."""
        return packed(value)


@dataclass(frozen=True, kw_only=True)
class Described:
    """Layers in the words of `layer_text`."""

    words = "layers as text: `15*(3*gated_delta_net(…)+full_attention(…))`"

    def parse(self, name: str, given: object) -> str:  # noqa: ARG002 - there is one such field
        """The same layers in their shortest text, or nothing. Raises FieldError."""
        return layer_text.write(layer_text.parse(str(given))) if given != "" else ""

    def written(self, value: str) -> str:
        """With spaces, which an address writes as + again."""
        return value.replace("+", " ")


@dataclass(frozen=True, kw_only=True)
class Replaced:
    """Single numbers in place of the model's own."""

    words = "numbers replaced: `group.cache.size=number,…`"

    def parse(self, name: str, given: object) -> str:  # noqa: ARG002 - there is one such field
        """The same in the order of the places. Raises FieldError."""
        return overrides.write(overrides.parse(str(given)))

    def written(self, value: str) -> str:
        """As it is."""
        return value


@dataclass(frozen=True, kw_only=True)
class Name:
    """A name of one's own."""

    words = f"up to {LONGEST_NAME} letters"

    def parse(self, name: str, given: object) -> str:
        """Raises FieldError for more, or for what cannot be printed."""
        text = " ".join(str(given).split())
        if len(text) > LONGEST_NAME or not text.isprintable():
            raise FieldError("error.name", field=name, value=text[:LONGEST_NAME], highest=LONGEST_NAME)
        return text

    def written(self, value: str) -> str:
        """As it is."""
        return value


@dataclass(frozen=True, kw_only=True)
class Members:
    """Catalogue models, and the present one, by their ids."""

    words = f"up to {MOST_COMPARED} ids of models, with commas between; `{PRESENT}` is the model of the page"

    def parse(self, name: str, given: object) -> str:
        """Each id once, in the order given. Raises FieldError, naming the nearest, for an unknown one."""
        ids = list(dict.fromkeys(part.strip() for part in str(given).split(",") if part.strip()))
        for one in ids:
            if one != PRESENT and one not in catalogue.ids():
                raise _of(name, catalogue.unknown(one))
        if len(ids) > MOST_COMPARED:
            raise FieldError("error.many", field=name, value=len(ids), highest=MOST_COMPARED)
        return ",".join(ids)

    def written(self, value: str) -> str:
        """As it is."""
        return value


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """Models of one's own that stay in the comparison: [[name, layers], …]."""

    words = "models pinned to the comparison; packed"

    def parse(self, name: str, given: object) -> str:
        """JSON of names and layers in their shortest text, or nothing. Raises FieldError."""
        text = str(given)
        if text in ("", "[]"):
            return ""
        try:
            pairs = json.loads(text if text.startswith("[") else unpacked(text, name))
            read = [[Name().parse(name, title), Described().parse(name, layers)] for title, layers in pairs]
        except FieldError as error:
            raise _of(name, error) from error
        except (TypeError, ValueError, RecursionError) as error:
            raise FieldError("error.packed", field=name, value=text[:20]) from error
        if len(read) > MOST_COMPARED:
            raise FieldError("error.many", field=name, value=len(read), highest=MOST_COMPARED)
        return json.dumps(read, ensure_ascii=False, separators=(",", ":"))

    def written(self, value: str) -> str:
        """Packed."""
        return packed(value)


def pins(value: str) -> Sequence[tuple[str, str]]:
    """(name, layers) of every pinned model."""
    return [(title, layers) for title, layers in json.loads(value)] if value else []


@lru_cache(_KEPT)
def imported(config: str) -> ModelPlan:
    """The plan of canonical JSON. Raises ConfigError where the importer refuses it."""
    return read_config(config)


@lru_cache(_KEPT)
def described(layers: str) -> ModelPlan:
    """The plan of layers in text."""
    return ModelPlan(layers=layer_text.parse(layers))


@lru_cache(_KEPT)
def own_plan(model: str, config: str, layers: str, replaced: str) -> ModelPlan:
    """The plan of one's own layers, else of the imported configuration, else of the catalogue's model.

    Raises:
        FieldError: a replaced number has no place in it, or is out of bounds.
    """
    plan = described(layers) if layers else imported(config) if config else catalogue.plan(model)
    return overrides.applied(plan, overrides.parse(replaced)) if replaced else plan


def _canonical(config: Mapping[str, object]) -> str:
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


def _of(field: str, error: FieldError) -> FieldError:
    """The same refusal, of the field that the wrong part stands in."""
    return FieldError(error.key, **{**error.values, "field": field})  # type: ignore[arg-type]
