"""The controls: which fields are sliders, over which values, in which group, and what they show."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from .. import catalogue
from ..fields import FIELDS, Choice
from ..locales import text
from ..scenario import Scenario
from ..serving import NEWEST, VERSIONS
from ..units import human, parse_bytes
from .state import State, hidden


@dataclass(frozen=True, kw_only=True, eq=False)
class Control:
    """A field as the page offers it.

    `stops` are the values under the slider's positions; without stops the control is a plain list of options.
    The box beside a slider takes every legal value, also those between and beyond the stops.
    """

    field: str
    stops: tuple[int | str, ...] = ()
    unit: str = ""  # key of the word that a screen reader says after the number

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a choice; none for a number."""
        rule = FIELDS[self.field].rule if self.field in FIELDS else None
        return rule.options if isinstance(rule, Choice) else ()


def _slider(field: str, stops: "range | tuple[int | str, ...]", unit: str = "") -> Control:
    return Control(field=field, stops=tuple(stops), unit=unit)


HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 384, 512)
WINDOWS = tuple(2**power for power in range(7, 18))
CONTEXTS = tuple(sorted({*(2**power for power in range(10, 21)), 100_000, 200_000}))
MEMORIES = (8, 16, 24, 32, 40, 48, 60, 80, 128, 160)  # GiB
DOUBLINGS = tuple(2**power for power in range(11))

GROUPS: Mapping[str, tuple[Control, ...]] = {
    "model": (Control(field="model"), Control(field="architecture")),
    "shape": (
        _slider("num_layers", range(1, 129), "unit.layers"),
        _slider("kv_lora_rank", range(64, 2049, 64), "unit.elements"),
        _slider("qk_rope_head_dim", range(0, 257, 16), "unit.elements"),
        Control(field="latent_width", unit="unit.elements"),
        _slider("index_head_dim", (0, 32, 64, 128, 256), "unit.elements"),
        _slider("num_global_layers", range(129), "unit.layers"),
        Control(field="interleave"),
        Control(field="window_kind"),
        _slider("sliding_window", WINDOWS, "unit.tokens"),
        _slider("num_kv_heads", range(1, 129), "unit.heads"),
        _slider("head_size", HEAD_SIZES, "unit.elements"),
        _slider("head_size_v", HEAD_SIZES, "unit.elements"),
        Control(field="state_kind"),
        _slider("linear_num_key_heads", range(1, 129), "unit.heads"),
        _slider("linear_num_value_heads", range(1, 129), "unit.heads"),
        _slider("linear_key_head_dim", HEAD_SIZES, "unit.elements"),
        _slider("linear_value_head_dim", HEAD_SIZES, "unit.elements"),
        _slider("mamba_num_heads", range(1, 257), "unit.heads"),
        _slider("mamba_head_dim", HEAD_SIZES, "unit.elements"),
        _slider("state_size", (16, 32, 64, 128, 256), "unit.elements"),
        _slider("n_groups", (1, 2, 4, 8, 16), "unit.groups"),
        _slider("conv_kernel", range(1, 9), "unit.tokens"),
    ),
    "deployment": (
        Control(field="engine"),
        Control(field="engine_version"),
        _slider("tensor_parallel_size", (1, 2, 4, 8, 16, 32), "unit.ranks"),
        _slider("pipeline_parallel_size", (1, 2, 4, 8), "unit.ranks"),
        _slider("decode_context_parallel_size", (1, 2, 4, 8), "unit.ranks"),
        _slider("data_parallel_size", (1, 2, 4, 8), "unit.ranks"),
        _slider("kv_cache_dtype", ("fp8", "bf16", "fp16", "fp32")),
        _slider("state_dtype", ("bf16", "fp16", "fp32")),
    ),
    "request": (
        _slider("context_tokens", CONTEXTS, "unit.tokens"),
        _slider("num_sequences", DOUBLINGS, "unit.sequences"),
        Control(field="max_model_len", unit="unit.tokens"),
    ),
    "memory": (
        _slider("available_memory_bytes", tuple(2**30 * size for size in MEMORIES)),
        Control(field="block_size", unit="unit.tokens"),
        Control(field="page_size", unit="unit.tokens"),
        _slider("max_num_batched_tokens", tuple(2**power for power in range(9, 16)), "unit.tokens"),
        Control(field="enable_prefix_caching"),
        Control(field="mamba_cache_mode"),
        Control(field="swa_full_tokens_ratio"),
        Control(field="dsa_backend"),
        Control(field="hisparse_host_to_device_ratio"),
    ),
    "compare": (_slider("compare_tokens", CONTEXTS, "unit.tokens"),),
    "view": (
        Control(field="units"),
        Control(field="axes"),
        Control(field="growth"),
        Control(field="language"),
        Control(field="theme"),
    ),
}


def controls() -> Iterator[Control]:
    """All controls, in the order of the page."""
    for group in GROUPS.values():
        yield from group


def option_text(language: str, field: str, option: str) -> str:
    """The words of one option; model names are not translated."""
    if field == "model":
        return catalogue.entry(option).name
    return text(language, f"option.{field}.{option}")


def form(state: State) -> dict[str, dict[str, object]]:
    """What each control shows now: text, slider position, whether it is there, what is wrong with it."""
    scenario, typed, problems = state.scenario, state.typed, state.problems
    gone = hidden(scenario)
    return {
        field: {
            "text": typed[field] if field in typed else _text(state, field, value),
            "position": _position(control, value),
            "most": _most(scenario, control),
            "hidden": field in gone,
            "message": problems[field].message(state.language) if field in problems else "",
            "options": _options(scenario, field),
        }
        for control in controls()
        for field, value in [(control.field, _value(scenario, control.field))]
    }


def _options(scenario: Scenario, field: str) -> list[str] | None:
    """The options that there are now, where not always all: an engine has only its own versions."""
    if field == "engine_version":
        return [NEWEST, *VERSIONS[scenario.serving.engine]]
    return None


def _value(scenario: Scenario, field: str) -> int | str | None:
    if field == "latent_width":
        return scenario.shape.latent_width if scenario.shape else None
    value: int | str | None = scenario.value(field)
    return value


def _text(state: State, field: str, value: int | str | None) -> str:
    if field == "available_memory_bytes":
        short = human(int(value or 0))
        return short if parse_bytes(short) == value else f"{value:,} B"
    if field == "model" and (state.scenario.customised or state.scenario.own):
        return state.model_name
    return f"{value:,}" if isinstance(value, int) else str("" if value is None else value)


@lru_cache(1024)  # most controls stand still
def _position(control: Control, value: int | str | None) -> int:
    """The slider position nearest to `value`."""
    if isinstance(value, int) and control.stops:
        return min(range(len(control.stops)), key=lambda at: abs(int(control.stops[at]) - value))
    return control.stops.index(value) if value in control.stops else 0


def _most(scenario: Scenario, control: Control) -> int:
    """The last slider position: a hybrid cannot have more full-attention layers than layers."""
    if control.field == "num_global_layers" and scenario.shape:
        return min(len(control.stops) - 1, scenario.shape.num_layers)
    return max(len(control.stops) - 1, 0)
