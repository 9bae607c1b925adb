"""Typed access to the keys of a configuration, with a record of where every number came from."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..caches import Cache
from ..errors import ConfigError, FieldError
from .family import Family

HIGHEST = 2**31 - 1  # far above any size in a configuration; the cache kinds have bounds of their own
LONGEST_SHOWN = 40

Made = TypeVar("Made", bound=Cache)


@dataclass(frozen=True, slots=True)
class Found:
    """A number, the key to look at when it is wrong, and what to say about its origin."""

    value: int
    key: str
    origin: str

    def divided_by(self, parts: "Found") -> "Found":
        """The whole quotient.

        Raises:
            ConfigError: there is a remainder.
        """
        if self.value % parts.value:
            raise ConfigError(
                "config.divides", field=self.key, value=self.value, other=parts.key, parts=parts.value
            )
        return Found(self.value // parts.value, self.key, f"derived: {self.key} / {parts.key}")


class Reader:
    """One part of a configuration. Every method raises ConfigError for a value that its key cannot mean."""

    def __init__(
        self, values: Mapping[str, object], prefix: str = "", name: str = "", family: Family | None = None
    ) -> None:
        """`prefix` is the way to this part, `name` and `family` are its model_type."""
        self._values = values
        self._prefix = prefix
        self._name = name
        self.family = family or Family()
        self.provenance: dict[str, str] = {}
        self._notes: dict[tuple[str, str], Mapping[str, object]] = {}

    def as_family(self, name: str, family: Family) -> "Reader":
        """The same part, read as `family` does."""
        return Reader(self._values, self._prefix, name, family)

    def path(self, key: str) -> str:
        """`key` with its way from the root, as `text_config.head_dim`."""
        return self._prefix + key

    @property
    def place(self) -> str:
        """The way from the root to this part."""
        return self._prefix.removesuffix(".")

    def has(self, key: str) -> bool:
        """Whether the file gives `key` a value; null is none."""
        return self._values.get(key) is not None

    def is_set(self, key: str) -> bool:
        """Whether `key` switches something on: null, false, 0 and empty do not."""
        return bool(self._values.get(key))

    def optional(self, key: str, *, lowest: int = 1, highest: int = HIGHEST) -> Found | None:
        """The whole number of `key`; the class default where the key is absent; None without any."""
        path = self.path(key)
        if key not in self._values and key in self.family.defaults:
            default = self.family.defaults[key]
            self.note("config.note.default", path, value=default, model_type=self._name)
            return Found(default, path, f"class default of {self._name}")
        value = self._values.get(key)
        if value is None:
            return None
        if type(value) is not int:
            raise ConfigError("config.whole", field=path, value=shown(value))
        if not lowest <= value <= highest:
            raise ConfigError("config.range", field=path, value=shown(value), lowest=lowest, highest=highest)
        return Found(value, path, path)

    def whole(self, key: str, *, highest: int = HIGHEST) -> Found:
        """The whole number of `key`, from the file or the class."""
        found = self.optional(key, highest=highest)
        if found is None:
            raise self.missing(key)
        return found

    def computable(self, key: str) -> Found | None:
        """The whole number of `key`, or None where the family's class computes it."""
        return self.optional(key) if key in self.family.computed else self.whole(key)

    def flag(self, key: str, *, absent: bool) -> bool:
        """True or false; `absent` where the file does not say."""
        value = self._values.get(key)
        if value is None:
            return absent
        if not isinstance(value, bool):
            raise ConfigError("config.flag", field=self.path(key), value=shown(value))
        return value

    def word(self, key: str) -> str | None:
        """A text that is not empty, or None."""
        value = self._values.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigError("config.text", field=self.path(key), value=shown(value))
        return value

    def items(self, key: str, lengths: Collection[int]) -> Sequence[object] | None:
        """The list of `key`, which must have one of `lengths`, or None."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise ConfigError("config.list", field=self.path(key), value=shown(value))
        if len(value) not in lengths:
            expected = " / ".join(str(length) for length in sorted(lengths))
            raise ConfigError("config.length", field=self.path(key), value=len(value), expected=expected)
        return value

    def part(self, key: str) -> "Reader | None":
        """The object nested under `key`, or None."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError("config.object", field=self.path(key), value=shown(value))
        return Reader(value, f"{self.path(key)}.")

    def missing(self, key: str) -> ConfigError:
        """The refusal of a file without `key`."""
        return ConfigError("config.missing", field=self.path(key))

    def unread(self, key: str) -> ConfigError:
        """The refusal of a key that would change the cache in a way not known for this family."""
        value = shown(self._values[key])
        return ConfigError("config.unread", field=self.path(key), value=value, model_type=self._name)

    def note(self, key: str, path: str, **values: object) -> None:
        """Record once a sentence about what was read but not counted, or not in the file."""
        self._notes[key, path] = {"field": path, **values}

    @property
    def notes(self) -> tuple[tuple[str, Mapping[str, object]], ...]:
        """Every recorded sentence as (catalogue key, values)."""
        return tuple((key, values) for (key, _), values in self._notes.items())

    def cache(self, kind: Callable[..., Made], **sizes: Found) -> Made:
        """A cache of `sizes`, each recorded under its field's name.

        Raises:
            ConfigError: a size leaves the bounds of the cache kind.
        """
        try:
            made = kind(**{name: found.value for name, found in sizes.items()})
        except FieldError as error:
            key = sizes[error.field].key
            allowed = {bound: error.values[bound] for bound in ("lowest", "highest")}
            raise ConfigError("config.range", field=key, value=shown(error.value), **allowed) from error
        self.provenance |= {name: found.origin for name, found in sizes.items()}
        return made


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
