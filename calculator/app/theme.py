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
    line_a: str  # of compared models, in their order; a line style goes with each round of them
    line_b: str
    line_c: str
    line_d: str
    line_e: str
    line_f: str
    line_g: str


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
        line_a="#0072b2",
        line_b="#c47d00",
        line_c="#009e73",
        line_d="#b8598f",
        line_e="#d55e00",
        line_f="#7a5fd0",
        line_g="#57606a",
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
        line_a="#56b4e9",
        line_b="#e69f00",
        line_c="#2bc49a",
        line_d="#e39ac3",
        line_e="#f0753a",
        line_f="#a89bff",
        line_g="#a3abb5",
    ),
}

DASHES = {"linear": "solid", "bounded": "dashed", "constant": "dotdash", "total": "solid"}
HATCHES = {"linear": " ", "bounded": "right_diagonal_line", "constant": "dot"}


def variables() -> str:
    """The style-sheet variables of both themes; site/first-paint.js chooses one before the first paint.

    Paper is light.
    """
    blocks = []
    for name, theme in THEMES.items():
        blocks.append(f':root[data-theme="{name}"] {{ color-scheme: {name}; {_written(theme)} }}')
    return "\n".join([*blocks, f"@media print {{ :root[data-theme] {{ {_written(THEMES['light'])} }} }}"])


def _written(theme: Theme) -> str:
    return " ".join(f"--{key.replace('_', '-')}: {value};" for key, value in asdict(theme).items())
