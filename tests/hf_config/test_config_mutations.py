"""Whatever is done to a real configuration: a plan or a ConfigError, nothing else, and no silent default."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculator.errors import ConfigError
from calculator.hf_config import read_config
from tests import fuzz
from tests.hf_config.reading import CONFIGS

FILES = sorted(CONFIGS.rglob("*.json"))


def test_a_sample_of_changed_configurations_is_read_or_refused():
    outcomes = fuzz.run(count=1_500, seed=1)
    assert outcomes.total() == 1_500
    assert outcomes["plan"] > 100
    assert len(outcomes) > 12


def test_the_command_reports_its_counts(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["fuzz.py", "--count", "5"])
    fuzz.main()
    assert "5  in " in capsys.readouterr().out


def test_a_crash_is_told_with_its_seed(capsys, monkeypatch):
    monkeypatch.setattr(fuzz, "read_config", lambda *_, **__: {}["crash"])
    with pytest.raises(KeyError):
        fuzz.run(count=1, seed=3)
    assert capsys.readouterr().err.startswith("seed 3, number 0: ")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_key_that_is_left_out_is_told_where_it_matters(path):
    original = read_config(path)
    config = json.loads(path.read_text(encoding="utf-8"))
    for part in (config, *(value for value in config.values() if isinstance(value, dict))):
        for key in list(part):
            value = part.pop(key)
            try:
                plan = read_config(config)
            except ConfigError:
                plan = original
            if plan != original:
                assert (plan.provenance, plan.warnings) != (original.provenance, original.warnings), key
            part[key] = value


@given(st.text(alphabet='{}[]":,0aé', max_size=60) | st.binary(max_size=60))
@settings(max_examples=80)
def test_any_other_text_is_refused(source):
    with pytest.raises(ConfigError):
        read_config(source)


JSON = st.recursive(
    st.sampled_from([*fuzz.KEYS, *fuzz.ODD]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(fuzz.KEYS), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*fuzz.KEYS, "num_hidden_layers", "hidden_size"]), JSON, max_size=8))
@settings(max_examples=80)
def test_any_object_of_known_keys_is_read_or_refused(config):
    fuzz.outcome(config, draft_layers=True)
