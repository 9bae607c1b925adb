"""Whatever is typed, linked or sent: it is text, never markup and never a script."""

import json
from urllib.parse import urlencode

import pytest

from calculator.fields import FIELDS, TABS

from .calculator_page import CalculatorPage

HOSTILE = (
    """"'><b class=hurt>x</b><img class=hurt src=x onerror="window.hurt=1"><script>window.hurt=1</script>"""
)
# Elements that only the markup above could have made, and handlers that no page of ours has.
HURT = """() => {
  const found = [];
  const look = (root) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.matches('.hurt, img, script:not([src], [type="application/json"])')) found.push(one.outerHTML);
      for (const { name } of one.attributes) if (name.startsWith('on')) found.push(name);
      if (one.shadowRoot) look(one.shadowRoot);
    }
  };
  look(document);
  return [found, window.hurt ?? null];
}"""
BOXES = "input[type=text]:visible, input:not([type]):visible, textarea:visible"


@pytest.fixture
def live(fresh, site):
    """A page of its own: what is left in its boxes is no other test's."""
    return fresh.open(site)


def assert_unhurt(page: CalculatorPage) -> None:
    page.settle()
    assert page.page.evaluate(HURT) == [[], None]


def test_every_box_takes_markup_as_text(live):
    filled = set()
    for tab in TABS:
        live.open_tab(tab)
        for box in live.find(BOXES).all():
            name = box.evaluate("(box) => box.id || box.name || box.getAttribute('aria-label')")
            if name in filled:
                continue
            filled.add(name)
            box.fill(HOSTILE)
            live.page.keyboard.press("Tab")
            assert_unhurt(live)
    assert {"box-model", "box-context_tokens", "config_text", "own_name", "hub_id", "hub_base"} <= filled
    assert {"layers_text", "compare_box"} <= filled


def test_a_configuration_is_text(live):
    config = {
        "model_type": HOSTILE,
        "architectures": [HOSTILE],
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "hidden_size": 256,
        HOSTILE: HOSTILE,
    }
    live.open_tab("own")
    for changed in ({}, {"layer_types": [HOSTILE] * 2}, {"num_hidden_layers": HOSTILE}):
        live.find("#config_text").fill(json.dumps(config | changed))
        assert_unhurt(live)


@pytest.mark.parametrize("key", ["known", "unknown"])
def test_an_address_is_text(fresh, site, key):
    query = {item.key: HOSTILE for item in FIELDS.values()} if key == "known" else {HOSTILE: HOSTILE}
    fresh.open(f"{site}?{urlencode(query)}")
    for tab in TABS:
        fresh.open_tab(tab)
        assert_unhurt(fresh)


def test_a_message_of_a_host_is_nothing(live):
    live.page.evaluate("(text) => window.postMessage({ type: 'state', page: text }, '*')", HOSTILE)
    assert_unhurt(live)
