"""Colours with a meaning, and the one style sheet.

Six colours (Petroff's sequence, apart under every colour vision), each with one meaning in the
whole course. A second cue, a hatch, a dash or a label, always repeats what the colour says.
"""

from __future__ import annotations

from .alt import show_figures_with_text

COLOUR = {
    "compute": "#5790fc",
    "memory": "#f89c20",
    "communication": "#e42536",
    "limiter": "#e42536",
    "activations": "#964a8b",
    "idle": "#9c9ca1",
    "optimizer": "#7a21dd",
}
SEQUENCE = ["#5790fc", "#f89c20", "#e42536", "#964a8b", "#9c9ca1", "#7a21dd"]


def use_style() -> None:
    """Set matplotlib up for this course: the colours, light axes, readable sizes, alternative text."""
    import matplotlib as mpl

    mpl.rcParams.update({
        "axes.prop_cycle": mpl.cycler(color=SEQUENCE),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 12,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "figure.figsize": (7.0, 3.6),
        "figure.dpi": 110,
        "figure.constrained_layout.use": True,
        "font.size": 10.5,
        "lines.linewidth": 2.0,
        "legend.frameon": False,
    })
    show_figures_with_text()


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on a `#rrggbb` colour.

    >>> ink_on("#f89c20"), ink_on("#7a21dd")
    ('#000000', '#ffffff')
    """
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


def blend(colour: str, share: float) -> str:
    """A colour mixed with white: share 1 is the colour, 0 is white. For heat maps.

    >>> blend("#5790fc", 0.0), blend("#5790fc", 1.0)
    ('#ffffff', '#5790fc')
    """
    channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(255 + (c - 255) * share):02x}" for c in channels)
