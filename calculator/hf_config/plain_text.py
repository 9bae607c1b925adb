"""Values of a configuration as text: a file may hold anything, a message holds one short plain line."""

from collections.abc import Mapping

LONGEST_SHOWN = 40


def shown(value: object) -> str:
    """Any value of a configuration as one short line of plain text."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        # Python refuses to write integers of thousands of digits.
        return f"{value:,}" if abs(value) < 2**64 else ("> 2^64" if value > 0 else "< -2^64")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        clipped = value if len(value) <= LONGEST_SHOWN else value[:LONGEST_SHOWN] + "…"
        return "".join(letter if letter.isprintable() else "�" for letter in clipped)
    if isinstance(value, Mapping):
        return "{…}" if value else "{}"
    if isinstance(value, list | tuple):
        return "[…]" if value else "[]"
    return type(value).__name__
