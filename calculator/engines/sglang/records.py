"""DeepSeek-V4's records: data and scales of one entry, and what a page of them is padded to.

Source: SGLang 0.5.23 `kernels/ops/attention/dsv4/kv_layout.py`, `deepseek_v4_memory_pool.py`
resolve_compressed_kv_layout.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import EngineError, FieldError
from ...explain import Expression, round_up, symbol


@dataclass(frozen=True, kw_only=True)
class Record:
    """`data_bytes` and `scale_bytes` of an entry; pages are multiples of `page_align` bytes."""

    name: str
    data_bytes: int
    scale_bytes: int
    page_align: int

    def entries_bytes(self, entries: Expression) -> Expression:
        """Bytes of so many entries."""
        return entries * (symbol("data", self.data_bytes) + symbol("scales", self.scale_bytes))

    def page_bytes(self, entries: Expression) -> Expression:
        """Bytes of a page of so many entries."""
        page = self.entries_bytes(entries)
        return page if self.page_align == 1 else round_up(page, symbol("align", self.page_align))

    def padded_entry(self, entries: Expression) -> Expression:
        """Bytes of one entry with its part of the padding, a double as in the engine."""
        return self.page_bytes(entries) / entries


V4 = Record(name="v4", data_bytes=576, scale_bytes=8, page_align=576)
V41 = Record(name="v41", data_bytes=512, scale_bytes=16, page_align=512)
V41_NEW = Record(name="v41_new", data_bytes=512, scale_bytes=16, page_align=528)
V41_FP4 = Record(name="v41_fp4", data_bytes=256, scale_bytes=32, page_align=256)
V41_FP4_NEW = Record(name="v41_fp4_new", data_bytes=256, scale_bytes=32, page_align=288)
UNIFORM = Record(name="uniform_fp8", data_bytes=512, scale_bytes=0, page_align=1)  # of the TRT-LLM backend

MAIN: Mapping[str, Record] = {record.name: record for record in (V4, V41, V41_NEW)}
COMPRESSED = ("auto", "fp8", "fp4")


def main_record(layout: str, backend: str = "") -> Record:
    """The record of windows.

    Raises:
        FieldError: a layout that is not known.
        EngineError: one that the TRT-LLM backend does not read.
    """
    if layout not in MAIN:
        raise FieldError("error.choice", field="kv_layout", value=layout, options=", ".join(MAIN))
    if backend != "trtllm":
        return MAIN[layout]
    if layout != V4.name:
        raise EngineError("sglang.v4_layout", layout=layout, backend=backend)
    return UNIFORM


def compressed_record(main: Record, ratio: int, option: str = "auto") -> Record:
    """The record of compressed entries beside `main`; ratios 1 and 2 are in four bits unless told otherwise.

    Raises:
        FieldError: an option that is not known.
        EngineError: four bits beside a record of V4.
    """
    if option not in COMPRESSED:
        options = ", ".join(COMPRESSED)
        raise FieldError("error.choice", field="compressed_kv_layout", value=option, options=options)
    if main in (V4, UNIFORM):
        if option == "fp4":
            raise EngineError("sglang.v4_layout", layout=option, backend=main.name)
        return main
    halves = option == "fp4" or (option == "auto" and ratio in (1, 2))
    interleaved = main is V41_NEW
    if halves:
        return V41_FP4_NEW if interleaved else V41_FP4
    return main
