"""Single numbers of a plan, replaced: `2.0.head_size=128` is the head size in the first cache of group 2.

Groups are those of the plan before any number is replaced, caches the places in their layers, both from 0.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from .errors import FieldError
from .layer_text import within_bounds
from .model import Layer, ModelPlan, sizes

MOST = 64
TYPED = "typed"  # the origin of a replaced number
FIELD = "overrides"
_ONE = re.compile(r"(\d{1,4})\.(\d)\.([a-z][a-z0-9_]*)=(\d{1,12})", re.ASCII)

Place = tuple[int, int, str]  # group, cache, size


def parse(text: str) -> Mapping[Place, int]:
    """The numbers of `text` by their place.

    Raises:
        FieldError: another form, a place twice, or more than 64 numbers.
    """
    found: dict[Place, int] = {}
    for part in text.split(",") if text else ():
        match = _ONE.fullmatch(part.strip())
        if match is None:
            raise FieldError("error.form", field=FIELD, value=part[:40], form="0.0.head_size=128")
        place = (int(match[1]), int(match[2]), match[3])
        if place in found or len(found) == MOST:
            raise FieldError("error.overrides", field=FIELD, value=part, highest=MOST)
        found[place] = int(match[4])
    return found


def write(numbers: Mapping[Place, int]) -> str:
    """The text of `parse`, in the order of the places."""
    return ",".join(
        f"{group}.{cache}.{size}={value}" for (group, cache, size), value in sorted(numbers.items())
    )


def applied(plan: ModelPlan, numbers: Mapping[Place, int]) -> ModelPlan:
    """`plan` with the numbers in their places, which its provenance then says.

    Raises:
        FieldError: a place that the plan does not have, or a number that its cache kind does not allow.
    """
    layers, groups = list(plan.layers), plan.groups()
    for (group, cache, size), value in numbers.items():
        held = groups[group].caches[cache : cache + 1] if group < len(groups) else ()
        if not held or size not in sizes(held[0]):
            place = f"{group}.{cache}.{size}"
            raise FieldError("error.overrides_place", field=FIELD, value=place, highest=len(groups) - 1)
        for index in groups[group].indices:
            layers[index] = _replaced(layers[index], cache, size, value)
    typed = {f"{group}.{cache}.{size}": TYPED for group, cache, size in numbers}
    return replace(plan, layers=tuple(layers), provenance={**plan.provenance, **typed})


def _replaced(layer: Layer, place: int, size: str, value: int) -> Layer:
    old = layer[place]
    new = within_bounds(old.kind, FIELD, lambda: replace(old, **{size: value}))
    return (*layer[:place], new, *layer[place + 1 :])
