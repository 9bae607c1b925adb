"""vLLM: pages, groups, blocks and what a request takes of them."""

from .cases import RUNNERS
from .rules import VERSIONS

__all__ = ["RUNNERS", "VERSIONS"]
