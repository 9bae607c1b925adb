"""What the page holds: the last good answer, and what was typed but could not be taken."""

from collections.abc import Mapping
from typing import Any

import param

from ..errors import CalculatorError, FieldError, LimitError
from ..estimate import Compared, Estimate, comparison, estimate
from ..locales import LANGUAGES
from ..scenario import FIELDS, Scenario, open_address, parse

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

    @property
    def scenario(self) -> Scenario:
        return self.answer.scenario

    def start(self, query: str, system: Mapping[str, str]) -> None:
        """Open an address. `system` has the language and theme of the browser, for those left at auto."""
        opened = open_address(query)
        problems: dict[str, CalculatorError] = {error.field: error for error in opened.problems}
        try:
            answer = estimate(opened.scenario)
        except LimitError as error:
            answer = estimate(Scenario(model=opened.scenario.model).changed({"model": opened.scenario.model}))
            problems["context_tokens"] = error
        self.param.update(
            answer=answer,
            typed={error.field: str(error.value) for error in opened.problems},
            problems=problems,
            unknown=list(opened.unknown),
            **_shown(answer.scenario, system),
        )

    def change(self, given: Mapping[str, str], system: Mapping[str, str]) -> None:
        """Take what was typed, by field. What cannot be taken stays typed, with its problem beside it."""
        typed = {name: text for name, text in self.typed.items() if _SAME.get(name) not in given}
        if "model" in given:
            typed = {name: text for name, text in typed.items() if name in FIELDS and not FIELDS[name].of_shape}
        typed |= given
        answer, problems = self._tried(typed, last=next(reversed(given), "context_tokens"))
        visible = {name: text for name, text in typed.items() if name not in hidden(answer.scenario)}
        if answer is not self.answer:
            visible = {name: text for name, text in visible.items() if name in problems}
        self.param.update(
            answer=answer,
            typed=visible,
            problems={name: error for name, error in problems.items() if name not in hidden(answer.scenario)},
            **_shown(answer.scenario, system),
        )

    def _tried(self, typed: Mapping[str, str], last: str) -> tuple[Estimate, dict[str, CalculatorError]]:
        """The answer with all legal texts, or the present one where they do not go together."""
        problems: dict[str, CalculatorError] = {}
        legal: dict[str, Any] = {}
        for name, text in typed.items():
            try:
                legal[name] = parse(name, text)
            except FieldError as error:
                problems[name] = error
        try:
            return estimate(self.scenario.changed(legal)), problems
        except FieldError as error:
            problems[error.field] = error
        except LimitError as error:
            problems[last] = error
        return self.answer, problems


def _shown(scenario: Scenario, system: Mapping[str, str]) -> dict[str, Any]:
    """The parts of a scenario that some views follow alone; auto is what the browser prefers."""
    return {
        "compared": comparison(scenario),
        "units": scenario.units,
        "language": system["language"] if scenario.language == "auto" else scenario.language,
        "theme": system["theme"] if scenario.theme == "auto" else scenario.theme,
    }


def hidden(scenario: Scenario) -> frozenset[str]:
    """The fields that the model does not use: their controls are gone."""
    shape = scenario.shape
    used = shape.used() if shape else frozenset()
    unused = {name for name, item in FIELDS.items() if item.of_shape and name not in used}
    if "kv_lora_rank" in unused:
        unused.add("latent_width")
    if "state_kind" in unused:
        unused.add("state_dtype")
    return frozenset(unused)
