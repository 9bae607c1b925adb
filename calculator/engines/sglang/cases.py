"""Answers the cases of the golden file: turns a case's input into the engine's objects and reads off the fields."""

from collections.abc import Callable, Mapping
from typing import Any

RUNNERS: Mapping[str, Callable[[Mapping[str, Any], str], Mapping[str, Any]]] = {}
