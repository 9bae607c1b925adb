"""What the page holds: the last good answer, and what was typed but could not be taken."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import param

from .. import caches, catalogue
from ..comparison import Compared, comparison
from ..errors import CalculatorError, FieldError, LimitError
from ..estimate import Estimate, estimate
from ..fields import FIELDS, parse
from ..footprint import Parts
from ..locales import LANGUAGES, text
from ..scenario import MODEL_FIELDS, Scenario, open_address

# What a model of one's own is made of: not controls, but a tab of its own.
OWN_FIELDS = (*MODEL_FIELDS[1:], "own_name")
NOT_CONTROLS = (*OWN_FIELDS, "compared", "pins")
# Two ways to say one number: what was typed in one makes what was typed in the other obsolete.
_SAME = {"latent_width": "kv_lora_rank", "kv_lora_rank": "latent_width"}


class State(param.Parameterized):
    """The views watch these; only `start` and `change` set them."""

    answer: Estimate = param.ClassSelector(class_=Estimate)
    compared: list[Compared] = param.List(item_type=Compared, doc="The bars.")
    units: str = param.String(default="GiB")
    language: str = param.Selector(default="en", objects=list(LANGUAGES))
    theme: str = param.Selector(default="light", objects=["light", "dark"])
    typed: dict[str, str] = param.Dict(default={}, doc="Text by field that is not in `answer`.")
    problems: dict[str, CalculatorError] = param.Dict(default={}, doc="What is wrong, by field.")
    unknown: list[str] = param.List(item_type=str, doc="Address keys that were ignored.")
    unplaced: list[FieldError] = param.List(item_type=FieldError, doc="Of the address, without a control.")

    @property
    def scenario(self) -> Scenario:
        """What the answer answers."""
        return self.answer.scenario

    @property
    def model_name(self) -> str:
        """The model's name, or "custom, from" it."""
        name = self.scenario.own_name
        if not self.scenario.own:
            name = catalogue.entry(self.scenario.model).name
        elif not name:
            name = text(self.language, "model.imported" if self.scenario.config else "model.described")
        return text(self.language, "model.custom", name=name) if self.scenario.customised else name

    def curve(self, contexts: list[int]) -> list[Parts]:
        """What the curves show at `contexts`: the most that may be taken, or what is held."""
        held = self.scenario.growth == "held"
        return self.answer.held_curve(contexts) if held else self.answer.curve(contexts)

    def compared_name(self, one: Compared) -> str:
        """The name of a compared model."""
        return one.name or self.model_name

    def start(self, query: str, system: Mapping[str, str]) -> None:
        """Open an address. `system` has the language and theme of the browser, for those left at auto."""
        opened = open_address(query)
        problems: dict[str, CalculatorError] = {error.field: error for error in opened.problems}
        typed = {error.field: str(error.value) for error in opened.problems}
        try:
            answer = estimate(opened.scenario)
        except (FieldError, LimitError):  # a format that the model cannot be kept in, or too many bytes
            values = {name: opened.scenario.value(name) for name in FIELDS}
            plain = Scenario().changed({name: values[name] for name in MODEL_FIELDS})
            chosen = {name: str(value) for name, value in values.items() if value != plain.value(name)}
            answer, beyond = _tried(estimate(plain), chosen)
            typed = {name: chosen[name] for name in beyond} | typed
            problems = beyond | problems
        without_control = {name for name in problems if name not in FIELDS} | hidden(answer.scenario)
        without_control |= {"tab", *NOT_CONTROLS}
        self.param.update(
            answer=answer,
            typed={name: text for name, text in typed.items() if name not in without_control},
            problems={name: error for name, error in problems.items() if name not in without_control},
            unknown=list(opened.unknown),
            unplaced=[error for error in opened.problems if error.field in without_control],
            **self._shown(answer.scenario, system),
        )

    def change(self, given: Mapping[str, str], system: Mapping[str, str]) -> None:
        """Take what was typed, by field, oldest first. What cannot be taken stays typed, with its problem."""
        typed = dict(self.typed)
        problems = dict(self.problems)
        for name, entry in given.items():
            if name in MODEL_FIELDS and (name != "model" or entry in catalogue.ids()):
                # A model brings its own shape, and nobody waits for what was wrong with another.
                typed = {
                    other: typed[other] for other in typed if other in FIELDS and not FIELDS[other].of_shape
                }
                problems = {other: problems[other] for other in problems if other not in OWN_FIELDS}
            for obsolete in (name, _SAME.get(name, name)):
                typed.pop(obsolete, None)
            typed[name] = entry
        answer, wrong = _tried(self.answer, typed)
        # A refused configuration is not read again at every move of a slider: its refusal alone stays.
        wrong |= {name: problems[name] for name in OWN_FIELDS if name in problems}
        problems = {name: error for name, error in wrong.items() if name not in hidden(answer.scenario)}
        self.param.update(
            answer=answer,
            typed={name: typed[name] for name in problems if name not in NOT_CONTROLS},
            problems=problems,
            **self._shown(answer.scenario, system),
        )

    def _shown(self, scenario: Scenario, system: Mapping[str, str]) -> dict[str, Any]:
        """The parts of a scenario that some views follow alone; auto is what the browser prefers."""
        compared = comparison(scenario)
        return {
            # Param takes any list of bars for new ones; those that are there need not be drawn again.
            **({} if compared == self.compared else {"compared": compared}),
            "units": scenario.units,
            "language": system["language"] if scenario.language == "auto" else scenario.language,
            "theme": system["theme"] if scenario.theme == "auto" else scenario.theme,
        }


