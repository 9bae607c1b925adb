"""Recurrent layers: a state of fixed size per request, whatever the context."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ..explain import Counted, Expression, constant, product, symbol, total
from ..formats import PLAIN, Storage, StorageFormat
from ..parallel import per_rank
from .base import Cache, Growth, size


@dataclass(frozen=True, kw_only=True)
class StateTensor:
    """One tensor of a recurrent layer, of one request on one rank."""

    shape: tuple[Expression, ...]
    recurrent: bool  # or a convolution's columns; the two have dtypes of their own

    def stored_in(self, storage: Storage) -> StorageFormat:
        """The format of this tensor."""
        return storage.recurrent if self.recurrent else storage.convolution

    def bytes(self, storage: Storage) -> Expression:
        """`elements · s`."""
        name = "s_state" if self.recurrent else "s_conv"
        return product(self.shape) * symbol(name, self.stored_in(storage).element_bytes)


@dataclass(frozen=True, kw_only=True)
class State(Cache):
    """The tensors of a recurrent layer; a convolution keeps one column less than its kernel has."""

    growth: ClassVar[Growth] = Growth.CONSTANT

    @abstractmethod
    def tensors(self, tp: int) -> tuple[StateTensor, ...]:
        """The state of one request on one of `tp` ranks, in the order of the engines."""

    def unit_bytes(self, storage: Storage, tp: int) -> Expression:
        """The sum of the tensors."""
        return total(tensor.bytes(storage) for tensor in self.tensors(tp))

    def units(self, context: Counted) -> Counted:
        """One state."""
        return constant(1, context)

    def stored_in(self, storage: Storage) -> StorageFormat:
        """The format of the last tensor: the recurrent state, where there is one."""
        return self.tensors(1)[-1].stored_in(storage)

    def accepts(self, storage: Storage) -> bool:
        """States have no scales."""
        return storage.recurrent in PLAIN and storage.convolution in PLAIN

    def accepts_tp(self, tp: int) -> bool:
        """Heads are shared out evenly; none is copied."""
        return all(heads % tp == 0 for heads in self.split_heads)


def convolution(kernel: int, width: Expression) -> StateTensor:
    """[kernel - 1, width] in the convolution's dtype."""
    return StateTensor(shape=(symbol("k", kernel) - 1, width), recurrent=False)


def recurrent(*shape: Expression) -> StateTensor:
    """A tensor in the dtype of recurrent state."""
    return StateTensor(shape=shape, recurrent=True)


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNet(State):
    """conv [k - 1, 2 * key heads * key dim + value heads * value dim]; state [heads, value, key dim]."""

    kind: ClassVar[str] = "gated_delta_net"
    source: ClassVar[str] = (
        "vLLM 0.22.0 MambaStateShapeCalculator.gated_delta_net_state_shape; SGLang 0.5.13 MambaPool"
    )

    conv_kernel: int = size(1, 256)
    linear_num_key_heads: int = size(1, 1024)
    linear_num_value_heads: int = size(1, 1024)
    linear_key_head_dim: int = size(1, 4096)
    linear_value_head_dim: int = size(1, 4096)

    def tensors(self, tp: int) -> tuple[StateTensor, ...]:
        """One convolution over keys, queries and values; one matrix per value head."""
        key_heads = per_rank("H_k", self.linear_num_key_heads, tp)
        value_heads = per_rank("H_v", self.linear_num_value_heads, tp)
        key, value = symbol("d_k", self.linear_key_head_dim), symbol("d_v", self.linear_value_head_dim)
        return (
            convolution(self.conv_kernel, 2 * key_heads * key + value_heads * value),
            recurrent(value_heads, value, key),
        )

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The key and the value heads."""
        return (self.linear_num_key_heads, self.linear_num_value_heads)


@dataclass(frozen=True, kw_only=True)
class KDA(State):
    """Three conv [k - 1, heads * head_dim]; state [heads, head_dim, head_dim]."""

    kind: ClassVar[str] = "kda"
    source: ClassVar[str] = "vLLM 0.22.0 MambaStateShapeCalculator.kda_state_shape; SGLang 0.5.13 MambaPool"

    conv_kernel: int = size(1, 256)
    linear_num_heads: int = size(1, 1024)
    linear_head_dim: int = size(1, 4096)

    def tensors(self, tp: int) -> tuple[StateTensor, ...]:
        """A convolution each for queries, keys and values; one matrix per head."""
        heads, width = per_rank("H", self.linear_num_heads, tp), symbol("d", self.linear_head_dim)
        return (*(convolution(self.conv_kernel, heads * width),) * 3, recurrent(heads, width, width))

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The heads."""
        return (self.linear_num_heads,)


