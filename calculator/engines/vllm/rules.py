"""The rules of vLLM that differ between releases, each under a name of its own.

What vLLM 0.33.0 does otherwise is said at each; it is not here yet.
"""

from ...errors import FieldError
from ...explain import Expression, lift, symbol
from ...formats import Row

VERSIONS = ("0.22.0",)


def checked(version: str) -> str:
    """The version, if its rules are known here.

    Raises:
        FieldError: they are not.
    """
    if version not in VERSIONS:
        raise FieldError("error.choice", field="engine_version", value=version, options=", ".join(VERSIONS))
    return version


def tokens_in_flight(max_num_batched_tokens: int) -> Expression:
    """C, the tokens of the steps under way. 0.33.0: those of all batches in flight."""
    return symbol("C", max_num_batched_tokens)


def context_shards(dcp: int, pcp: int) -> Expression:
    """Ranks that share the tokens of a request. 0.33.0: DCP alone."""
    if pcp == 1:
        return symbol("dcp", dcp)
    return symbol("dcp", dcp) * symbol("pcp", pcp)


def value_as_wide_as_key(row: Row) -> Row:
    """Chunked, cross and encoder-only specs have no V size of their own. 0.33.0: they have."""
    key = row.vectors["key"]
    return Row(heads=row.heads, vectors={"key": key, "value": key})


def blocks_beside_requests() -> Expression:
    """Blocks that the fit check adds to those of a request. 0.33.0: the null block."""
    return lift(0)
