"""What can go wrong, as one tree.

CalculatorError
├── FieldError        a value outside its field's rules: names field, value, bound and what to do
│   └── RefusedConfigError   the value is a configuration, refused by a ConfigError
├── LimitError        legal values whose product leaves the exact range (2^53 bytes)
├── ConfigError       a config.json that is not fully understood: names the key and what to do
└── EngineError       an engine refuses this: the sentence gives the engine's reason
"""

from collections.abc import Mapping

from .locales import label, text


class CalculatorError(Exception):
    """Base of every error raised on purpose. `key` names its sentence in the catalogues, `values` fill it."""

    values: Mapping[str, object]

    def __init__(self, key: str, **values: object) -> None:
        self.key = key
        self.values = values
        super().__init__(self.message("en"))

    def message(self, language: str) -> str:
        """The sentence for a person."""
        return text(language, self.key, **self.values)


class FieldError(CalculatorError):
    """`field` was given `value`, which its rule does not allow."""

    def __init__(self, key: str, *, field: str, value: object, **values: object) -> None:
        self.field = field
        self.value = value
        super().__init__(key, field=field, value=value, **values)

    def message(self, language: str) -> str:
        """The sentence, with the field under the name that people see."""
        return text(language, self.key, **{**self.values, "field": label(language, self.field)})


class LimitError(CalculatorError):
    """Every input is legal but the result would not be an exact JSON integer."""


class ConfigError(CalculatorError):
    """A model configuration was refused; `field` is the key to look at."""

    def __init__(self, key: str, *, field: str, **values: object) -> None:
        self.field = field
        super().__init__(key, field=field, **values)


class RefusedConfigError(FieldError):
    """The configuration given for `field` was refused: the sentence is that of `reason`."""

    def __init__(self, field: str, value: object, reason: ConfigError) -> None:
        self.reason = reason
        super().__init__(reason.key, field=field, value=value)

    def message(self, language: str) -> str:
        """The importer's sentence, which names the key to look at."""
        return self.reason.message(language)


class EngineError(CalculatorError):
    """An engine refuses this: the sentence gives the engine's reason."""
