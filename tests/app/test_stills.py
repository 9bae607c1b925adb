"""The pictures of the charts say what the figures say."""

import re
from urllib.parse import quote

import pytest

from calculator.app import stills
from calculator.app.bars import Bars
from calculator.app.curves import Curves
from tests.app.page import opened


def test_each_line_of_the_model_is_drawn_over_the_whole_frame():
    still = stills.curves(Curves(opened("m=gemma-3-27b")))
    drawn = dict(re.findall(r'<polyline class="(\w+)" points="([^"]+)"', still))
    assert drawn.keys() == {"linear", "bounded", "total"}
    for points in drawn.values():
        places = [tuple(map(float, point.split(","))) for point in points.split()]
        assert places[0][0] == 0
        assert places[-1][0] == pytest.approx(1 / 1.01, abs=1e-3)
        assert all(0 <= y <= 1 for _, y in places)
    heights = {name: float(points.split()[-1].split(",")[1]) for name, points in drawn.items()}
    assert heights["total"] < heights["linear"] < heights["bounded"], "counted from the top"


@pytest.mark.parametrize(("language", "word"), [("en", "linear"), ("zh", "线性")])
def test_the_words_are_those_of_the_language_and_the_amount_is_that_of_the_context(language, word):
    still = stills.curves(Curves(opened(language=language)))
    assert f">{word}<" in still
    assert ">6.54 GiB<" in still, "70,272 B x 100,000"
    assert ">1Mi<" in still


def test_the_bars_have_the_lengths_of_their_models():
    still = stills.bars(Bars(opened()))
    rows = re.split('<div class="row"', still)[1:]
    total = {
        re.search(r"<span>([^<]+)</span>", row)[1]: sum(map(float, re.findall(r"width: ([\d.]+)%", row)))
        for row in rows
    }
    assert list(total)[-1] == "MiniMax M2.7"
    assert total["MiniMax M2.7"] == pytest.approx(100 / 1.3, abs=0.05)
    # 7,027,200,000 and 25,395,200,000 bytes of 100,000 tokens
    assert total["Kimi K2.6"] / total["MiniMax M2.7"] == pytest.approx(70_272 / 253_952, abs=1e-3)


def test_a_name_is_text():
    state = opened(f"l=2*full_attention(num_kv_heads=1,head_size=8,head_size_v=8)&nm={quote('<b>&')}&x=this")
    assert "<b>&<" not in stills.bars(Bars(state))
    assert "&lt;b&gt;&amp;" in stills.bars(Bars(state))
