"""Pyodide's script, made quicker: only what is known to be there is changed."""

import pytest
from builder.console import BuildError
from builder.script import CHANGES, quicker


def test_every_change_is_made_once():
    script = "".join(f"/*{at}*/{old}" for at, old in enumerate(CHANGES)).encode()
    assert quicker(script).decode() == "".join(f"/*{at}*/{new}" for at, new in enumerate(CHANGES.values()))


@pytest.mark.parametrize("times", [0, 2])
def test_a_script_of_another_form_is_refused(times):
    first, *others = CHANGES
    script = "".join([first * times, *others]).encode()
    with pytest.raises(BuildError, match=f"pyodide.asm.mjs has {times} times .*see site/builder/script.py"):
        quicker(script)
