"""Every sentence a user reads, one catalogue per language."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "zh")


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Key -> sentence with {named} blanks."""
    loaded: dict[str, str] = json.loads((files(__name__) / f"{language}.json").read_text(encoding="utf-8"))
    return loaded


def label(language: str, field: str) -> str:
    """The words for a field; a field that only code knows keeps its name."""
    return catalogue(language).get(f"field.{field}", field)


def text(language: str, key: str, /, **values: object) -> str:
    """The sentence of `key`; integers get thousands separators."""
    shown = {name: _written(value) if isinstance(value, int) else value for name, value in values.items()}
    return catalogue(language)[key].format_map(shown)


def _written(number: int) -> str:
    """No reader counts the digits of a larger number, and Python refuses to write thousands of them."""
    return f"{number:,}" if abs(number) < 2**64 else ("> 2^64" if number > 0 else "< -2^64")
