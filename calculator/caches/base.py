"""What every cache kind answers, whatever it stores."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar

from ..errors import FieldError
from ..explain import Counted, Expression
from ..formats import Row, Storage, StorageFormat


class Growth(StrEnum):
    """How the bytes of a request follow its context."""

    LINEAR = "linear"
    BOUNDED = "bounded"
    CONSTANT = "constant"


def size(lowest: int, highest: int, **options: Any) -> Any:
    """A whole-number field of a cache kind, with the bounds that its constructor checks and sliders offer."""
    return field(metadata={"bounds": (lowest, highest)}, **options)


def bounds(owner: type, name: str) -> tuple[int, int]:
    """The bounds that `owner` gave to its field `name`."""
    lowest, highest = next(item for item in fields(owner) if item.name == name).metadata["bounds"]
    return lowest, highest


KINDS: dict[str, type["Cache"]] = {}  # every concrete kind by its name, in the order of definition


@dataclass(frozen=True, kw_only=True)
class Cache(ABC):
    """One cache of one layer: `unit_bytes` for each of the units that a request holds.

    A unit is the row of one token, or the whole state of a recurrent layer.
    """

    kind: ClassVar[str]
    source: ClassVar[str]  # engine, version and class or function whose bytes these are
    growth: ClassVar[Growth]

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        for name, (lowest, highest) in self.sized():
            value = getattr(self, name)
            if type(value) is not int:
                raise FieldError("error.integer", field=name, value=value, lowest=lowest, highest=highest)
            if not lowest <= value <= highest:
                raise FieldError("error.range", field=name, value=value, lowest=lowest, highest=highest)

    @classmethod
    def sized(cls) -> Iterator[tuple[str, tuple[int, int]]]:
        """(name, bounds) of every whole-number field."""
        for item in fields(cls):
            if "bounds" in item.metadata:
                yield item.name, item.metadata["bounds"]

    @abstractmethod
    def unit_bytes(self, storage: Storage, tp: int) -> Expression:
        """Bytes of one unit on one of `tp` ranks, without block rounding or padding."""

    @abstractmethod
    def units(self, context: Counted) -> Counted:
        """Units that a request of `context` tokens needs."""

    def held(self, tokens: int) -> int:
        """Units that a request holds while its `tokens`-th token is decoded: never more than it needs."""
        return self.units(tokens)

    @property
    def tokens_per_unit(self) -> int:
        """Tokens that share one unit of a linear cache: 1 but for compressed tokens."""
        return 1

    @property
    def bound(self) -> Expression | None:
        """The context at which a bounded cache stops growing; None for one that is not bounded."""
        return None

    @property
    @abstractmethod
    def split_heads(self) -> tuple[int, ...]:
        """The head counts that tensor parallelism divides; none where every rank keeps a full copy."""

    @abstractmethod
    def accepts_tp(self, tp: int) -> bool:
        """Whether the engines start with this `tp`; the bytes follow their rounding in any case."""

    @abstractmethod
    def stored_in(self, storage: Storage) -> StorageFormat:
        """The storage format of what this cache holds (of a recurrent layer: of nearly all of it)."""

    @abstractmethod
    def accepts(self, storage: Storage) -> bool:
        """Whether this cache can be written in its format of `storage`."""


@dataclass(frozen=True, kw_only=True)
class TokenCache(Cache):
    """A cache of one row per token. Kinds state their row; those that forget tokens override `units`."""

    growth: ClassVar[Growth] = Growth.LINEAR
    own_format: ClassVar[StorageFormat | None] = None  # a format that the KV dtype does not change

    @abstractmethod
    def row(self, tp: int) -> Row:
        """What one token stores on one of `tp` ranks."""

    def unit_bytes(self, storage: Storage, tp: int) -> Expression:
        """The row in its format."""
        return self.stored_in(storage).row_bytes(self.row(tp))

    def units(self, context: Counted) -> Counted:
        """One row per token, or per group of compressed tokens."""
        return context if self.tokens_per_unit == 1 else context // self.tokens_per_unit

    def stored_in(self, storage: Storage) -> StorageFormat:
        """The KV dtype, unless the kind has a format of its own."""
        return self.own_format or storage.kv

    def accepts(self, storage: Storage) -> bool:
        """The format decides by the vectors of the row."""
        return self.stored_in(storage).accepts(self.row(1))
