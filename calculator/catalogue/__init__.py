"""The models that come with the calculator: published configuration keys, never computed figures.

A new model is a new JSON file here: `python -m calculator entry` writes it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from ..errors import FieldError
from ..hf_config import read_config
from ..model import ModelPlan

FLAGSHIPS = ("qwen3.5-397b-a17b", "kimi-k2.6", "deepseek-v3.2", "glm-5.1", "minimax-m2.7")
SCHEMA = 1
CONFIDENCES = ("exact", "embedded", "trimmed", "re-release", "defaults")
_SUFFIX = ".json"
_COMPARED = 64  # letters of a wrong id that are looked at


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One model: `config` holds the keys as published, nesting kept; `source` says where they were read.

    `confidence` is `exact` (the unmodified file), `embedded` (its values inside another project's source),
    `trimmed` (an excerpt with every size), `re-release` (a quantised release of the same model) or `defaults`
    (class defaults, confirmed elsewhere).
    """

    schema: int
    id: str
    name: str
    maker: str
    hub_id: str
    revision: str | None
    source: str
    date: str
    confidence: str
    config: Mapping[str, object]
    weights_bytes: int | None = None


@cache
def ids() -> tuple[str, ...]:
    """The five flagships, then the others by name: the names of the files, none of which is read."""
    names = [file.name for file in files(__name__).iterdir()]
    found = {name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)}
    return FLAGSHIPS + tuple(sorted(found.difference(FLAGSHIPS)))


@cache
def entry(id: str) -> Entry:  # noqa: A002 - the field's own name
    """The entry of one model.

    Raises:
        FieldError: there is none of that name; it names the nearest.
    """
    if id not in ids():
        raise unknown(id)
    return Entry(**json.loads((files(__name__) / f"{id}{_SUFFIX}").read_text(encoding="utf-8")))


def unknown(value: object) -> FieldError:
    """The refusal of a name that is not in the catalogue, with the three that are most like it."""
    nearest = get_close_matches(str(value)[:_COMPARED].lower(), ids(), cutoff=0)
    return FieldError("error.model", field="model", value=value, nearest=", ".join(nearest))


@cache
def plan(id: str) -> ModelPlan:  # noqa: A002 - as above
    """The layers of one model, read by the same importer as a pasted file."""
    return read_config(entry(id).config)
