"""Latents, the index keys beside them, and the layers of DeepSeek-V4."""

from collections.abc import Sequence

from ..caches import (
    MLA,
    Cache,
    CompressedIndexKey,
    CompressedLatent,
    CompressorState,
    IndexKey,
    SlidingWindowMLA,
    SparseIndexKey,
)
from .found import Found
from .heads import KV_HEADS, WIDTH
from .reader import Reader

OWNERS = {"indexer_types": ("full", "shared"), "index_topk_pattern": ("F", "S")}
RATIOS = {0: "window_only", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}


def is_latent(reader: Reader) -> bool:
    """Whether attention keeps a latent; `use_mla` false with no rank says that it does not.

    Raises:
        ConfigError: the two contradict each other, or the class keeps a latent and the file has no rank.
    """
    if not reader.flag("use_mla", absent=True):
        if reader.has("kv_lora_rank"):
            raise reader.unread("use_mla")
        return False
    if reader.is_null("kv_lora_rank") and reader.class_number("kv_lora_rank"):
        raise reader.missing("kv_lora_rank")
    return reader.optional("kv_lora_rank") is not None


def latent(reader: Reader) -> MLA:
    """One latent with its rope key per token; head counts and widths in the same file do not size it."""
    reader.skip("v_head_dim", *KV_HEADS, *WIDTH)
    return reader.cache(
        MLA,
        kv_lora_rank=reader.whole("kv_lora_rank"),
        qk_rope_head_dim=reader.whole("qk_rope_head_dim"),
    )


def sliding_latent(reader: Reader) -> SlidingWindowMLA:
    """The latents of the last tokens, which may have sizes of their own beside full ones (dots3)."""
    reader.ordinary("sliding_window")
    reader.skip("v_head_dim", "swa_head_dim", "swa_num_key_value_heads", *KV_HEADS, *WIDTH)
    rank, rope = (_of_window(reader, key) for key in ("kv_lora_rank", "qk_rope_head_dim"))
    return reader.cache(
        SlidingWindowMLA,
        head_size=rank.plus(rope),
        qk_rope_head_dim=rope,
        sliding_window=reader.needed("sliding_window", "sliding_window_size"),
    )


def _of_window(reader: Reader, key: str) -> Found:
    own = None if reader.layer_size(key) else reader.optional(f"swa_{key}")
    return own or reader.whole(key)


def index_key(reader: Reader) -> IndexKey:
    """One key per token; `index_n_heads` does not multiply it."""
    return reader.cache(IndexKey, index_head_dim=reader.whole("index_head_dim"))


def index_owners(reader: Reader, count: int, drafts: int) -> Sequence[bool]:
    """For each layer whether it stores index keys; the others reuse an earlier layer's selection.

    Source: `indexer_types` or `index_topk_pattern`, or else `index_topk_freq` with
    `index_skip_topk_offset`, as vLLM 0.33 and transformers 5.24 read them.

    Raises:
        ConfigError: a word that is neither "full" nor "shared", or a first layer with nothing to reuse.
    """
    for key, (full, shared) in OWNERS.items():
        letters = reader.pattern_text(key)
        kinds = (
            reader.per_layer(key, count, drafts)
            if letters is None
            else reader.as_long(key, letters, count, drafts)
        )
        if kinds is None:
            continue
        for position, kind in enumerate(kinds):
            if kind not in (full, shared) or (position == 0 and kind == shared):
                raise reader.unknown_word(key, position, kind, full if position == 0 else f"{full}, {shared}")
        reader.skip("index_topk_freq", *OWNERS)
        reader.record.origins["index_owners"] = {"": [reader.path(key)]}
        return [kind == full for kind in kinds]
    return _by_period(reader, count + drafts)


def _by_period(reader: Reader, count: int) -> Sequence[bool]:
    period = reader.optional("index_topk_freq")
    if period is None:
        return [True] * count
    reader.record.origins["index_owners"] = {"": [period.origin]}
    offset = reader.number("index_skip_topk_offset").value if period.value > 1 else 1
    return [max(layer - offset + 1, 0) % period.value == 0 for layer in range(count)]


