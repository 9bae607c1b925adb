"""The releases of an engine: each has one object of rules, in which it differs from the others."""

from collections.abc import Mapping
from typing import TypeVar

from ..errors import FieldError

Rules = TypeVar("Rules")


def of_version(rules: Mapping[str, Rules], version: str) -> Rules:
    """The rules of a version.

    Raises:
        FieldError: `version` is not one of `rules`.
    """
    if version not in rules:
        raise FieldError("error.choice", field="engine_version", value=version, options=", ".join(rules))
    return rules[version]
