"""sglang."""

from .cases import RUNNERS

VERSIONS = ("0.5.13",)

__all__ = ["RUNNERS", "VERSIONS"]
