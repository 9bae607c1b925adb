"""Recurrent state: its shape on one rank, and its part of the memory.

Source: SGLang 0.5.13 `configs/mamba_utils.py`, `model_executor/model_runner_kv_cache_mixin.py`.
"""

from dataclasses import dataclass

from ...caches import KDA, GatedDeltaNet, LinearAttention, Mamba1, Mamba2, ShortConvolution, State
from ...errors import EngineError, FieldError
from ...explain import Expression, double, least, product, symbol, total, whole
from ...formats import Storage, StorageFormat
from .rules import Rules

GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class StateShape:
    """The tensors of one layer: convolutions of [width, k - 1] (KDA: [k - 1, width]), one recurrent state."""

    convolutions: tuple[tuple[Expression, ...], ...]
    recurrent: tuple[Expression, ...]
    convolution_format: StorageFormat
    recurrent_format: StorageFormat

    @property
    def kernel(self) -> int:
        """k: a convolution keeps k - 1 columns, its narrower dimension."""
        return 1 + min(int(size.value) for dims in self.convolutions for size in dims)

    @property
    def layer_bytes(self) -> Expression:
        """Bytes of one request in one layer."""
        convolutions = [
            product(dims) * symbol("s_conv", self.convolution_format.element_bytes)
            for dims in self.convolutions
        ]
        recurrent = [product(self.recurrent) * symbol("s_state", self.recurrent_format.element_bytes)]
        return total(convolutions + (recurrent if self.recurrent else []))


def mamba2_shape(
    storage: Storage,
    tp: int,
    *,
    intermediate_size: int,
    n_groups: int,
    num_heads: int,
    head_dim: int,
    state_size: int,
    conv_kernel: int,
) -> StateShape:
    """Mamba2StateShape.create, which most recurrent layers go through.

    Groups that `tp` does not divide are copied until there is one on each rank.

    Raises:
        EngineError: a width or head count that `tp` does not divide.
    """
    groups = n_groups if n_groups % tp == 0 else tp
    width = symbol("I", intermediate_size) + 2 * symbol("G", groups) * symbol("N", state_size)
    convolution = (_shared(width, tp), symbol("k", conv_kernel) - 1)
    heads = _shared(symbol("H", num_heads), tp)
    return StateShape(
        convolutions=(convolution,),
        recurrent=(heads, symbol("d", head_dim), symbol("N", state_size)),
        convolution_format=storage.convolution,
        recurrent_format=storage.recurrent,
    )


def kda_shape(
    storage: Storage,
    tp: int,
    *,
    num_heads: int,
    head_dim: int,
    num_k_heads: int | None = None,
    head_k_dim: int | None = None,
    conv_kernel: int = 4,
) -> StateShape:
    """KimiLinearStateShape.create: queries, keys and values share one convolution tensor.

    Raises:
        EngineError: a width or head count that `tp` does not divide.
    """
    values = symbol("H", num_heads) * symbol("d", head_dim)
    keys = symbol("H_k", num_k_heads or num_heads) * symbol("d_k", head_k_dim or head_dim)
    width = _shared(values, tp) + 2 * _shared(keys, tp)
    head = symbol("d", head_dim)
    return StateShape(
        convolutions=((symbol("k", conv_kernel) - 1, width),),
        recurrent=(_shared(symbol("H", num_heads), tp), head, head),
        convolution_format=storage.convolution,
        recurrent_format=storage.recurrent,
    )


def state_shape(cache: State, storage: Storage, tp: int) -> StateShape:
    """The state of a recurrent layer in the engine's order.

    Raises:
        EngineError: a kind that SGLang has no state pool for, or heads that `tp` does not divide.
    """
    match cache:
        case GatedDeltaNet():
            return mamba2_shape(
                storage,
                tp,
                intermediate_size=cache.linear_num_value_heads * cache.linear_value_head_dim,
                n_groups=cache.linear_num_key_heads,
                num_heads=cache.linear_num_value_heads,
                head_dim=cache.linear_value_head_dim,
                state_size=cache.linear_key_head_dim,
                conv_kernel=cache.conv_kernel,
            )
        case Mamba2():
            return mamba2_shape(
                storage,
                tp,
                intermediate_size=cache.mamba_num_heads * cache.mamba_head_dim,
                n_groups=cache.n_groups,
                num_heads=cache.mamba_num_heads,
                head_dim=cache.mamba_head_dim,
                state_size=cache.state_size,
                conv_kernel=cache.conv_kernel,
            )
        case KDA():
            return kda_shape(
                storage,
                tp,
                num_heads=cache.linear_num_heads,
                head_dim=cache.linear_head_dim,
                conv_kernel=cache.conv_kernel,
            )
        case Mamba1():
            inner = _shared(symbol("I", cache.intermediate_size), tp)
            columns = symbol("k", cache.conv_kernel) - 1
            return _shape(storage, ((inner, columns),), (inner, symbol("N", cache.state_size)))
        case ShortConvolution():
            width = _shared(symbol("I", cache.hidden_size), tp)
            return _shape(storage, ((width, symbol("k", cache.conv_kernel) - 1),), ())
        case LinearAttention():
            head = symbol("d", cache.head_dim)
            return _shape(storage, (), (_shared(symbol("H", cache.num_heads), tp), head, head))
    raise EngineError("sglang.kind", kind=cache.kind)


