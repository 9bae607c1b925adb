"""Firefox and WebKit for `test --all-browsers`, as Debian has them."""

from __future__ import annotations

import shutil

from .console import BuildError, say
from .debian import install

# The variable that tells a test where a program is -> its names, and Debian's package.
PROGRAMS = {
    "KV_FIREFOX": (("firefox-esr", "firefox"), "firefox-esr"),
    "KV_WEBKIT_DRIVER": (("WebKitWebDriver",), "webkit2gtk-driver"),
    "KV_SCREEN": (("Xvfb",), "xvfb"),  # WebKit draws on a screen only
}


def find_others() -> dict[str, str]:
    """Where each program is, by the variable that says it.

    Raises:
        BuildError: one is missing and cannot be installed.
    """
    if missing := _missing():
        say(f"  Other browsers: asking Debian for {' '.join(missing)}")
        install(*missing)
    if missing := _missing():
        raise BuildError(
            f"--all-browsers needs programs that are not here: apt-get install {' '.join(missing)}"
        )
    return {variable: _find(names) for variable, (names, _) in PROGRAMS.items()}


def _missing() -> list[str]:
    return [package for names, package in PROGRAMS.values() if not _find(names)]


def _find(names: tuple[str, ...]) -> str:
    return next((path for name in names if (path := shutil.which(name))), "")
