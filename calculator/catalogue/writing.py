"""A catalogue entry from a published config.json, in the words of its file."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from ..errors import FieldError
from ..hf_config import Source, essential
from . import CONFIDENCES, SCHEMA, entry, ids

ID = r"[a-z0-9][a-z0-9.-]{0,63}"
HUB_ID = r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}"


def new_entry(
    config: Source,
    *,
    hub_id: str,
    source: str,
    confidence: str = CONFIDENCES[0],
    date: str | None = None,
    id: str | None = None,  # noqa: A002 - the field's own name
    name: str | None = None,
    maker: str | None = None,
) -> Mapping[str, object]:
    """The entry of the model `hub_id`, with those keys of `config` that decide its plan.

    The id, the name and the maker follow from the hub id unless they are given; the date is today.

    Raises:
        ConfigError: the importer refuses the configuration.
        FieldError: a hub id or an id of another form, or a confidence that is none.
    """
    _check("hub_id", hub_id, HUB_ID, "org/model")
    owner, _, repository = hub_id.partition("/")
    chosen = id or repository.lower().replace("_", "-")
    _check("id", chosen, ID, "a-z 0-9 . -")
    if confidence not in CONFIDENCES:
        raise FieldError("error.choice", field="confidence", value=confidence, options=", ".join(CONFIDENCES))
    return {
        "schema": SCHEMA,
        "id": chosen,
        "name": name or repository,
        "maker": maker or _maker(owner),
        "hub_id": hub_id,
        "revision": None,
        "source": source,
        "date": date or datetime.now(UTC).date().isoformat(),
        "confidence": confidence,
        "config": essential(config),
    }


def as_file(value: object, indent: str = "") -> str:
    """JSON with one key a line and every list on one."""
    if not isinstance(value, Mapping) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    lines = (f"{inner}{json.dumps(key)}: {as_file(item, inner)}" for key, item in value.items())
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def _check(field: str, value: str, form: str, words: str) -> None:
    if not re.fullmatch(form, value, re.ASCII):
        raise FieldError("error.form", field=field, value=value, form=words)


def _maker(owner: str) -> str:
    """As the models of the same owner on the hub say it, or the owner."""
    entries = map(entry, ids())
    return next((other.maker for other in entries if other.hub_id.startswith(f"{owner}/")), owner)
