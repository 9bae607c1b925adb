"""Layers that the tests of this directory share."""

from calculator.caches import (
    MLA,
    ChunkedLocal,
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    CrossAttention,
    EncoderOnlyAttention,
    FullAttention,
    GatedDeltaNet,
    HiddenState,
    IndexKey,
    Mamba2,
    SinkAttention,
    SlidingWindow,
    SlidingWindowMLA,
)
from calculator.engines.vllm.rules import rules_of
from calculator.engines.vllm.spec import LayerSpec
from calculator.formats import FP8_V4, Storage

RULES = rules_of("0.22.0")
HEADS = {"num_kv_heads": 8, "head_size": 128, "head_size_v": 128}
FULL = FullAttention(**HEADS)
WINDOW = SlidingWindow(**HEADS, sliding_window=1024)
CHUNK = ChunkedLocal(**HEADS, attention_chunk_size=8192)
SINK = SinkAttention(**HEADS, sink_len=64)
CROSS = CrossAttention(**HEADS)
ENCODER = EncoderOnlyAttention(**HEADS)
LATENT = MLA(kv_lora_rank=512, qk_rope_head_dim=64)
INDEX = IndexKey(index_head_dim=128)
HIDDEN = HiddenState(num_hidden_states=4, hidden_size=4096)
GDN = GatedDeltaNet(
    conv_kernel=4,
    linear_num_key_heads=16,
    linear_num_value_heads=64,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
)
QWEN = FullAttention(num_kv_heads=2, head_size=256, head_size_v=256)
MAMBA = Mamba2(conv_kernel=4, mamba_num_heads=128, mamba_head_dim=64, state_size=128, n_groups=1)
V4_WINDOW = SlidingWindowMLA(head_size=512, qk_rope_head_dim=64, sliding_window=128)
C4_STATE = CompressorState(state_width=2048, sliding_window=8)
C4I_STATE = CompressorState(state_width=512, sliding_window=8)
C128_STATE = CompressorState(state_width=1024, sliding_window=128)
C4 = CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=4)
C4I = CompressedIndexKey(index_head_dim=128, compress_ratio=4)
C128 = CompressedLatent(head_size=512, qk_rope_head_dim=64, compress_ratio=128)
V4_LAYERS = {
    0: (V4_WINDOW,),
    4: (V4_WINDOW, C4I_STATE, C4I, C4_STATE, C4),
    128: (V4_WINDOW, C128_STATE, C128),
}


def spec(cache=FULL, block_size=16, **more):
    return LayerSpec(cache=cache, storage=more.pop("storage", Storage()), block_size=block_size, **more)


def v4(cache, block_size):
    dtype = None if cache in (C4I, C4_STATE, C4I_STATE, C128_STATE) else "fp8_ds_mla"
    return spec(cache, block_size, storage=Storage(kv=FP8_V4), alignment=576, cache_dtype=dtype)
