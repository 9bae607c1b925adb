"""Typed access to the keys of a configuration, with a record of where every number came from."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ..caches import Cache
from ..errors import ConfigError, FieldError
from .family import Family
from .found import Found, Record
from .plain_text import shown

HIGHEST = 2**31 - 1  # far above any size in a configuration; the cache kinds have bounds of their own
LONGEST_TAIL = 8  # more entries of draft layers than any published list has

Made = TypeVar("Made", bound=Cache)


class Reader:
    """One part of a configuration. Every method raises ConfigError for a value that its key cannot mean."""

    def __init__(
        self, values: Mapping[str, object], *, prefix: str = "", record: Record | None = None
    ) -> None:
        """`prefix` is the way to this part."""
        self._values = values
        self._prefix = prefix
        self._defaults: Mapping[str, object] = {}
        self._layer: Mapping[str, Found] = {}
        self.record = record or Record()
        self.name = ""
        self.family = Family()
        self.known = True

    def as_family(
        self, name: str, family: Family, defaults: Mapping[str, object], *, known: bool
    ) -> "Reader":
        """The same part, read as the class of one model_type does; `known` is whether we know that type."""
        values = {key: value for key, value in self._values.items() if key not in family.ignores}
        copy = Reader(values, prefix=self._prefix, record=self.record)
        copy._defaults, copy.name, copy.family, copy.known = defaults, name, family, known
        return copy

    def with_sizes(self, sizes: Mapping[str, Found]) -> "Reader":
        """The same part as one layer, or one half of the model, sees it: `sizes` win over the file."""
        copy = Reader(self._values, prefix=self._prefix, record=self.record)
        copy._defaults, copy.name, copy.family, copy.known = (
            self._defaults,
            self.name,
            self.family,
            self.known,
        )
        copy._layer = {**self._layer, **sizes}
        return copy

    def path(self, key: str) -> str:
        """`key` with its way from the root, as `text_config.head_dim`."""
        return self._prefix + self.family.means.get(key, key)

    def _value(self, key: str) -> object:
        self.record.seen.add(self.path(key))
        return self._values.get(self.family.means.get(key, key))

    @property
    def place(self) -> str:
        """The way from the root to this part."""
        return self._prefix.removesuffix(".")

    def names(self) -> Sequence[str]:
        """All keys of this part, but for those that the family ignores."""
        return list(self._values)

    def switched_on(self) -> Sequence[str]:
        """Those that the file gives a value other than null, false, 0 and empty."""
        return [key for key, value in self._values.items() if value]

    def unseen(self) -> Sequence[str]:
        """Those of `switched_on` that no rule has looked at."""
        return [key for key in self.switched_on() if self._prefix + key not in self.record.seen]

    def skip(self, *keys: str) -> None:
        """Take these keys as read: another one decides."""
        self.record.seen |= {self.path(key) for key in keys}

    def has(self, key: str) -> bool:
        """Whether the file gives `key`, or `part.key`, a value; null is none."""
        outer, _, inner = key.rpartition(".")
        if outer:
            part = self.part(outer)
            return part is not None and part.has(inner)
        return self._values.get(self.family.means.get(key, key)) is not None

    def is_null(self, key: str) -> bool:
        """Whether the file says null."""
        spelling = self.family.means.get(key, key)
        return spelling in self._values and self._values[spelling] is None

    def says(self, key: str, *values: bool | str | int) -> bool:
        """Whether the file gives one of `values`, true not being 1; only then the key counts as read."""
        given = self._values.get(self.family.means.get(key, key))
        found = any(type(given) is type(value) and given == value for value in values)
        if found:
            self.skip(key)
        return found

    def shown_value(self, key: str) -> str:
        """What the file gives, as text for a message."""
        return shown(self._values.get(key))

    def is_list(self, key: str) -> bool:
        """Whether the file gives a list where a number could be."""
        return isinstance(self._values.get(self.family.means.get(key, key)), list | tuple)

    def pattern_text(self, key: str) -> str | None:
        """The text that the file gives where a number could be, or None."""
        value = self._value(key)
        return value if isinstance(value, str) and value else None

    def layer_size(self, key: str) -> Found | None:
        """What this layer has of its own."""
        return self._layer.get(key)

    def optional(self, key: str, *, lowest: int = 1, highest: int = HIGHEST) -> Found | None:
        """The whole number of `key`; the class default where the key is absent; None without any."""
        if key in self._layer:
            return self._layer[key]
        value, path = self._value(key), self.path(key)
        if value is None:
            return None if self.is_null(key) else self._default(key)
        if type(value) is not int:
            raise ConfigError("config.whole", field=path, value=shown(value))
        if not lowest <= value <= highest:
            raise ConfigError("config.range", field=path, value=shown(value), lowest=lowest, highest=highest)
        return Found(value, path, path)

    def _of_class(self, key: str) -> object:
        return self._defaults.get(self.family.means.get(key, key))

    def _default(self, key: str) -> Found | None:
        value = self._of_class(key)
        if type(value) is not int:
            return None
        self._note_default(key, value)
        return Found(value, self.path(key), f"class default of {self.name}")

    def _note_default(self, key: str, value: object) -> None:
        self.note("config.note.default", self.path(key), value=value, model_type=self.name)

    def class_has(self, key: str) -> bool:
        """Whether the class of this model_type is known to have `key`, or is not known at all."""
        return not self.has_class() or key in self._defaults

    def has_class(self) -> bool:
        """Whether the keys of this model_type's class are known."""
        return bool(self._defaults)

    def class_number(self, key: str) -> bool:
        """Whether the class has a number for `key`, which null in the file would then replace by nothing."""
        return type(self._of_class(key)) is int

    def whole(self, key: str, *, highest: int = HIGHEST) -> Found:
        """The whole number of `key`, from the file or the class."""
        found = self.optional(key, highest=highest)
        if found is None:
            raise self.missing(key)
        return found

    def number(self, key: str, *, highest: int = HIGHEST) -> Found:
        """The same, where 0 is one."""
        found = self.optional(key, lowest=0, highest=highest)
        if found is None:
            raise self.missing(key)
        return found

    def spelled(self, *keys: str, lowest: int = 1) -> Found | None:
        """The number that any of these spellings of a size gives; the class default where none does.

        Raises:
            ConfigError: two spellings with different numbers.
        """
        if keys[0] in self._layer:
            return self._layer[keys[0]]
        given = [found for key in keys if self.has(key) and (found := self.optional(key, lowest=lowest))]
        if not given:
            defaults = (self._default(key) for key in keys if not self.is_null(key))
            return next((found for found in defaults if found), None)
        for other in given[1:]:
            if other.value != given[0].value:
                raise ConfigError(
                    "config.contradiction",
                    field=given[0].key,
                    value=given[0].value,
                    other=other.key,
                    second=other.value,
                )
        return given[0]

    def needed(self, *keys: str) -> Found:
        """The same, refused where there is none."""
        found = self.spelled(*keys)
        if found is None:
            raise self.missing(keys[0])
        return found

    def flag(self, key: str, *, absent: bool = False) -> bool:
        """True or false; the class default, or else `absent`, where the file does not say."""
        value = self._value(key)
        if value is None:
            default = self._of_class(key)
            return default if isinstance(default, bool) else absent
        if not isinstance(value, bool):
            raise ConfigError("config.flag", field=self.path(key), value=shown(value))
        return value

    def word(self, key: str) -> str | None:
        """A text that is not empty; the class default where the key is absent; or None."""
        value = self._value(key)
        if value is None and not self.is_null(key) and isinstance(self._defaults.get(key), str):
            value = self._defaults[key]
        if value is not None and (not isinstance(value, str) or not value):
            raise ConfigError("config.text", field=self.path(key), value=shown(value))
        return value

    def items(self, key: str) -> Sequence[object] | None:
        """The list of `key`, or of the class where the key is absent, or None."""
        value = self._value(key)
        if value is None and not self.is_null(key) and isinstance(self._defaults.get(key), list):
            value = self._defaults[key]
            self._note_default(key, "[…]")
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise ConfigError("config.list", field=self.path(key), value=shown(value))
        return value

    def per_layer(self, key: str, count: int, drafts: int = 0) -> Sequence[object] | None:
        """The list of `key`, one entry per layer; a tail belongs to the draft layers. None without a list."""
        value = self.items(key)
        return None if value is None else self.as_long(key, value, count, drafts)

    def as_long(self, key: str, value: Sequence[object], count: int, drafts: int) -> Sequence[object]:
        """`value` of `key`, if it has an entry for each layer and no more than draft layers can have.

        Raises:
            ConfigError: another length.
        """
        tail = len(value) - count
        if not 0 <= tail <= max(drafts, LONGEST_TAIL):
            raise ConfigError("config.length", field=self.path(key), value=len(value), expected=count)
        if tail > drafts:
            self.note("config.note.tail", self.path(key), value=tail)
        return value

    def part(self, key: str) -> "Reader | None":
        """The object nested under `key`, or None."""
        value = self._value(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError("config.object", field=self.path(key), value=shown(value))
        return Reader(value, prefix=f"{self.path(key)}.", record=self.record)

    def missing(self, key: str) -> ConfigError:
        """The refusal of a file without `key`."""
        return ConfigError("config.missing", field=self.path(key))

    def unread(self, key: str) -> ConfigError:
        """The refusal of a key that would change the cache in a way not known for this family."""
        value = shown(self._values.get(self.family.means.get(key, key)))
        name = shown(self.name) if self.name else "–"
        return ConfigError("config.unread", field=self.path(key), value=value, model_type=name)

    def unknown_word(self, key: str, position: int, word: object, known: str) -> ConfigError:
        """The refusal of one entry of a list."""
        return ConfigError(
            "config.word", field=f"{self.path(key)}[{position}]", value=shown(word), known=known
        )

    def ordinary(self, key: str) -> None:
        """Refuse `key` where the model_type is not known: what it does there is not in its name alone.

        Raises:
            ConfigError: the model_type is not known.
        """
        if not self.known:
            raise self.unread(key)

    def refines(self, key: str) -> None:
        """Record that `key` decides too what the layers do."""
        self.record.origins["layer_pattern"][""].append(self.origin(key))

    def origin(self, key: str) -> str:
        """Where a list or pattern of `key` is from: the file, or else the class."""
        return self.path(key) if self.has(key) else f"class default of {self.name}"

    def note(self, key: str, path: str, **values: object) -> None:
        """Record once a sentence about what was read but not counted, or not in the file."""
        self.record.notes[key, path] = {"field": path, **values}

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
        for name, found in sizes.items():
            self.record.origins.setdefault(name, {}).setdefault(made.kind, []).append(found.origin)
        return made
