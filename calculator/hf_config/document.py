"""The text of a config.json as an object."""

import json
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConfigError
from .plain_text import shown

FILE = "config.json"
LARGEST_BYTES = (
    10**6
)  # the longest published file, with a table of every quantised tensor, has a tenth of this

Source = Mapping[str, object] | str | bytes | Path


def parse(source: Source) -> Mapping[str, object]:
    """The root object. Bare Infinity and NaN, which published files contain, are accepted.

    Raises:
        ConfigError: not JSON, not an object, too large to be a configuration, or a key given twice.
    """
    if isinstance(source, Path):
        source = _file(source)
    if isinstance(source, str | bytes):
        _check_size(len(source))
    loaded = _load(_decoded(source)) if isinstance(source, str | bytes) else source
    if not isinstance(loaded, Mapping):
        raise ConfigError("config.object", field=FILE, value=shown(loaded))
    for key in loaded:
        if not isinstance(key, str):
            raise ConfigError("config.text", field=FILE, value=shown(key))
    return loaded


def _file(path: Path) -> bytes:
    try:
        _check_size(path.stat().st_size)
        with path.open("rb") as file:
            return file.read(LARGEST_BYTES + 1)  # a device or a pipe tells no size and may never end
    except (OSError, ValueError) as error:
        reason = shown(getattr(error, "strerror", None) or str(error))
        raise ConfigError("config.file", field=shown(path.name or str(path)), reason=reason) from error


def _check_size(size: int) -> None:
    if size > LARGEST_BYTES:
        raise ConfigError("config.large", field=FILE, value=size, highest=LARGEST_BYTES)


def _decoded(source: str | bytes) -> str:
    try:
        return source if isinstance(source, str) else source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("config.utf8", field=FILE, position=error.start) from error


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