@dataclass(frozen=True, kw_only=True)
class LinearAttention(State):
    """state [heads, head_dim, head_dim]: lightning attention and its like."""

    kind: ClassVar[str] = "linear_attention"
    source: ClassVar[str] = "vLLM 0.22.0 MambaStateShapeCalculator.linear_attention_state_shape"

    num_heads: int = size(1, 1024)
    head_dim: int = size(1, 4096)

    def tensors(self, tp: int) -> tuple[StateTensor, ...]:
        """One matrix per head."""
        width = symbol("d", self.head_dim)
        return (recurrent(per_rank("H", self.num_heads, tp), width, width),)

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The heads."""
        return (self.num_heads,)


@dataclass(frozen=True, kw_only=True)
class Mamba1(State):
    """conv [k - 1, inner]; state [inner, state_size]."""

    kind: ClassVar[str] = "mamba1"
    source: ClassVar[str] = "vLLM 0.22.0 MambaStateShapeCalculator.mamba1_state_shape"

    conv_kernel: int = size(1, 256)
    intermediate_size: int = size(1, 2**20)
    state_size: int = size(1, 4096)

    def tensors(self, tp: int) -> tuple[StateTensor, ...]:
        """Both over the inner width."""
        inner = per_rank("I", self.intermediate_size, tp)
        return convolution(self.conv_kernel, inner), recurrent(inner, symbol("N", self.state_size))

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The inner width."""
        return (self.intermediate_size,)


@dataclass(frozen=True, kw_only=True)
class Mamba2(State):
    """conv [k - 1, heads * head_dim + 2 * n_groups * state_size]; state [heads, head_dim, state_size]."""

    kind: ClassVar[str] = "mamba2"
    source: ClassVar[str] = (
        "vLLM 0.22.0 MambaStateShapeCalculator.mamba2_state_shape; SGLang 0.5.13 MambaPool"
    )

    conv_kernel: int = size(1, 256)
    mamba_num_heads: int = size(1, 1024)
    mamba_head_dim: int = size(1, 4096)
    state_size: int = size(1, 4096)
    n_groups: int = size(1, 1024)

    def tensors(self, tp: int) -> tuple[StateTensor, ...]:
        """A convolution over the inner width and both group inputs; one matrix per head."""
        heads, width = per_rank("H", self.mamba_num_heads, tp), symbol("d", self.mamba_head_dim)
        # Groups that tp does not divide are copied until each rank has one.
        groups = per_rank("G", self.n_groups if self.n_groups % tp == 0 else tp, tp)
        state = symbol("N", self.state_size)
        return (
            convolution(self.conv_kernel, heads * width + 2 * groups * state),
            recurrent(heads, width, state),
        )

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The heads and the groups."""
        return (self.mamba_num_heads, self.n_groups)

    def accepts_tp(self, tp: int) -> bool:
        """Heads are shared out evenly; groups too, except that a single one is copied (vLLM MambaMixer2)."""
        return self.mamba_num_heads % tp == 0 and (self.n_groups % tp == 0 or self.n_groups == 1)


@dataclass(frozen=True, kw_only=True)
class ShortConvolution(State):
    """conv [k - 1, hidden_size]."""

    kind: ClassVar[str] = "short_convolution"
    source: ClassVar[str] = "vLLM 0.22.0 MambaStateShapeCalculator.short_conv_state_shape"

    conv_kernel: int = size(1, 256)
    hidden_size: int = size(1, 2**20)

    def tensors(self, tp: int) -> tuple[StateTensor, ...]:
        """One convolution."""
        return (convolution(self.conv_kernel, per_rank("I", self.hidden_size, tp)),)

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The width."""
        return (self.hidden_size,)


@dataclass(frozen=True, kw_only=True)
class RGLRU(State):
    """conv [k - 1, lru_width]; state [lru_width]: the recurrent unit of RecurrentGemma."""

    kind: ClassVar[str] = "rg_lru"
    source: ClassVar[str] = "transformers 5.24.0 RecurrentGemmaRglru"

    conv_kernel: int = size(1, 256)
    lru_width: int = size(1, 2**20)

    def tensors(self, tp: int) -> tuple[StateTensor, ...]:
        """Both over the width."""
        width = per_rank("W", self.lru_width, tp)
        return convolution(self.conv_kernel, width), recurrent(width)

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The width."""
        return (self.lru_width,)


@dataclass(frozen=True, kw_only=True)
class RWKV5(State):
    """Two shift vectors [hidden_size], of attention and feed-forward; state [heads, head_dim, head_dim]."""

    kind: ClassVar[str] = "rwkv5"
    source: ClassVar[str] = "the Rwkv5Model of the checkpoints' own code"

    hidden_size: int = size(1, 2**20)
    num_heads: int = size(1, 1024)
    head_dim: int = size(1, 4096)

    def tensors(self, tp: int) -> tuple[StateTensor, ...]:
        """The last token's vectors, and one matrix per head."""
        shift = StateTensor(shape=(per_rank("D", self.hidden_size, tp),), recurrent=False)
        width = symbol("d", self.head_dim)
        return shift, shift, recurrent(per_rank("H", self.num_heads, tp), width, width)

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The width and the heads."""
        return (self.hidden_size, self.num_heads)
