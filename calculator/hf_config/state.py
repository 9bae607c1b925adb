"""Recurrent layers: which recurrence, and its sizes in every spelling."""

from collections.abc import Callable, Sequence

from ..caches import (
    KDA,
    RGLRU,
    RWKV5,
    GatedDeltaNet,
    LinearAttention,
    Mamba1,
    Mamba2,
    ShortConvolution,
    State,
)
from ..errors import ConfigError
from .found import Found
from .heads import HIDDEN, QUERY_HEADS, WIDTH
from .reader import Reader

HEADS = ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads")
HEAD_WIDTH = ("mamba_head_dim", "mamba_d_head", "mamba_headdim")
STATE = ("ssm_state_size", "mamba_d_state", "state_size")
KERNEL = ("conv_kernel", "mamba_d_conv", "conv_dimension")
GROUPS = ("n_groups", "mamba_n_groups", "mamba_ngroups", "mamba_num_groups")
EXPAND = ("mamba_expand", "expansion_factor", "expand")


def linear_attention(reader: Reader) -> State:
    """The recurrence that the other keys of the file tell; the word linear_attention alone does not.

    Raises:
        ConfigError: no key tells which it is, or one of its sizes is missing.
    """
    for keys, build in TELLS:
        if any(reader.has(key) or reader.class_number(key) for key in keys):
            return build(reader)
    if reader.family.lightning:
        return lightning(reader)
    raise ConfigError("config.recurrence", field=reader.path("layer_types"))


def gated_delta_net(reader: Reader) -> GatedDeltaNet:
    """Key and value heads with widths of their own.

    Raises:
        ConfigError: a size is missing, or the value heads are no multiple of the key heads.
    """
    key_heads = reader.whole("linear_num_key_heads")
    value_heads = reader.whole("linear_num_value_heads")
    value_heads.divided_by(key_heads)
    return reader.cache(
        GatedDeltaNet,
        conv_kernel=reader.whole("linear_conv_kernel_dim"),
        linear_num_key_heads=key_heads,
        linear_num_value_heads=value_heads,
        linear_key_head_dim=reader.whole("linear_key_head_dim"),
        linear_value_head_dim=reader.whole("linear_value_head_dim"),
    )


def kda(reader: Reader) -> KDA:
    """Heads of one width, in a part of their own or flat as transformers 5 saves them."""
    part = reader.part("linear_attn_config")
    names = ("short_conv_kernel_size", "num_heads", "head_dim")
    flat = ("linear_conv_kernel_dim", "linear_num_heads", "linear_head_dim")
    if part:
        kernel, heads, width = map(part.whole, names)
    elif reader.has("short_conv_kernel_size") and not any(map(reader.has, flat)):
        # Bailing's own files: as many heads, as wide, as those of attention before its latent.
        kernel = reader.whole("short_conv_kernel_size")
        heads, width = reader.needed(*QUERY_HEADS), reader.needed(*WIDTH)
    else:
        kernel, heads, width = map(reader.whole, flat)
    return reader.cache(KDA, conv_kernel=kernel, linear_num_heads=heads, linear_head_dim=width)


def lightning(reader: Reader) -> LinearAttention:
    """One matrix for each attention head, not for each KV head."""
    reader.ordinary("attn_type_list" if reader.has("attn_type_list") else "layer_types")
    heads = reader.needed(*QUERY_HEADS)
    width = reader.spelled(*WIDTH) or reader.needed(*HIDDEN).divided_by(heads)
    return reader.cache(LinearAttention, num_heads=heads, head_dim=width)


def mamba(reader: Reader) -> Mamba1 | Mamba2:
    """Mamba-2 where the file or the class has heads or groups of Mamba, else Mamba-1."""
    reader.ordinary(next((key for key in (*STATE, *KERNEL) if reader.has(key)), STATE[0]))
    # Zamba's n_mamba_heads is of a Mamba-1: its state is the same size without them.
    signs = (*HEADS[:2], *HEAD_WIDTH, *GROUPS)
    if not any(reader.has(key) or reader.class_number(key) for key in signs):
        return _mamba1(reader)
    heads, width = _heads(reader)
    inner = reader.optional("mamba_d_ssm")
    if inner and inner.value != heads.value * width.value:
        raise reader.unread("mamba_d_ssm")
    return reader.cache(
        Mamba2,
        conv_kernel=reader.needed(*KERNEL),
        mamba_num_heads=heads,
        mamba_head_dim=width,
        state_size=reader.needed(*STATE),
        n_groups=reader.needed(*GROUPS),
    )


def _heads(reader: Reader) -> tuple[Found, Found]:
    """Heads and their width; the one that the file leaves out, or calls "auto", is the quotient."""
    automatic = any(reader.says(key, "auto") for key in HEAD_WIDTH)
    width = None if automatic else reader.spelled(*HEAD_WIDTH)
    heads = (
        reader.spelled(*HEADS)
        if width is None
        else (reader.spelled(*HEADS) or _inner(reader).divided_by(width))
    )
    if heads is None:
        raise reader.missing(HEADS[0])
    return heads, width or _inner(reader).divided_by(heads)


def _inner(reader: Reader) -> Found:
    return reader.optional("mamba_d_ssm") or _expanded(reader)


def _mamba1(reader: Reader) -> Mamba1:
    inner = _expanded(reader) if reader.has("mamba_expand") or reader.class_number("mamba_expand") else None
    inner = inner or reader.optional("intermediate_size") or _expanded(reader)
    return reader.cache(
        Mamba1,
        conv_kernel=reader.needed(*KERNEL),
        intermediate_size=inner,
        state_size=reader.needed(*STATE),
    )


def _expanded(reader: Reader) -> Found:
    return reader.needed(*EXPAND).times(reader.needed(*HIDDEN))


def short_convolution(reader: Reader) -> ShortConvolution:
    """The last columns; `conv_L_cache` counts the current one, which vLLM does not keep."""
    reader.ordinary("conv_L_cache")
    return reader.cache(
        ShortConvolution, conv_kernel=reader.whole("conv_L_cache"), hidden_size=reader.needed(*HIDDEN)
    )


def rg_lru(reader: Reader) -> RGLRU:
    """A state as wide as `lru_width`, or as the model."""
    reader.ordinary("lru_width")
    width = reader.optional("lru_width") or reader.needed(*HIDDEN)
    return reader.cache(RGLRU, conv_kernel=reader.whole("conv1d_width"), lru_width=width)


def rwkv(reader: Reader) -> RWKV5:
    """Two shift vectors and one matrix per head."""
    hidden, width = reader.needed(*HIDDEN), reader.whole("head_size")
    heads = (reader.optional("attention_hidden_size") or hidden).divided_by(width)
    return reader.cache(RWKV5, hidden_size=hidden, num_heads=heads, head_dim=width)


# The keys that tell a recurrence, the more particular first.
TELLS: Sequence[tuple[tuple[str, ...], Callable[[Reader], State]]] = (
    (("linear_num_value_heads", "linear_num_key_heads", "linear_key_head_dim"), gated_delta_net),
    (("linear_attn_config", "linear_num_heads", "short_conv_kernel_size"), kda),
    (("lru_width", "conv1d_width"), rg_lru),
    (("conv_L_cache",), short_convolution),
    ((*HEAD_WIDTH, *STATE), mamba),
    (("group_norm_size",), lightning),  # Ling and Ring 2.5
)
