"""What each engine makes of a plan before anything is chosen: vLLM's groups, SGLang's pool, or a refusal."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .engines import sglang, vllm
from .errors import CalculatorError, EngineError, FieldError
from .explain import Expression
from .formats import Storage
from .locales import text
from .model import ModelPlan, ranges
from .serving import VLLM, Serving
from .units import exact, number_json

LONGEST = 2**27  # tokens, in the settings of both engines


@dataclass(frozen=True, kw_only=True)
class Groups:
    """vLLM's answer: groups of layers that share one block table, and the bytes of a block."""

    made: vllm.Allocation

    def as_json(self) -> dict[str, object]:
        """Layer numbers are the model's; a layer with several caches stands in several groups."""
        return {
            "block_bytes": number_json(self.made.bytes_per_block.value),
            "groups": [
                [
                    {
                        "type": spec.type.value,
                        "layers": [self.made.model.layers[number] for number in numbers],
                        "block_size": spec.block_size,
                        "page_bytes": spec.page_size_bytes,
                        "padding_bytes": number_json(self.made.padding_bytes(spec).value),
                    }
                    for spec, numbers in group.members
                ]
                for group in self.made.groups
            ],
        }

    def report(self, language: str) -> Iterator[str]:
        """The sum first, then a line for each kind of page in each group."""
        block = exact(self.made.bytes_per_block.value)
        yield text(language, "view.groups", groups=len(self.made.groups), block=block)
        for place, group in enumerate(self.made.groups, 1):
            for spec, numbers in group.members:
                layers = [self.made.model.layers[number] for number in numbers]
                yield text(
                    language,
                    "view.page",
                    group=place,
                    layers=f"{ranges(layers)} ({len(layers)})",
                    type=spec.type.value,
                    tokens=spec.block_size,
                    page=exact(spec.page_size_bytes),
                    padding=exact(self.made.padding_bytes(spec).value),
                )


@dataclass(frozen=True, kw_only=True)
class Pool:
    """SGLang's answer: the pool that its tokens get, and the one beside it for states."""

    made: sglang.Allocation

    @property
    def _rates(self) -> dict[str, Expression]:
        stage = self.made.tightest
        return {
            "planned_bytes_per_token": stage.planned_bytes_per_token,
            "allocated_bytes_per_token": stage.allocated_bytes_per_token,
        }

    def as_json(self) -> dict[str, object]:
        """`buffers` are the tensors of the pool; states are those of one request."""
        return {
            "pool": self.made.pool,
            "page_size": self.made.page_size,
            **{name: number_json(rate.value) for name, rate in self._rates.items()},
            "state_bytes": number_json(self.made.states.per_request.value) if self.made.states else 0,
            "buffers": [buffer.name for buffer in self.made.tightest.pool.buffers],
        }

    def report(self, language: str) -> Iterator[str]:
        """The pool, its bytes, and what the engine's own plan leaves out."""
        yield text(language, "view.pool", pool=self.made.pool, tokens=self.made.page_size)
        for name, rate in self._rates.items():
            yield f"{text(language, f'figure.{name}')}: {exact(rate.value)} B"
        if self.made.states:
            yield f"{text(language, 'view.state')}: {exact(self.made.states.per_request.value)} B"
        for key, values in self.made.notes:
            yield text(language, key, **values)


@dataclass(frozen=True, kw_only=True)
class EngineView:
    """One engine in one version: its `answer`, or the reason for which it refuses the plan."""

    engine: str
    version: str
    answer: Groups | Pool | CalculatorError

    def as_json(self) -> dict[str, object]:
        """Bytes are those of one rank; `refused` is the reason, or null."""
        head: dict[str, object] = {"engine": self.engine, "version": self.version, "refused": None}
        if isinstance(self.answer, CalculatorError):
            return head | {"refused": {"key": self.answer.key, "reason": str(self.answer)}}
        return head | self.answer.as_json()

    def report(self, language: str) -> Iterator[str]:
        """The same as lines of text."""
        title = f"{text(language, f'option.engine.{self.engine}')} {self.version}"
        if isinstance(self.answer, CalculatorError):
            yield text(language, "view.refused", engine=title, reason=self.answer.message(language))
            return
        first, *more = self.answer.report(language)
        yield f"{title}: {first}"
        yield from (f"  {line}" for line in more)


def engine_views(plan: ModelPlan, storage: Storage, servings: Iterable[Serving]) -> Iterator[EngineView]:
    """What the engine of each of `servings` makes of the plan on one rank."""
    for serving in servings:
        version = serving.version
        if version is not None:
            answer = _answer(plan, storage, serving, version)
            yield EngineView(engine=serving.engine, version=version, answer=answer)


def _answer(
    plan: ModelPlan, storage: Storage, serving: Serving, version: str
) -> Groups | Pool | CalculatorError:
    context = min(plan.context_hint or LONGEST, LONGEST)
    try:
        if serving.engine == VLLM:
            settings = vllm.Settings(max_model_len=context)
            return Groups(made=vllm.allocate(plan, storage, settings, version))
        memory, page = serving.available_memory_bytes, sglang.default_page_size(plan, storage)
        chosen = sglang.Settings(available_memory_bytes=memory, context_length=context, page_size=page)
        return Pool(made=sglang.allocate(plan, storage, chosen, version))
    except (EngineError, FieldError) as refusal:
        return refusal
