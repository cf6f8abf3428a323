"""Alternative text: what a picture says to a reader who does not see it.

JupyterLab shows a matplotlib figure as an image without alternative text. So in a notebook each
figure is also shown as HTML, an `<img>` whose text is made from the figure's title and axes.
Left out: what the lines do; that has to stand in the title, which is the finding.
"""

from __future__ import annotations

import base64
import io
import sys
from html import escape


def img(png: bytes, alt: str, width: int | None = None) -> str:
    """An HTML image that carries its own bytes and its text; width in pixels."""
    size = f' width="{width}"' if width else ""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{escape(alt, quote=True)}"{size} style="max-width:100%" src="data:image/png;base64,{data}">'


def describe(figure) -> str:
    """One sentence for each part of a matplotlib figure: its title, and what stands against what.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot(title="Loss falls", xlabel="step", ylabel="loss")
    >>> describe(ax.figure)
    'Figure. Loss falls: loss against step.'
    """
    parts = []
    for ax in figure.axes:
        title = next((ax.get_title(loc) for loc in ("left", "center", "right") if ax.get_title(loc)), "")
        axes = " against ".join(name for name in (ax.get_ylabel(), ax.get_xlabel()) if name)
        parts.append(": ".join(text for text in (title, axes) if text))
    return " ".join(["Figure.", *(f"{part}." for part in parts if part)])


def figure_html(figure) -> str:
    """A matplotlib figure as an HTML image with alternative text."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=figure.dpi, bbox_inches="tight")
    return img(png.getvalue(), describe(figure))


def show_figures_with_text() -> None:
    """In a notebook, show each matplotlib figure with alternative text; elsewhere do nothing."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    plt.switch_backend("module://matplotlib_inline.backend_inline")  # first: it removes formatters made before
    shell.display_formatter.formatters["text/html"].for_type(Figure, figure_html)
