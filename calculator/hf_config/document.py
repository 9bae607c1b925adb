"""The text of a config.json as an object."""

import json
from collections.abc import Mapping

from ..errors import ConfigError
from .reader import shown

FILE = "config.json"


def parse(source: Mapping[str, object] | str) -> Mapping[str, object]:
    """The root object. Bare Infinity and NaN, which published files contain, are accepted.

    Raises:
        ConfigError: not JSON, not an object, or a key given twice.
    """
    loaded = _load(source) if isinstance(source, str) else source
    if not isinstance(loaded, Mapping):
        raise ConfigError("config.object", field=FILE, value=shown(loaded))
    return loaded


def _load(source: str) -> object:
    try:
        return json.loads(source, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise ConfigError("config.json", field=FILE, line=error.lineno, column=error.colno) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or nesting without end
        raise ConfigError("config.deep", field=FILE) from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError("config.duplicate", field=shown(key))
        found[key] = value
    return found