def _tried(present: Estimate, typed: Mapping[str, str]) -> tuple[Estimate, dict[str, CalculatorError]]:
    """`present` with all texts that can be taken together, and what is wrong with each of the others."""
    problems: dict[str, CalculatorError] = {}
    left: dict[str, Any] = {}
    for name, entry in typed.items():
        try:
            left[name] = parse(name, entry)
        except FieldError as error:
            problems[name] = error
    with suppress(FieldError, LimitError):
        return _changed(present, left), problems
    # Legal one by one, but not all together: one that does not fit must not hold up the others.
    before = -1
    while before != len(left):  # what was taken may make room for what was refused
        before = len(left)
        refused: dict[str, CalculatorError] = {}
        for name, given in list(left.items()):
            try:
                present = _changed(present, {name: given})
            except (FieldError, LimitError) as error:
                refused[name] = error
            else:
                left.pop(name)
    return present, problems | refused


def _changed(present: Estimate, values: Mapping[str, object]) -> Estimate:
    """The estimate with `values`. A number that nobody sees yet follows: it could not be corrected."""
    try:
        return estimate(present.scenario.changed(values))
    except FieldError as error:
        match error.value, error.values.get("lowest"), error.values.get("highest"):
            case int(number), int(lowest), int(highest) if (
                error.field not in values and error.field in hidden(present.scenario)
            ):
                nearest = min(max(number, lowest), highest)
                return estimate(present.scenario.changed({**values, error.field: nearest}))
        raise


def hidden(scenario: Scenario) -> frozenset[str]:
    """The fields that the model or the engine does not use: their controls are gone."""
    shape = scenario.shape
    used = {*(shape.used() if shape else ()), "engine", *scenario.serving.used()}
    parts = (name for name, item in FIELDS.items() if item.of_shape or item.of_serving)
    unused = {name for name in parts if name not in used}
    if "kv_lora_rank" in unused:
        unused.add("latent_width")
    if not _has_states(scenario):
        unused.add("state_dtype")
    return frozenset(unused)


def _has_states(scenario: Scenario) -> bool:
    if scenario.shape:
        return "state_kind" in scenario.shape.used()
    return any(isinstance(held, caches.State) for held in scenario.plan().caches())
