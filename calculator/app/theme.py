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
    edge: str  # of what can be used: 3 : 1 against the page
    accent: str
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
        edge="#868e97",
        accent="#0072b2",
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
        edge="#737c87",
        accent="#56b4e9",
        error="#ff8a80",
        linear="#56b4e9",
        bounded="#e69f00",
        constant="#2bc49a",
    ),
}

DASHES = {"linear": "solid", "bounded": "dashed", "constant": "dotdash", "total": "solid"}
HATCHES = {"linear": " ", "bounded": "right_diagonal_line", "constant": "dot"}


def variables() -> str:
    """The style-sheet variables of both themes; site/theme.js chooses one before the first paint.

    Paper is light.
    """
    blocks = []
    for name, theme in THEMES.items():
        blocks.append(f':root[data-theme="{name}"] {{ color-scheme: {name}; {_written(theme)} }}')
    return "\n".join([*blocks, f"@media print {{ :root[data-theme] {{ {_written(THEMES['light'])} }} }}"])


def _written(theme: Theme) -> str:
    return " ".join(f"--{key.replace('_', '-')}: {value};" for key, value in asdict(theme).items())
