"""A number with its origin, and the record of everything that was looked at."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import ConfigError


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

    def times(self, factor: "Found | int") -> "Found":
        """The product."""
        if isinstance(factor, int):
            return Found(self.value * factor, self.key, f"derived: {factor} · {self.key}")
        return Found(self.value * factor.value, self.key, f"derived: {self.key} · {factor.key}")

    def plus(self, other: "Found") -> "Found":
        """The sum."""
        return Found(self.value + other.value, self.key, f"derived: {self.key} + {other.key}")


@dataclass(slots=True)
class Record:
    """What was looked at and found, shared by every view of one configuration."""

    seen: set[str] = field(default_factory=set)
    notes: dict[tuple[str, str], Mapping[str, object]] = field(default_factory=dict)
    origins: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # size -> cache kind -> origins

    def provenance(self) -> dict[str, str]:
        """One origin per size; where cache kinds differ, one per `kind.size`."""
        told: dict[str, str] = {}
        for size, kinds in self.origins.items():
            texts = {kind: " | ".join(dict.fromkeys(origins)) for kind, origins in kinds.items()}
            if len(set(texts.values())) == 1:
                told[size] = next(iter(texts.values()))
            else:
                told |= {f"{kind}.{size}": text for kind, text in texts.items()}
        return told
