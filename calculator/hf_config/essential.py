"""The part of a config.json that decides its plan: what the catalogue keeps, and what a link carries."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from ..errors import ConfigError
from ..model import ModelPlan
from .document import Source, parse
from .heads import QUERY_HEADS, WIDTH
from .plan import read_config

# Not of the plan, but of what it is compared with: the same model with a KV head for each query head.
KEPT = frozenset((*QUERY_HEADS, *WIDTH, "qk_nope_head_dim", "v_head_dim"))
Path = tuple[str, ...]  # keys from the root inwards; a list on the way stands for each of its items


def essential(source: Source) -> Mapping[str, object]:
    """`source` without every key that changes nothing: same layers, same origins, same notes.

    The query heads and their widths stay too.

    Raises:
        ConfigError: the configuration is refused as it stands.
    """
    config = parse(source)
    whole = _told(read_config(config)), _drafted(config)

    def suffices(less: Mapping[str, object]) -> bool:
        try:
            return (_told(read_config(less)), _drafted(less)) == whole
        except ConfigError:
            return False

    return _slimmed(config, (), suffices)


def _slimmed(
    config: Mapping[str, object], path: Path, suffices: Callable[[Mapping[str, object]], bool]
) -> Mapping[str, object]:
    """`config` with keys under `path` dropped while it still suffices: many at once, then ever fewer."""
    left = [_keys(config, path)]
    while left:
        keys = left.pop()
        less = _without(config, path, keys)
        if suffices(less):
            config = less
        elif len(keys) == 1:
            config = _slimmed(config, (*path, *keys), suffices)
        else:
            half = len(keys) // 2
            left += [keys[half:], keys[:half]]
    return config


def _keys(value: object, path: Path) -> list[str]:
    """The keys of the objects under `path`."""
    if isinstance(value, list | tuple):
        return list(dict.fromkeys(key for item in value for key in _keys(item, path)))
    if not isinstance(value, Mapping):
        return []
    return _keys(value.get(path[0]), path[1:]) if path else [key for key in value if key not in KEPT]


def _without(value: Any, path: Path, keys: Iterable[str]) -> Any:
    """`value` without `keys` in the objects under `path`."""
    if isinstance(value, list | tuple):
        return [_without(item, path, keys) for item in value]
    if not isinstance(value, Mapping):
        return value
    if not path:
        return {key: inner for key, inner in value.items() if key not in keys}
    return {key: _without(inner, path[1:], keys) if key == path[0] else inner for key, inner in value.items()}


def _drafted(config: Mapping[str, object]) -> object:
    """The plan with the layers of multi-token prediction, or why there is none."""
    try:
        return _told(read_config(config, draft_layers=True))
    except ConfigError as error:
        return error.key, error.field


def _told(plan: ModelPlan) -> object:
    """All that a plan says, also what does not count when plans are compared."""
    return tuple(getattr(plan, item.name) for item in fields(plan))
