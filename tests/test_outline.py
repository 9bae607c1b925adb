import io
import json
from pathlib import Path

import pytest

from calculator import outline
from calculator.caches import CompressedIndexKey, FullAttention, SlidingWindow
from calculator.cli import main
from calculator.errors import LimitError
from calculator.model import ModelPlan

CONFIGS = Path(__file__).parent / "hf_config" / "configs"


def printed(capsys, *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_plan_shows_layers_bytes_growth_and_origins(capsys):
    out = printed(capsys, "plan", str(CONFIGS / "openai__gpt-oss-20b.json")).splitlines()
    assert out[0] == "bytes per token: 24,576 B = 24 KiB"
    assert out[1] == "bounded bytes per request: 3,145,728 B = 3 MiB"
    assert any(line.startswith("Layers 1, 3, …, 23 (12): Full attention, K and V; linear; ") for line in out)
    assert any(
        line.endswith("num_kv_heads 8, head_size 64, head_size_v 64, sliding_window 128") for line in out
    )
    assert "  num_kv_heads: num_key_value_heads" in out


def test_plan_in_chinese_with_empty_layers_and_a_declared_format(capsys):
    path = CONFIGS / "partial" / "nvidia__Nemotron-H-8B-Base-8K.json"
    out = printed(capsys, "--language", "zh", "plan", str(path))
    assert ": 无" in out
    assert "fp32" in out


def test_plan_tells_its_warnings(capsys):
    out = printed(capsys, "plan", str(CONFIGS / "xai-org__grok-1.json"))
    assert "the model type – is not known here" in out


def test_plan_as_json_counts_what_the_report_counts(capsys):
    path = str(CONFIGS / "deepseek-ai__DeepSeek-V4-Flash.json")
    told = json.loads(printed(capsys, "plan", path, "--json"))
    assert (told["bytes_per_token"], told["bounded_bytes"]) == (6229, 5_636_096)
    assert told["layers"] == sum(len(group["layers"]) for group in told["groups"]) == 43
    more = json.loads(printed(capsys, "plan", path, "--json", "--draft-layers"))
    assert more["layers"] == 44


def test_a_fraction_is_told_as_one():
    key = CompressedIndexKey(index_head_dim=128, compress_ratio=8)
    told = outline.as_json(ModelPlan(layers=((key,),)))
    assert told["bytes_per_token"] == {"numerator": 33, "denominator": 2}


def test_refusals_are_one_sentence_and_exit_code_2(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{}", encoding="utf-8")
    assert main(["plan", str(path)]) == 2
    sentence = "num_hidden_layers: the key is missing. Add it as in the model's published file."
    assert capsys.readouterr().err == sentence + chr(10)
    assert main(["plan", str(tmp_path / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_figures_beyond_what_json_holds_exactly_are_refused():
    wide = SlidingWindow(num_kv_heads=1024, head_size=4096, head_size_v=4096, sliding_window=2**27)
    with pytest.raises(LimitError):
        outline.figures(ModelPlan(layers=((wide,),) * 9))
    narrow = FullAttention(num_kv_heads=1, head_size=1, head_size_v=1)
    assert outline.figures(ModelPlan(layers=((narrow,),)))["bytes_per_token"] == 4


def test_a_configuration_comes_from_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"model_type": "llama"}')))
    assert printed(capsys, "plan", "-").startswith("bytes per token: 524,288 B")


def test_what_never_ends_is_read_no_further_than_the_limit(capsys):
    assert main(["plan", "/dev/zero"]) == 2
    assert "1,000,001 bytes are too many" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "config.json: this is not valid JSON (line 1, column 1)"),
        (b"\x00\x01\x02", "config.json: this is not valid JSON (line 1, column 1)"),
        (b"\xff\xfe{", "config.json: the text is not UTF-8 (byte 0)"),
        (b'{"a": 1, "a": 2}', "a: this key occurs twice"),
        (b"[" * 100_000, "config.json: a number is too long or the nesting too deep"),
        (b" " * 1_000_001, "config.json: 1,000,001 bytes are too many"),
    ],
    ids=["empty", "binary", "not UTF-8", "a key twice", "deep", "large"],
)
def test_files_that_are_no_configuration(capsys, tmp_path, content, sentence):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert main(["plan", str(path)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(sentence)


def test_a_folder_is_no_file(capsys, tmp_path):
    assert main(["plan", str(tmp_path)]) == 2
    assert "cannot be read (Is a directory)" in capsys.readouterr().err
    assert main(["plan", ""]) == 2
    assert capsys.readouterr().err.startswith(".: the file cannot be read")
