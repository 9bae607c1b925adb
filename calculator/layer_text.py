"""Layers as text that a person can type: `10*(5*sliding_window(…)+full_attention(…))+2*sliding_window(…)`.

    layers := item + item …        a + or a space between items; each stands for as many layers
    item   := [times *] layer  |  [times *] ( layers )
    layer  := cache / cache …  |  none
    cache  := kind(size=number, …)

Kinds and sizes are those of `caches`, so that a new kind can be said here without a word more.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields
from itertools import groupby

from .caches import KINDS, Cache
from .errors import FieldError
from .model import Layer

MAX_LAYERS = 1024
MAX_TEXT = 20_000
MAX_DEPTH = 8
MAX_PERIOD = 64  # layers of a pattern that is looked for
NOTHING = "none"
FIELD = "layers"
_TOKEN = re.compile(r"[\s+]*(?:(\d{1,12}|[a-z][a-z0-9_]*|[()*/,=])|$)", re.ASCII)

Run = tuple[int, Layer]  # so many equal layers
Block = tuple[int, tuple[Run, ...]]  # the runs, so many times


def parse(text: str) -> tuple[Layer, ...]:
    """The layers that `text` describes.

    Raises:
        FieldError: it names what was found where something else is needed, an unknown kind or size, a size
            outside its bounds, or more than 1,024 layers.
    """
    if len(text) > MAX_TEXT:
        raise FieldError("error.layers_long", field=FIELD, value=len(text), highest=MAX_TEXT)
    reader = _Reader(list(_tokens(text)))
    layers = reader.layers(0)
    if not layers or reader.next() is not None:
        raise reader.unexpected()
    return tuple(layers)


def write(layers: Sequence[Layer]) -> str:
    """The shortest text that this module finds for `layers`; `parse` gives them back."""
    return "+".join(map(_block_text, blocks(layers)))


def blocks(layers: Sequence[Layer]) -> Iterator[Block]:
    """`layers` as repeated patterns, each of runs of equal layers."""
    number_of: dict[Layer, int] = {}
    numbers = [number_of.setdefault(layer, len(number_of)) for layer in layers]
    at = 0
    while at < len(layers):
        period, times = _repetition(numbers, at)
        runs = tuple((len(list(run)), layer) for layer, run in groupby(layers[at : at + period]))
        if len(runs) == 1:
            yield 1, ((period * times, runs[0][1]),)
        else:
            yield times, runs
        at += period * times


def needed(kind: type[Cache]) -> Iterator[str]:
    """The sizes of a kind that have no default."""
    return (item.name for item in fields(kind) if item.default is MISSING)


def _repetition(numbers: Sequence[int], at: int) -> tuple[int, int]:
    """(period, times) of the pattern at `at` that saves most."""
    best = (1, 1)
    for period in range(1, min(MAX_PERIOD, (len(numbers) - at) // 2) + 1):
        pattern, times = numbers[at : at + period], 1
        while numbers[at + times * period : at + (times + 1) * period] == pattern:
            times += 1
        if (times - 1) * period > (best[1] - 1) * best[0]:
            best = (period, times)
    return best


def _block_text(block: Block) -> str:
    times, runs = block
    inner = "+".join(f"{count}*" * (count > 1) + layer_text(layer) for count, layer in runs)
    return inner if times == 1 else f"{times}*({inner})"


def layer_text(layer: Layer) -> str:
    """The caches of one layer as text."""
    return "/".join(map(_cache_text, layer)) or NOTHING


def _cache_text(cache: Cache) -> str:
    sizes = ((item, getattr(cache, item.name)) for item in fields(cache))
    return f"{cache.kind}({','.join(f'{item.name}={size}' for item, size in sizes if size != item.default)})"


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            rest = text[at:].lstrip(" +\t\n\r")
            raise FieldError("error.layers", field=FIELD, value=rest[:20])
        at = found.end()
        if found[1]:
            yield found[1]


def within_bounds(kind: str, field: str, make: Callable[[], Cache]) -> Cache:
    """The cache that `make` makes. Raises FieldError, of `field`, for a size outside its bounds."""
    try:
        return make()
    except FieldError as error:
        sizes = {"kind": kind, "size": error.field}
        allowed = {"least": error.values["lowest"], "most": error.values["highest"]}
        raise FieldError("error.layers_range", field=field, value=error.value, **sizes, **allowed) from error


class _Reader:
    """The grammar, one method for each of its lines."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.at = 0

    def next(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, token: str) -> bool:
        """Whether `token` comes next; it is then behind us."""
        found = self.next() == token
        self.at += found
        return found

    def need(self, token: str) -> None:
        if not self.take(token):
            raise self.unexpected()

    def number(self) -> int | None:
        token = self.next()
        if token is None or not token.isdigit():
            return None
        self.at += 1
        return int(token)

    def word(self) -> str:
        token = self.next()
        if token is None or not token[0].isalpha():
            raise self.unexpected()
        self.at += 1
        return token

    def unexpected(self) -> FieldError:
        """The refusal of what comes next."""
        return FieldError(
            "error.layers", field=FIELD, value="".join(self.tokens[self.at : self.at + 4]) or "…"
        )

    def layers(self, depth: int) -> list[Layer]:
        found: list[Layer] = []
        while self.next() not in (None, ")"):
            found += self.item(depth)
            self.check(len(found))
        return found

    def item(self, depth: int) -> list[Layer]:
        times = self.number()
        if times is None:
            times = 1
        else:
            self.need("*")
        if times == 0:
            raise FieldError("error.layers", field=FIELD, value="0*")
        self.check(times)
        if not self.take("("):
            return [self.layer()] * times
        if depth == MAX_DEPTH:
            raise self.unexpected()
        inner = self.layers(depth + 1)
        self.need(")")
        self.check(len(inner) * times)
        return inner * times

    def check(self, count: int) -> None:
        if count > MAX_LAYERS:
            raise FieldError("error.layers_many", field=FIELD, value=count, highest=MAX_LAYERS)

    def layer(self) -> Layer:
        if self.take(NOTHING):
            return ()
        caches = [self.cache()]
        while self.take("/"):
            caches.append(self.cache())
        return tuple(caches)

    def cache(self) -> Cache:
        name = self.word()
        kind = KINDS.get(name)
        if kind is None:
            raise FieldError("error.layers_kind", field=FIELD, value=name, options=", ".join(KINDS))
        self.need("(")
        sizes: dict[str, int] = {}
        while not self.take(")"):
            if sizes:
                self.need(",")
            size = self.word()
            if size in sizes or size not in (item.name for item in fields(kind)):
                known = ", ".join(item.name for item in fields(kind))
                raise FieldError("error.layers_size", field=FIELD, value=size, kind=name, options=known)
            self.need("=")
            number = self.number()
            if number is None:
                raise self.unexpected()
            sizes[size] = number
        missing = [size for size in needed(kind) if size not in sizes]
        if missing:
            raise FieldError("error.layers_missing", field=FIELD, value=name, missing=", ".join(missing))
        return within_bounds(kind.kind, FIELD, lambda: kind(**sizes))
