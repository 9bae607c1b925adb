"""Whatever is done to a real configuration: a plan or a ConfigError, nothing else."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from calculator import catalogue
from calculator.errors import ConfigError
from calculator.hf_config import read_config
from calculator.hf_config.family import MECHANISMS
from calculator.locales import LANGUAGES
from calculator.model import ModelPlan

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 200),
    st.sampled_from([-(10**400), 10**400, 2**53, 2**31, float("nan"), float("inf"), -0.0, "", "8", "\ud800"]),
    st.text(max_size=8),
    st.lists(st.sampled_from([0, 1, None, "full_attention", "sliding_attention", "shared"]), max_size=80),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)
EXTRA_KEYS = (
    *MECHANISMS,
    "layer_types",
    "head_dim",
    "use_sliding_window",
    "use_mla",
    "index_skip_topk_offset",
    "quantization_config",
    "num_mtp_modules",
    "mtp_transformer_layers",
    "text_config",
    "llm_config",
    "thinker_config",
)


@st.composite
def mutated(draw):
    config = json.loads(json.dumps(catalogue.entry(draw(st.sampled_from(catalogue.ids()))).config))
    for _ in range(draw(st.integers(1, 4))):
        places = [config, *(value for value in config.values() if isinstance(value, dict))]
        place = draw(st.sampled_from(places))
        key = draw(st.sampled_from([*place, *EXTRA_KEYS]))
        change = draw(st.sampled_from(["drop", "rename", "replace", "negate", "stretch", "nest", "fill"]))
        value = place.pop(key, None)
        if change == "rename":
            place[draw(st.sampled_from(EXTRA_KEYS))] = value
        elif change == "replace":
            place[key] = draw(ODD)
        elif change == "negate" and isinstance(value, int):
            place[key] = -value
        elif change == "stretch" and isinstance(value, list):
            place[key] = value * 2 if draw(st.booleans()) else value[:-1]
        elif change == "nest":
            place[key] = {key: value}
            config = {"model_type": config.get("model_type"), "text_config": config}
        elif change == "fill":
            entry = draw(st.sampled_from(["full_attention", "sliding_attention", "linear_attention", 1]))
            place[key] = [entry] * draw(st.integers(0, 80))
    return config


def read_or_refuse(source: object) -> ModelPlan | ConfigError:
    try:
        return read_config(source)
    except ConfigError as error:
        return error


@given(mutated())
@settings(max_examples=600, deadline=None)
def test_a_changed_configuration_is_read_or_refused(config):
    for source in (config, json.dumps(config)):
        outcome = read_or_refuse(source)
        if isinstance(outcome, ConfigError):
            for language in LANGUAGES:
                message = outcome.message(language)
                assert outcome.field in message
                assert message.encode()
        else:
            assert outcome.layers


@given(st.text(max_size=60))
def test_any_other_text_is_refused(source):
    assert isinstance(read_or_refuse(source), ConfigError)
