"""What the tests of the importer share: published configurations, and plans in few words."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from calculator.errors import ConfigError
from calculator.footprint import footprint
from calculator.formats import Storage
from calculator.hf_config import read_config
from calculator.model import ModelPlan

CONFIGS = Path(__file__).parent / "configs"
PLAIN = {"hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4, "num_hidden_layers": 4}
ROW = 2 * 2 * 64  # bytes of one KV head and token of PLAIN: K and V in two bytes, 64 wide


def plain(**changed: object) -> dict:
    """A complete configuration of a model_type that is not known."""
    return {"model_type": "no_such_model", **PLAIN, **changed}


def of(model_type: str, **changed: object) -> dict:
    """The same of one that is."""
    return {"model_type": model_type, **PLAIN, **changed}


def refusal(config: object, **options: bool) -> ConfigError:
    """The error that reading raises."""
    with pytest.raises(ConfigError) as caught:
        read_config(config, **options)
    return caught.value


def refused(config: object, key: str, field: str) -> None:
    """Reading is refused with this sentence, for this key."""
    error = refusal(config)
    assert (error.key, error.field) == (f"config.{key}", field), str(error)


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
