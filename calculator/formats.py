"""Storage formats: how the elements of a cache row become bytes.

A cache kind says which vectors one token stores (a `Row`); a format says what they weigh. No class per pair.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from .explain import Expression, ceiling, lift, round_up, symbol, total


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one token leaves in one layer on one rank: for each of `heads` heads, one vector per name.

    The names are `key` and `value`, `latent` and `rope`, or of a single vector. `heads` is None for a latent,
    which all query heads share.
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

    def accepts(self, row: Row) -> bool:  # noqa: ARG002 - for the formats that look at it
        """Whether a row of these vectors can be written in this format."""
        return True

    def row_bytes(self, row: Row) -> Expression:
        """Bytes of one row, without block rounding or padding."""
        return row.elements * symbol("s", self.element_bytes)


@dataclass(frozen=True, kw_only=True)
class GroupScaled(StorageFormat):
    """Elements with one scale of `scale_bytes` for each full group of `scale_group` of them in a vector."""

    scale_bytes: int
    scale_group: int
    per_byte: int = 1  # elements in a byte

    def row_bytes(self, row: Row) -> Expression:
        """Elements and scales of one row."""
        return row.per_head([self.vector_bytes(width) for width in row.vectors.values()])

    def vector_bytes(self, width: Expression) -> Expression:
        """`width · s + ⌊width / group⌋ · scale`."""
        elements = width * self.element_bytes if self.per_byte == 1 else width // self.per_byte
        return elements + width // self.scale_group * self.scale_bytes


@dataclass(frozen=True, kw_only=True)
class PackedLatent(GroupScaled):
    """A latent in FP8 with scales, its rope key in BF16, then `pad_bytes`: 656 bytes, or 584 for V4."""

    pad_bytes: int = 0

    def accepts(self, row: Row) -> bool:
        """Only latents with a rope key."""
        return set(row.vectors) == {"latent", "rope"}

    def row_bytes(self, row: Row) -> Expression:
        """`R + ⌊R / group⌋ · scale + 2 · D_r + pad`."""
        packed = self.vector_bytes(row.vectors["latent"]) + row.vectors["rope"] * 2
        return packed + self.pad_bytes if self.pad_bytes else packed


@dataclass(frozen=True, kw_only=True)
class HeadScaled(StorageFormat):
    """Elements with one scale of `scale_bytes` for every vector of every head; a latent has two."""

    scale_bytes: int
    per_byte: int = 1  # elements in a byte

    def accepts(self, row: Row) -> bool:
        """Rows with heads, or a latent with its rope key."""
        return row.heads is not None or set(row.vectors) == {"latent", "rope"}

    def row_bytes(self, row: Row) -> Expression:
        """`H · ((d · s + scale) + (d_v · s + scale))`; of a latent `(R + D_r) · s + 2 · scale`."""
        if row.heads is None:
            return self.vector_bytes(row.elements) + 2 * lift(self.scale_bytes)
        return row.per_head([self.vector_bytes(width) + self.scale_bytes for width in row.vectors.values()])

    def vector_bytes(self, width: Expression) -> Expression:
        """`width · s`, or two elements in a byte."""
        return width * self.element_bytes if self.per_byte == 1 else width // self.per_byte


@dataclass(frozen=True, kw_only=True)
class HalfByte(StorageFormat):
    """Two elements in a byte and a one-byte scale for every 16: vLLM's NVFP4, vector by vector."""

    element_bytes: int = 1  # the type that the engine reports

    def accepts(self, row: Row) -> bool:
        """Only rows with heads."""
        return row.heads is not None

    def row_bytes(self, row: Row) -> Expression:
        """`H · (⌊d / 2⌋ + ⌊d / 16⌋ + ⌊d_v / 2⌋ + ⌊d_v / 16⌋)`."""
        return row.per_head([width // 2 + width // 16 for width in row.vectors.values()])


@dataclass(frozen=True, kw_only=True)
class HalfLatent(StorageFormat):
    """A latent of two elements in a byte with a one-byte scale for every 16, its rope key in FP8."""

    element_bytes: int = 1  # the type that the engine reports

    def accepts(self, row: Row) -> bool:
        """Only latents with a rope key."""
        return set(row.vectors) == {"latent", "rope"}

    def row_bytes(self, row: Row) -> Expression:
        """`⌊R / 2⌋ + ⌊R / 16⌋ + D_r`."""
        latent = row.vectors["latent"]
        return latent // 2 + latent // 16 + row.vectors["rope"]


@dataclass(frozen=True, kw_only=True)
class HalfByteRow(StorageFormat):
    """Two elements in a byte and a one-byte scale for every 16 of all heads' K, V or latent: SGLang's FP4."""

    element_bytes: int = 1  # the type that the engine reports

    def row_bytes(self, row: Row) -> Expression:
        """`H · ⌊d / 2⌋ + ⌊H · d / 16⌋` for K, so for V; of a latent `⌊(R + D_r) / 2⌋ + ⌊(R + D_r) / 16⌋`."""
        if row.heads is None:
            return row.elements // 2 + row.elements // 16
        return total(row.heads * (width // 2) + row.heads * width // 16 for width in row.vectors.values())


@dataclass(frozen=True, kw_only=True)
class TurboQuant(StorageFormat):
    """K in `key_bits` (with two bytes of norm, unless 8), V in `value_bits` with four; slots of even size."""

    element_bytes: int = 1
    key_bits: int
    value_bits: int

    def accepts(self, row: Row) -> bool:
        """Only K and V of heads."""
        return set(row.vectors) == {"key", "value"}

    def row_bytes(self, row: Row) -> Expression:
        """`H · slot`."""
        return row.per_head([self.slot_bytes(row.vectors["key"], row.vectors["value"])])

    def slot_bytes(self, key: Expression, value: Expression) -> Expression:
        """Bytes of one head's K and V."""
        return round_up(self.key_bytes(key) + self.value_bytes(value), 2)

    def key_bytes(self, width: Expression) -> Expression:
        """`d` at 8 bits, else `⌈d · bits / 8⌉ + 2`."""
        return width if self.key_bits == 8 else ceiling(width * self.key_bits, 8) + 2

    def value_bytes(self, width: Expression) -> Expression:
        """`⌈d_v · bits / 8⌉ + 4`."""
        return ceiling(width * self.value_bits, 8) + 4


FP32 = StorageFormat(name="fp32", element_bytes=4)
BF16 = StorageFormat(name="bf16", element_bytes=2)
FP16 = StorageFormat(name="fp16", element_bytes=2)
FP8 = StorageFormat(name="fp8", element_bytes=1)
# An index key is FP8 with a float32 scale per 128 elements, whatever the KV dtype: 128 -> 132 bytes.
# vLLM 0.22.0 DeepseekV32IndexerCache; SGLang 0.5.13 DSATokenToKVPool.
FP8_INDEX = GroupScaled(name="fp8_index", element_bytes=1, scale_bytes=4, scale_group=128)
# 512 -> 656 bytes. vLLM 0.22.0 MLAAttentionSpec (fp8_ds_mla); SGLang 0.5.13 DSATokenToKVPool.
FP8_DS_MLA = PackedLatent(name="fp8_ds_mla", element_bytes=1, scale_bytes=4, scale_group=128)
# 448 + 64 -> 584 bytes. vLLM 0.22.0 MLAAttentionSpec (deepseek_v4); SGLang 0.5.13 DeepSeekV4SingleKVPool.
FP8_V4 = PackedLatent(name="fp8_v4", element_bytes=1, scale_bytes=1, scale_group=64, pad_bytes=1)
# vLLM 0.22.0 kv_quant_mode FP8_PER_TOKEN_HEAD and INT8_PER_TOKEN_HEAD: a float32 for K and one for V.
FP8_PER_TOKEN_HEAD = HeadScaled(name="fp8_per_token_head", element_bytes=1, scale_bytes=4)
INT8_PER_TOKEN_HEAD = HeadScaled(name="int8_per_token_head", element_bytes=1, scale_bytes=4)
# vLLM 0.33.0 kv_quant_mode INT4_PER_TOKEN_HEAD
INT4_PER_TOKEN_HEAD = HeadScaled(name="int4_per_token_head", element_bytes=1, scale_bytes=4, per_byte=2)
# vLLM 0.22.0 kv_quant_mode NVFP4; SGLang 0.5.23 NVFP4KVCacheMethod
NVFP4 = HalfByte(name="nvfp4")
NVFP4_DS_MLA = HalfLatent(name="nvfp4_ds_mla")  # 512 + 64 -> 352 bytes. vLLM 0.33.0 MLAAttention
# DeepSeek-V4.1's records of 512 elements, 528 and 288 bytes. vLLM 0.33.0 models/deepseek_v41; SGLang 0.5.23
# kv_layout.py.
FP8_V41 = GroupScaled(name="fp8_v41", element_bytes=1, scale_bytes=1, scale_group=32)
FP4_V41 = GroupScaled(name="fp4_v41", element_bytes=1, per_byte=2, scale_bytes=1, scale_group=16)
# 128 -> 68 bytes, an option of both engines: vLLM 0.33.0, SGLang 0.5.23.
FP4_INDEX = GroupScaled(name="fp4_index", element_bytes=1, per_byte=2, scale_bytes=1, scale_group=32)
FP4_MX_BLOCK16 = HalfByteRow(name="fp4_mx_block16")  # SGLang 0.5.23 FP4MXBlock16KVCacheMethod
# SGLang 0.5.23 MHATokenToKVPoolMXFP8
MXFP8 = GroupScaled(name="mxfp8", element_bytes=1, scale_bytes=1, scale_group=32)
FP4_E2M1 = HalfByteRow(name="fp4_e2m1")  # SGLang 0.5.13 MHATokenToKVPoolFP4, MLATokenToKVPoolFP4
# vLLM 0.22.0 model_executor/layers/quantization/turboquant/config.py
TURBOQUANT = tuple(
    TurboQuant(name=f"turboquant_{preset}", key_bits=key_bits, value_bits=value_bits)
    for preset, key_bits, value_bits in (
        ("k8v4", 8, 4),
        ("4bit_nc", 4, 4),
        ("k3v4_nc", 3, 4),
        ("3bit_nc", 3, 3),
    )
)

PLAIN = (BF16, FP16, FP32, FP8)
CHOSEN = (
    *PLAIN,
    FP8_DS_MLA,
    NVFP4_DS_MLA,
    FP8_V4,
    FP8_PER_TOKEN_HEAD,
    INT8_PER_TOKEN_HEAD,
    INT4_PER_TOKEN_HEAD,
    NVFP4,
    FP4_MX_BLOCK16,
    FP4_E2M1,
    MXFP8,
    *TURBOQUANT,
)
FORMATS: Mapping[str, StorageFormat] = {
    storage.name: storage for storage in (*CHOSEN, FP8_INDEX, FP8_V41, FP4_V41, FP4_INDEX)
}
KV_FORMATS = tuple(storage.name for storage in CHOSEN)  # what a user may choose for K, V and latents
STATE_FORMATS = ("fp32", "bf16", "fp16")  # what a user may choose for recurrent state


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The formats of a scenario: of keys, values and latents; of recurrent state; of convolution state."""

    kv: StorageFormat = BF16
    recurrent: StorageFormat = FP32
    convolution: StorageFormat = BF16
