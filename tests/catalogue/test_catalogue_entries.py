"""The catalogue's files keep their contract."""

import json
from datetime import date
from importlib.resources import files

import pytest

from calculator import catalogue
from calculator.errors import FieldError
from calculator.model import ModelPlan


def test_flagships_come_first_and_the_rest_by_name():
    assert catalogue.ids() == (
        "qwen3.5-397b-a17b",
        "kimi-k2.6",
        "deepseek-v3.2",
        "glm-5.1",
        "minimax-m2.7",
        "deepseek-v2",
        "deepseek-v3",
        "gemma-3-27b",
        "llama-3.1-8b",
        "llama-7b",
        "mistral-7b-v0.1",
    )
    assert catalogue.ids()[:5] == catalogue.FLAGSHIPS


@pytest.mark.parametrize("model", catalogue.ids())
def test_entry_is_complete_and_honest(model):
    entry = catalogue.entry(model)
    assert entry.id == model
    assert entry.schema == 1
    assert all([entry.name, entry.maker, entry.source])
    assert "/" in entry.hub_id
    assert entry.revision is None
    assert date.fromisoformat(entry.date)
    assert entry.confidence in {"exact", "embedded", "re-release", "defaults"}
    assert catalogue.entry(model) is entry


@pytest.mark.parametrize("model", catalogue.ids())
def test_plan_is_read_once(model):
    plan = catalogue.plan(model)
    assert isinstance(plan, ModelPlan)
    assert catalogue.plan(model) is plan


@pytest.mark.parametrize("model", catalogue.ids())
def test_no_computed_figure_is_stored(model):
    stored = json.loads((files(catalogue) / f"{model}.json").read_text(encoding="utf-8"))
    assert set(stored) == {
        "schema",
        "id",
        "name",
        "maker",
        "hub_id",
        "revision",
        "source",
        "date",
        "confidence",
        "config",
    }


@pytest.mark.parametrize("model", ["gpt-9", "", "../catalogue/glm-5.1", "GLM-5.1"])
def test_unknown_model_names_the_known_ones(model):
    with pytest.raises(FieldError, match=r"glm-5\.1") as caught:
        catalogue.entry(model)
    assert (caught.value.key, caught.value.field, caught.value.value) == ("error.model", "model", model)
    with pytest.raises(FieldError):
        catalogue.plan(model)
