"""BokehJS with only the modules that the page's charts need."""

import json
import re

import pytest
from builder.bokeh import trimmed
from builder.console import BuildError

MODULES = (
    "function _(t,_,n,o,r){o();t(1).__exportStar(t(2),n)},",
    "function _(e,t,r){r.__exportStar=1},",
    'function _(n,r,i){i(3);const a=n(3),b=n(4);i("Line",a.Line),i("Tile",b.Tile)},',
    'function _(e,t,i){const g=e(5);class l extends g.Glyph{}i.Line=l,l.__name__="Line"},',
    'function _(e,t,i){class m{}i.Tile=m,m.__name__="Tile"},',
    "function _(e,t,i){// a glyph\nconst s=e(6);i.Glyph=class{}},",
    'function _(o,e,i){i.default="big"}',
)
NAMES = {"main": 0, "models/index": 2, "models/glyphs/line": 3, "models/tiles/tile": 4, "styles/icons.css": 6}
SCRIPT = "(function(){})\n([\n" + "\n".join(MODULES) + "\n], 0, " + json.dumps(NAMES) + ", {});"
LINE = json.dumps({"roots": [{"type": "object", "name": "Line", "attributes": {}}]})


def test_what_the_charts_need_stays_and_everything_keeps_its_number():
    text = trimmed(SCRIPT.encode(), [LINE]).decode()
    modules = re.split(r"\n(?=function _\()", text[text.index("([\n") + 3 : text.index("\n], 0, ")])
    assert len(modules) == len(MODULES)
    assert [one == other for one, other in zip(modules, MODULES, strict=True)] == [
        *(True, True, True, True),
        False,  # another model
        True,
        False,  # pictures of buttons
    ]
    assert "Tile" not in modules[4]
    assert modules[6] == "function _(a,b,exports,module){module();exports.default=''}"
    assert text.endswith(json.dumps(NAMES) + ", {});")


def test_another_model_in_any_document_is_kept():
    tile = LINE.replace("Line", "Tile")
    assert MODULES[4].rstrip(",") in trimmed(SCRIPT.encode(), [LINE, tile]).decode()


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(BuildError, match="lacks the model Globe"):
        trimmed(SCRIPT.encode(), [LINE.replace("Line", "Globe")])


def test_a_script_of_another_form_is_refused():
    with pytest.raises(BuildError, match="no list of modules"):
        trimmed(b"export const Bokeh = {};", [LINE])
