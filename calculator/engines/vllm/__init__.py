"""vllm."""

from .cases import RUNNERS

VERSIONS = ("0.22.0",)

__all__ = ["RUNNERS", "VERSIONS"]
