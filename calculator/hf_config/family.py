"""What one model_type adds to the general rules. The table itself is in `families.py`."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

FULL = "full_attention"
SLIDING = "sliding_attention"
LINEAR = "linear_attention"
INDEXED = "indexed_attention"

# Keys that change what is cached. One that is set and that the family does not list under `reads` is
# refused: the file then describes a mechanism that the general rules would leave out of the total.
MECHANISMS = (
    "add_cross_attention",
    "attention_chunk_size",
    "attention_head_dim",
    "attention_k_eq_v",
    "attn_config",
    "attn_layer_indices",
    "attn_layer_period",
    "attn_type_list",
    "block_configs",
    "block_types",
    "compress_ratios",
    "cross_attention_layers",
    "full_attention_interval",
    "full_attn_idxs",
    "global_head_dim",
    "hybrid_layer_pattern",
    "hybrid_override_pattern",
    "index_head_dim",
    "index_topk_freq",
    "index_topk_pattern",
    "indexer_types",
    "is_encoder_decoder",
    "kv_channels",
    "kv_lora_rank",
    "kv_source_layers",
    "layer_group_size",
    "layers_block_type",
    "linear_attn_config",
    "linear_num_value_heads",
    "mamba_num_heads",
    "max_window_layers",
    "multi_query",
    "multi_query_attention",
    "num_attention_groups",
    "num_global_key_value_heads",
    "num_kv_shared_layers",
    "per_layer_config",
    "sliding_window",
    "sliding_window_pattern",
    "sparse_attention_config",
    "swa_head_dim",
    "swa_num_key_value_heads",
    "use_bidirectional_attention",
    "use_cla",
    "v_head_dim",
)


@dataclass(frozen=True, kw_only=True)
class Family:
    """How the configuration class of one model_type differs from the general rules.

    `words` are the layer words it may use, the first for every layer of a file without any pattern;
    `reads` are the keys of MECHANISMS that it reads; of each tuple in `needs` one key must be in the file;
    `computed` are the keys that the class works out from others when they are absent or null;
    `defaults` are the class's numbers for absent keys (transformers 5.24).
    """

    words: tuple[str, ...] = (FULL,)
    reads: Set[str] = frozenset()
    needs: tuple[tuple[str, ...], ...] = ()
    computed: Set[str] = frozenset()
    defaults: Mapping[str, int] = field(default_factory=dict)
