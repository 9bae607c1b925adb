"""Recurrent layers: a state of fixed size per request, whatever the context."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ..explain import Counted, Expression, constant, symbol
from ..formats import Storage
from ..parallel import heads_per_rank
from .base import Cache, Growth, size


@dataclass(frozen=True, kw_only=True)
class State(Cache):
    """A convolution state of conv_kernel - 1 columns and a recurrent state, each in its own dtype."""

    growth: ClassVar[Growth] = Growth.CONSTANT

    conv_kernel: int = size(1, 256)

    @abstractmethod
    def convolution_width(self, tp: int) -> Expression:
        """Elements of one column on one of `tp` ranks."""

    @abstractmethod
    def recurrent_elements(self, tp: int) -> Expression:
        """Elements of the recurrent state on one of `tp` ranks."""

    def unit_bytes(self, storage: Storage, tp: int) -> Expression:
        """`width · (k − 1) · s_conv + recurrent elements · s_state`."""
        columns = symbol("k", self.conv_kernel) - 1
        convolution = (
            self.convolution_width(tp) * columns * symbol("s_conv", storage.convolution.element_bytes)
        )
        return convolution + self.recurrent_elements(tp) * symbol("s_state", storage.recurrent.element_bytes)

    def units(self, context: Counted) -> Counted:
        """One state."""
        return constant(1, context)

    def format_name(self, storage: Storage) -> str:
        """The format of the recurrent state, which is nearly all of it."""
        return storage.recurrent.name

    def accepts_tp(self, tp: int) -> bool:
        """Heads are shared out evenly; none is copied."""
        return all(heads % tp == 0 for heads in self.split_heads)


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNet(State):
    """Of each request, one convolution and one recurrent state.

    conv [conv_kernel - 1, 2 * key heads * key dim + value heads * value dim];
    state [value heads, value dim, key dim].
    """

    kind: ClassVar[str] = "gated_delta_net"
    source: ClassVar[str] = (
        "vLLM 0.22.0 MambaStateShapeCalculator.gated_delta_net_state_shape; SGLang 0.5.13 MambaPool"
    )

    linear_num_key_heads: int = size(1, 1024)
    linear_num_value_heads: int = size(1, 1024)
    linear_key_head_dim: int = size(1, 4096)
    linear_value_head_dim: int = size(1, 4096)

    def convolution_width(self, tp: int) -> Expression:
        """`2 · H_k · d_k + H_v · d_v`."""
        key = heads_per_rank("H_k", self.linear_num_key_heads, tp) * symbol("d_k", self.linear_key_head_dim)
        return 2 * key + self._value_heads(tp) * symbol("d_v", self.linear_value_head_dim)

    def recurrent_elements(self, tp: int) -> Expression:
        """`H_v · d_v · d_k`."""
        value, key = symbol("d_v", self.linear_value_head_dim), symbol("d_k", self.linear_key_head_dim)
        return self._value_heads(tp) * value * key

    def _value_heads(self, tp: int) -> Expression:
        return heads_per_rank("H_v", self.linear_num_value_heads, tp)

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The key and the value heads."""
        return (self.linear_num_key_heads, self.linear_num_value_heads)


@dataclass(frozen=True, kw_only=True)
class Mamba2(State):
    """Of each request, one convolution and one recurrent state.

    conv [conv_kernel - 1, heads * head_dim + 2 * n_groups * state_size]; state [heads, head_dim, state_size].
    """

    kind: ClassVar[str] = "mamba2"
    source: ClassVar[str] = (
        "vLLM 0.22.0 MambaStateShapeCalculator.mamba2_state_shape; SGLang 0.5.13 MambaPool"
    )

    mamba_num_heads: int = size(1, 1024)
    mamba_head_dim: int = size(1, 4096)
    state_size: int = size(1, 4096)
    n_groups: int = size(1, 1024)

    def convolution_width(self, tp: int) -> Expression:
        """`H · d + 2 · G · N`."""
        # Groups that tp does not divide are copied until each rank has one.
        groups = self.n_groups if self.n_groups % tp == 0 else tp
        inner = self._heads(tp) * symbol("d", self.mamba_head_dim)
        return inner + 2 * heads_per_rank("G", groups, tp) * symbol("N", self.state_size)

    def recurrent_elements(self, tp: int) -> Expression:
        """`H · d · N`."""
        return self._heads(tp) * symbol("d", self.mamba_head_dim) * symbol("N", self.state_size)

    def _heads(self, tp: int) -> Expression:
        return heads_per_rank("H", self.mamba_num_heads, tp)

    @property
    def split_heads(self) -> tuple[int, ...]:
        """The heads and the groups."""
        return (self.mamba_num_heads, self.n_groups)

    def accepts_tp(self, tp: int) -> bool:
        """Heads are shared out evenly; groups too, except that a single one is copied (vLLM MambaMixer2)."""
        return self.mamba_num_heads % tp == 0 and (self.n_groups % tp == 0 or self.n_groups == 1)
