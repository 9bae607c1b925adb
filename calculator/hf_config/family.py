"""The words for what a layer does, and what one model_type adds to the general rules.

The table of families is in `families.py`.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

FULL = "full_attention"
SLIDING = "sliding_attention"
CHUNKED = "chunked_attention"
REFERENCE = "reference_sliding_attention"  # the whole prompt, and the last of the generated tokens
LINEAR = "linear_attention"  # one of several recurrences: the other keys decide
LIGHTNING = "lightning_attention"
INDEXED = "indexed_attention"  # full attention to the tokens that an index selects
SPARSE = "sparse_attention"  # the same beside ordinary keys and values
CROSS = "cross_attention"
HYBRID = "hybrid"  # attention and Mamba in the same layer
MAMBA = "mamba"
CONVOLUTION = "conv"
RECURRENT = "recurrent"  # RG-LRU
RWKV = "rwkv"
WINDOW_ONLY = "window_only"  # the three layers of DeepSeek-V4
COMPRESSED = "compressed_sparse_attention"
HEAVILY_COMPRESSED = "heavily_compressed_attention"
ENCODER = "encoder_attention"
NOTHING = "none"
SHARED = "shared"  # reads the cache of an earlier layer


@dataclass(frozen=True, kw_only=True)
class Family:
    """How the configuration class of one model_type differs from the general rules; an empty field does not.

    `pattern` is repeated over the layers of a file that gives none, but for its `first` and `last` ones;
    `words` are layer words that mean something else here; `means` are keys under another name (general key:
    this family's); `ignores` are keys that its code does not use, or uses for something else; of each tuple
    in `needs` the file must have one; `defaults` are the class's values for absent keys, beside those in
    `class_defaults.json`; `lightning` says what linear attention is where no key tells; `encoder_length` is
    the key of a fixed encoder length; `note` is a sentence to show.
    """

    pattern: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    means: Mapping[str, str] = field(default_factory=dict)
    ignores: Set[str] = frozenset()
    needs: tuple[tuple[str, ...], ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)
    lightning: bool = False
    encoder_length: str = ""
    attentions_per_layer: int = 1
    attention_widening: int = 1  # attention works on this many times hidden_size
    note: str = ""
