"""Recurrent layers."""

from ..caches import GatedDeltaNet
from .reader import Reader


def gated_delta_net(reader: Reader) -> GatedDeltaNet:
    """The word linear_attention does not say which recurrence; these keys do.

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
