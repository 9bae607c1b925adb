import pytest

from calculator.engines.vllm.grouping import group_layers
from calculator.engines.vllm.sending import Layout
from calculator.transfer.vllm import Connector, request_bytes, units
from tests.engines.vllm.shapes import FULL, GDN, RULES, spec

LLAMA = {"num_layers": 32, "num_tokens": 131_072}


@pytest.mark.parametrize(
    ("connector", "bytes_", "merged"),
    [  # formulas.md 7.1
        (Connector.NIXL, 32_768, False),
        (Connector.NIXL_CROSS_LAYER, 2_097_152, False),
        (Connector.MOONCAKE, 32_768, True),
        (Connector.MOONCAKE_STORE, 2_097_152, False),
        (Connector.HF3FS, 2_097_152, False),
        (Connector.MORIIO, 32_768, True),
        (Connector.LMCACHE, 33_554_432, False),
        (Connector.LMCACHE_LAYERWISE, 1_048_576, False),
        (Connector.P2P_NCCL, 536_870_912, False),
        (Connector.NATIVE_OFFLOAD, 2_097_152, False),
        (Connector.SIMPLE_OFFLOAD, 2_097_152, False),
    ],
)
def test_units_of_llama(connector, bytes_, merged):
    (unit,) = [u for u in units(spec(FULL), Layout.FLASH_ATTN, **LLAMA) if u.connector is connector]
    assert (unit.bytes.value, unit.merged) == (bytes_, merged)


def test_joint_layouts_and_longer_host_blocks():
    found = {
        unit.connector: unit
        for unit in units(spec(FULL), Layout.FLASHINFER, **LLAMA, blocks_per_host_block=4)
    }
    assert found[Connector.NIXL_CROSS_LAYER].bytes.value == 1_048_576
    assert not found[Connector.MOONCAKE].merged
    assert found[Connector.NATIVE_OFFLOAD].bytes.value == 4 * 2_097_152


def test_a_whole_request():
    assert request_bytes(group_layers([spec(FULL)] * 32, RULES), 131_072).value == 16 * 2**30
    state = request_bytes(group_layers([spec(GDN)] * 2, RULES), 131_072)
    assert state.value == 2 * 4_268_032


def test_since_0_33_0_a_page_is_one_piece_and_nccl_between_servers_is_gone():
    found = {
        unit.connector: unit.bytes.value
        for unit in units(spec(FULL, packed=True), Layout.FLASHINFER, **LLAMA, blocks_per_host_block=4)
    }
    assert Connector.P2P_NCCL not in found
    assert found[Connector.NIXL] == spec(FULL, packed=True).page_size_bytes
    assert found[Connector.NIXL_CROSS_LAYER] == found[Connector.HF3FS]
