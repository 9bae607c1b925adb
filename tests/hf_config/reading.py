"""What the tests of the importer share: published configurations, and plans in few words."""

import json
from collections.abc import Mapping
from pathlib import Path

from calculator.footprint import footprint
from calculator.formats import Storage
from calculator.hf_config import read_config
from calculator.model import ModelPlan

CONFIGS = Path(__file__).parent / "configs"


def published(name: str, **changed: object) -> dict:
    """One of the test data's configurations; its text part, where it has one, with these keys changed."""
    config = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    config.get("text_config", config).update(changed)
    return config


def figures(config: Mapping[str, object], **options: bool) -> tuple[object, object, object]:
    """Bytes per token, of full windows, and of states."""
    amounts = footprint(read_config(config, **options), Storage(), 1).amounts(1, 1)
    return amounts.bytes_per_token.value, amounts.bounded_bytes.value, amounts.constant_bytes.value


def kinds(plan: ModelPlan) -> list[str]:
    """Of each layer the kinds of its caches, joined."""
    return ["+".join(cache.kind for cache in layer) for layer in plan.layers]


def notes(plan: ModelPlan) -> dict[str, Mapping[str, object]]:
    """The last note of each sort."""
    return {key.removeprefix("config.note."): values for key, values in plan.warnings}
