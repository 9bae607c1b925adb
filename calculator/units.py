"""Bytes and token counts, as text and back. 1024-based and 1000-based units are never mixed."""

import re
from bisect import bisect_right
from fractions import Fraction

from .errors import FieldError

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB")
SYSTEMS = {"GiB": (BINARY, 1024), "GB": (DECIMAL, 1000)}
_SIZES = {system: [base**power for power in range(len(names))] for system, (names, base) in SYSTEMS.items()}

_SUFFIXES = {"": 1, "K": 1000, "M": 1000**2, "KI": 1024, "MI": 1024**2}
_COUNT = re.compile(r"([-−]?)(\d+|\d{1,3}(?:[,_ ]\d{3})+)(?:\.(\d+))? ?(Ki|Mi|K|M|k|m|ki|mi)?", re.ASCII)
_UNITS = "|".join(dict.fromkeys(BINARY + DECIMAL))
_SIZE = re.compile(rf"((?:\d{{1,30}}|\d{{1,3}}(?:,\d{{3}}){{1,9}})(?:\.\d{{1,30}})?) ?({_UNITS})", re.ASCII)
_DIGITS = 30  # a longer number leaves every range; Python itself refuses to read thousands of digits


def exact(amount: int | Fraction | float) -> str:
    """`70,272` or, for a fraction, up to four decimals of it (`3,850.25`): the whole part is always exact."""
    if isinstance(amount, int):
        return f"{amount:,}"
    amount = Fraction(amount)  # also of an engine's double
    if amount.denominator == 1:
        return f"{int(amount):,}"
    whole, decimals = divmod(round(amount * 10_000), 10_000)
    return f"{whole:,}.{decimals:04}".rstrip("0").rstrip(".")


def number_json(number: int | Fraction | float) -> object:
    """A whole number as it is, a fraction as {"numerator", "denominator"}, an engine's double as a number."""
    if isinstance(number, float):
        return number
    if number.denominator == 1:
        return int(number)
    return {"numerator": number.numerator, "denominator": number.denominator}


def unit_of(amount: int | Fraction, system: str = "GiB") -> str:
    """The largest unit of `system` ("GiB" or "GB") in which `amount` is at least one."""
    return SYSTEMS[system][0][_power(amount, system)]


def _power(amount: int | Fraction, system: str) -> int:
    return max(bisect_right(_SIZES[system], amount) - 1, 0)


def scaled(amount: int | Fraction, unit: str) -> Fraction:
    """`amount` bytes counted in `unit`, exactly."""
    names, base = SYSTEMS["GiB"] if unit in BINARY else SYSTEMS["GB"]
    return Fraction(amount) / Fraction(base) ** names.index(unit)


def human(amount: int | Fraction, system: str = "GiB", digits: int = 3) -> str:
    """`68.6 KiB`, `549 MiB`: `digits` significant digits or the whole number, trailing zeros dropped."""
    names, base = SYSTEMS[system]
    power = _power(amount, system)
    size = amount.denominator * _SIZES[system][power]
    places = max(0, digits - len(str(amount.numerator // size)))
    # Half up, in integers: charts call this a lot.
    rounded = (2 * amount.numerator * 10**places + size) // (2 * size)
    if rounded == base * 10**places and power + 1 < len(names):  # 1,023.99 KiB is written 1 MiB
        power, rounded = power + 1, 10**places
    whole, rest = divmod(rounded, 10**places)
    decimals = f".{rest:0{places}}".rstrip("0").rstrip(".") if rest else ""
    return f"{whole:,}{decimals} {names[power]}"


def parse_bytes(given: str) -> int | Fraction:
    """`70,272 B`, `68.625 KiB`, `1.5 GB` -> bytes. The inverse of `human` where that is exact."""
    match = _SIZE.fullmatch(given.strip())
    if match is None:
        raise FieldError("error.bytes", field="bytes", value=given)
    number, unit = match.groups()
    names, base = next((names, base) for names, base in SYSTEMS.values() if unit in names)
    amount = Fraction(number.replace(",", "")) * base ** names.index(unit)
    return int(amount) if amount.denominator == 1 else amount


def parse_count(given: str, field: str, **bounds: int) -> int:
    """`131072`, `131,072`, `128Ki` and `100K` (= 100,000) -> a whole number.

    Raises FieldError for anything else, naming `field` and the `lowest` and `highest` of `bounds`; whether
    the number is within them is for the caller to see.
    """
    match = _COUNT.fullmatch(given.strip())
    if match is None:
        key = "error.empty" if not given.strip() else "error.integer"
        raise FieldError(key, field=field, value=given, **bounds)
    sign, whole, decimals, suffix = match.groups()
    digits, decimals = re.sub("[,_ ]", "", whole).lstrip("0") or "0", (decimals or "").rstrip("0") or "0"
    if len(digits) > _DIGITS:
        digits = "1" + "0" * _DIGITS
    number = Fraction(f"{digits}.{decimals[:_DIGITS]}") * _SUFFIXES[(suffix or "").upper()]
    if number.denominator != 1 or len(decimals) > _DIGITS:
        raise FieldError("error.integer", field=field, value=given, **bounds)
    return -int(number) if sign else int(number)