def sparse_layers(reader: Reader, count: int, drafts: int) -> Sequence[bool] | None:
    """For each layer whether it keeps an index key beside keys and values (MiniMax-M3); None without any."""
    sparse = reader.part("sparse_attention_config")
    if sparse is None or not sparse.flag("use_sparse_attention", absent=True):
        return None
    reader.ordinary("sparse_attention_config")
    codes = sparse.per_layer("sparse_attention_freq", count, drafts)
    if codes is None:
        raise sparse.missing("sparse_attention_freq")
    for position, code in enumerate(codes):
        if type(code) is not int or code not in (0, 1):
            raise sparse.unknown_word("sparse_attention_freq", position, code, "0, 1")
    return [code == 1 for code in codes]


def sparse_index_key(reader: Reader) -> SparseIndexKey:
    """One key per token; `sparse_num_index_heads` does not multiply it. Transformers 5 saves it flat."""
    sparse = reader.part("sparse_attention_config")
    width = sparse.whole("sparse_index_dim") if sparse else reader.whole("index_head_dim")
    return reader.cache(SparseIndexKey, index_head_dim=width)


def compressed_words(reader: Reader, count: int, drafts: int) -> Sequence[str] | None:
    """The layers of DeepSeek-V4 by their ratios.

    Raises:
        ConfigError: a ratio whose state is not known.
    """
    ratios = reader.per_layer("compress_ratios", count, drafts)
    if ratios is None:
        return None
    reader.ordinary("compress_ratios")
    for position, ratio in enumerate(ratios):
        if type(ratio) is not int or ratio not in RATIOS:
            raise reader.unknown_word("compress_ratios", position, ratio, ", ".join(map(str, RATIOS)))
    return [RATIOS[ratio] for ratio in ratios if type(ratio) is int]


def check_rates(reader: Reader) -> None:
    """Refuse other ratios for the words of transformers 5 than those that its words mean.

    Raises:
        ConfigError: another ratio.
    """
    rates = reader.part("compress_rates")
    for ratio, word in RATIOS.items():
        found = rates.optional(word) if rates else None
        if rates and found and found.value != ratio:
            raise rates.unread(word)


def window_latent(reader: Reader) -> SlidingWindowMLA:
    """The raw vectors of the last tokens, which every layer of DeepSeek-V4 keeps."""
    return reader.cache(
        SlidingWindowMLA, **_vector_sizes(reader), sliding_window=reader.whole("sliding_window")
    )


def compressed_latents(reader: Reader, ratio: int) -> tuple[Cache, ...]:
    """What a compressing layer keeps beside its window: latents, at ratio 4 index keys, compressor states."""
    check_rates(reader)
    vector = _vector_sizes(reader)
    rate = Found(ratio, reader.path("compress_ratios"), reader.path("compress_ratios"))
    kept = reader.cache(CompressedLatent, **vector, compress_ratio=rate)
    if ratio != 4:
        return kept, _compressor(reader, vector["head_size"], rate, overlap=1)
    index = reader.whole("index_head_dim")
    return (
        kept,
        reader.cache(CompressedIndexKey, index_head_dim=index, compress_ratio=rate),
        _compressor(reader, vector["head_size"], rate, overlap=2),
        _compressor(reader, index, rate, overlap=2),
    )


def _compressor(reader: Reader, width: Found, ratio: Found, overlap: int) -> CompressorState:
    """Keys and weights of the tokens under way; windows of ratio 4 overlap by half."""
    return reader.cache(
        CompressorState, state_width=width.times(2 * overlap), sliding_window=ratio.times(overlap)
    )


def _vector_sizes(reader: Reader) -> dict[str, Found]:
    reader.skip("kv_lora_rank")
    return {"head_size": reader.whole("head_dim"), "qk_rope_head_dim": reader.whole("qk_rope_head_dim")}
