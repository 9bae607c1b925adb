"""Where the language model's sizes are: at the root, or in the text part of a larger model."""

from ..errors import ConfigError
from .reader import Reader

PLACES = (("text_config",), ("language_config",), ("llm_config",), ("thinker_config", "text_config"))


def text_part(root: Reader) -> Reader:
    """The nested text part, or the root itself where there is none. Vision and audio parts are never read.

    Raises:
        ConfigError: more than one text part.
    """
    parts = {".".join(place): part for place in PLACES if (part := _follow(root, place)) is not None}
    if len(parts) > 1:
        raise ConfigError("config.ambiguous", field=", ".join(parts))
    return next(iter(parts.values()), root)


def _follow(root: Reader, place: tuple[str, ...]) -> Reader | None:
    part: Reader | None = root
    for key in place:
        part = part and part.part(key)
    return part
