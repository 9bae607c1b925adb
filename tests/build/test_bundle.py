"""Modules in one script do what they do apart."""

import subprocess

import pytest
from builder.bundle import bundled
from builder.console import BuildError
from builder.products import node

FILES = {
    "main.mjs": b"import * as tools from './tools.mjs';\nimport { twice as double } from './maths-two.mjs';\n"
    b"const name = 'main';\nexport const said = [name, tools.greet(double(21)), await tools.later()];\n"
    b"console.log(...said, tools.count());\n",
    "tools.mjs": b"// Tools.\nimport { twice } from './maths-two.mjs';\nconst name = 'tools';\n"
    b"let calls = 0;\n"
    b"export function greet(what) {\n  calls++;\n  return `${name} ${what} ${twice(2)}`;\n}\n"
    b"export async function later() {\n  return new Thing().word;\n}\nexport const count = () => calls;\n"
    b"class Thing {\n  word = 'later';\n}\n",
    "maths-two.mjs": b"console.log('once');\nexport const twice = (number) => 2 * number;\n",
    "style.css": b"* {}",
}


def test_the_script_does_what_the_modules_do(tmp_path):
    files = bundled(FILES)
    assert files.keys() == {"main.mjs", "style.css"}
    (tmp_path / "main.mjs").write_bytes(files["main.mjs"])
    done = subprocess.run(
        [str(node()), str(tmp_path / "main.mjs")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "once\nmain tools 42 4 later 1\n"


def test_a_circle_is_named():
    circle = {"a.mjs": b"import { b } from './b.mjs';", "b.mjs": b"import { a } from './a.mjs';"}
    with pytest.raises(BuildError, match=r"site/b\.mjs imports itself|site/c\.mjs"):
        bundled(circle | {"c.mjs": b"import * as b from './b.mjs';"})


@pytest.mark.parametrize(
    "line", ["export default 3;", "import './tools.mjs';", "export * from './tools.mjs';"]
)
def test_what_is_not_understood_is_refused(line):
    with pytest.raises(BuildError, match=r"more than site/builder/bundle\.py understands"):
        bundled({**FILES, "main.mjs": line.encode()})
