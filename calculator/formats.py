"""Storage formats: how the elements of a cache row become bytes.

A cache kind says which vectors one token stores (a `Row`); a format says what they weigh. No class per pair.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .explain import Expression, symbol, total


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one token leaves in one layer on one rank: for each of `heads` heads, one vector per name.

    `heads` is None for a latent, which all query heads share.
    """

    heads: Expression | None = None
    vectors: Mapping[str, Expression]

    def per_head(self, weights: list[Expression]) -> Expression:
        """The sum of `weights`, one per vector, over all heads."""
        return total(weights) if self.heads is None else self.heads * total(weights)

    @property
    def elements(self) -> Expression:
        """Stored elements, by name of their widths: `H · (d + d_v)`, `R + D_r`."""
        return self.per_head(list(self.vectors.values()))


@dataclass(frozen=True, kw_only=True)
class StorageFormat:
    """Every element takes `element_bytes`; nothing else is stored."""

    name: str  # its words are under format.<name> in the catalogues
    element_bytes: int

    def row_bytes(self, row: Row) -> Expression:
        """Bytes of one row, without block rounding or padding."""
        return row.elements * symbol("s", self.element_bytes)


@dataclass(frozen=True, kw_only=True)
class GroupScaled(StorageFormat):
    """Elements with one scale of `scale_bytes` for each full group of `scale_group` of them in a vector."""

    scale_bytes: int
    scale_group: int

    def row_bytes(self, row: Row) -> Expression:
        """Elements and scales of one row."""
        return row.per_head(
            [
                width * self.element_bytes + width // self.scale_group * self.scale_bytes
                for width in row.vectors.values()
            ]
        )


FP32 = StorageFormat(name="fp32", element_bytes=4)
BF16 = StorageFormat(name="bf16", element_bytes=2)
FP16 = StorageFormat(name="fp16", element_bytes=2)
FP8 = StorageFormat(name="fp8", element_bytes=1)
# An index key is FP8 with a float32 scale per 128 elements, whatever the KV dtype: 128 -> 132 bytes.
# vLLM 0.22.0 DeepseekV32IndexerCache; SGLang 0.5.13 DSATokenToKVPool.
FP8_INDEX = GroupScaled(name="fp8_index", element_bytes=1, scale_bytes=4, scale_group=128)

FORMATS: Mapping[str, StorageFormat] = {
    storage.name: storage for storage in (FP32, BF16, FP16, FP8, FP8_INDEX)
}
KV_FORMATS = ("bf16", "fp16", "fp32", "fp8")  # what a user may choose for K, V and latents
STATE_FORMATS = ("fp32", "bf16", "fp16")  # what a user may choose for recurrent state


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The formats of a scenario: of keys, values and latents; of recurrent state; of convolution state."""

    kv: StorageFormat = BF16
    recurrent: StorageFormat = FP32
    convolution: StorageFormat = BF16