def _shape(
    storage: Storage, convolutions: tuple[tuple[Expression, ...], ...], recurrent: tuple[Expression, ...]
) -> StateShape:
    return StateShape(
        convolutions=convolutions,
        recurrent=recurrent,
        convolution_format=storage.convolution,
        recurrent_format=storage.recurrent,
    )


def _shared(count: Expression, tp: int) -> Expression:
    if int(count.value) % tp:
        raise EngineError("sglang.divide", value=int(count.value), tp=tp)
    return count if tp == 1 else count // symbol("tp", tp)


@dataclass(frozen=True, kw_only=True)
class StateOptions:
    """What decides about state slots, per data-parallel worker where a size is one.

    `extra_buffer` keeps snapshots in slots of their own, two of them with the overlapping scheduler.
    """

    memory_ratio: float | None = None  # None: the version's own
    max_mamba_cache_size: int | None = None
    max_running_requests: int | None = None
    radix_cache: bool = True
    extra_buffer: bool = False
    overlap_schedule: bool = True
    draft_tokens: int = 0
    lazy_extra_buffer: bool = False


def slots_per_request(options: StateOptions, rules: Rules) -> int:
    """State slots that one running request takes."""
    if not options.radix_cache:
        return 1
    both = options.overlap_schedule and not options.lazy_extra_buffer
    extra = (2 if both else 1) if options.extra_buffer else 0
    return rules.slots_per_request + extra


@dataclass(frozen=True, kw_only=True)
class StateSplit:
    """The memory of one rank: `slots` states of `per_request` bytes, the rest for tokens."""

    per_request: Expression
    slots: Expression
    token_bytes: Expression
    slots_per_request: int


def divide(rest_bytes: int, per_request: Expression, options: StateOptions, rules: Rules) -> StateSplit:
    """Slots first, tokens get what is left; in GiB as doubles, in the engine's order.

    Source: handle_max_mamba_cache.

    Raises:
        FieldError: a drafter without a request limit.
        EngineError: no memory for a single slot.
    """
    gib = symbol("GiB", GIB)
    rest = double(symbol("rest", rest_bytes) / gib)
    bytes_each = symbol("b", per_request)
    share = slots_per_request(options, rules)
    drafts = options.draft_tokens
    if drafts and options.max_running_requests is None:
        raise FieldError(
            "error.range", field="max_running_requests", value=None, lowest=1, highest=rules.most_requests
        )
    spare = 1 if rules.spare_state_slot else 0
    if options.max_mamba_cache_size is not None:
        slots = symbol("max_mamba_cache_size", options.max_mamba_cache_size)
    elif not options.radix_cache and options.max_running_requests is not None:
        slots = symbol("max_running_requests", options.max_running_requests)
    else:
        ratio = symbol("ratio", options.memory_ratio or rules.mamba_full_memory_ratio)
        budget = rest * ratio / (1 + ratio) * gib
        if spare:
            budget = budget - bytes_each * (1 + drafts)
        each = bytes_each * double(1 + symbol("D", drafts) / symbol("r", share)) if drafts else bytes_each
        slots = budget // each
    if slots.value <= 0:
        raise EngineError("sglang.state_memory", per_request=int(per_request.value), value=rest_bytes)
    if drafts:
        copies = least(symbol("max_running_requests", options.max_running_requests or 0), slots // share)
        if spare:
            copies = copies + spare
        rest = rest - double(bytes_each * copies * symbol("D", drafts) / gib)
    count = symbol("slots", slots) + spare if spare else symbol("slots", slots)
    return StateSplit(
        per_request=per_request,
        slots=slots,
        token_bytes=whole((rest - double(count * bytes_each / gib)) * gib),
        slots_per_request=share,
    )
