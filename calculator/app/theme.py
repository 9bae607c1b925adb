"""The colours, once: as style-sheet variables for the page and as Bokeh properties for the charts.

Linear, bounded and constant are Okabe–Ito blue, orange (darker on white) and green; each also has a line
style and a hatch, so that colour is never the only cue.
"""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True)
class Theme:
    """One set of colours; the names are those of the style-sheet variables."""

    page: str
    card: str
    ink: str
    muted: str
    rule: str
    accent: str
    on_accent: str
    error: str
    linear: str
    bounded: str
    constant: str


THEMES = {
    "light": Theme(
        page="#f7f7f5",
        card="#ffffff",
        ink="#1b1f24",
        muted="#57606a",
        rule="#dfe2e6",
        accent="#0072b2",
        on_accent="#ffffff",
        error="#b3261e",
        linear="#0072b2",
        bounded="#c47d00",
        constant="#009e73",
    ),
    "dark": Theme(
        page="#121417",
        card="#1a1d21",
        ink="#e8eaed",
        muted="#a3abb5",
        rule="#2f353c",
        accent="#56b4e9",
        on_accent="#10141a",
        error="#ff8a80",
        linear="#56b4e9",
        bounded="#e69f00",
        constant="#2bc49a",
    ),
}

DASHES = {"linear": "solid", "bounded": "dashed", "constant": "dotdash", "total": "solid"}
HATCHES = {"linear": " ", "bounded": "right_diagonal_line", "constant": "dot"}


def variables() -> str:
    """The style-sheet variables of both themes; site/theme.js chooses one before the first paint."""
    blocks = []
    for name, theme in THEMES.items():
        lines = " ".join(f"--{key.replace('_', '-')}: {value};" for key, value in asdict(theme).items())
        blocks.append(f':root[data-theme="{name}"] {{ color-scheme: {name}; {lines} }}')
    return "\n".join(blocks)
