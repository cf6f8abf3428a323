"""A picture as a list of shapes: SVG text for the screen, PNG for paper, from the same list.

SVG text takes well under a millisecond, follows a dark theme (ink is `currentColor`) and carries
a label for screen readers. The PNG is drawn by matplotlib from the same shapes, for views
without a kernel. Coordinates are pixels, y grows downward.
Used by every widget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from .style import COLOUR

INK = "currentColor"
HATCHES = {  # name: (SVG path in an 8 x 8 tile, matplotlib hatch)
    "/": ("M0,8 L8,0", "///"),
    "\\": ("M0,0 L8,8", "\\\\\\"),
    "x": ("M0,8 L8,0 M0,0 L8,8", "xxx"),
    "-": ("M0,4 L8,4", "---"),
    "|": ("M4,0 L4,8", "|||"),
}
ON_BOTH = {COLOUR["optimizer"]: "#a46bff"}  # a violet line that stands out from a dark page as well as from a white one
DASHES = {"": "none", "--": "6 4", ":": "2 3", "-.": "8 3 2 3"}


class Picture:
    """Shapes in drawing order, with a size and a label (one sentence: what the picture shows)."""

    def __init__(self, width: int, height: int, label: str):
        self.width, self.height, self.label = width, height, label
        self.shapes: list[tuple] = []

    def rect(self, x: float, y: float, w: float, h: float, fill: str = "none", stroke: str = "none",
             hatch: str = "", opacity: float = 1.0) -> None:
        self.shapes.append(("rect", x, y, max(w, 0.0), max(h, 0.0), fill, stroke, hatch, opacity))

    def line(self, points: Sequence[tuple[float, float]], stroke: str = INK, width: float = 1.5, dash: str = "") -> None:
        self.shapes.append(("line", list(points), stroke, width, dash))

    def circle(self, x: float, y: float, r: float, fill: str = INK, stroke: str = "none") -> None:
        self.shapes.append(("circle", x, y, r, fill, stroke))

    def text(self, x: float, y: float, text: str, size: float = 12, anchor: str = "start",
             fill: str = INK, bold: bool = False) -> None:
        """anchor: start, middle or end; y is the base line."""
        self.shapes.append(("text", x, y, str(text), size, anchor, fill, bold))

    def svg(self) -> str:
        """The picture as SVG text, scaled down to fit a narrow page."""
        body = "".join(_SVG[shape[0]](*shape[1:]) for shape in self.shapes)
        used = [h for h in HATCHES if any(s[0] == "rect" and s[7] == h for s in self.shapes)]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(self.label, quote=True)}" '
            f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" '
            f'style="max-width:100%;height:auto" font-family="system-ui, sans-serif">'
            f"{_patterns(used)}{body}</svg>"
        )

    def png(self, scale: float = 2.0) -> bytes:
        """The same shapes through matplotlib, dark ink on white."""
        import io

        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(self.width / 72, self.height / 72), dpi=72 * scale, facecolor="white", layout="none")
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set_xlim(0, self.width)
        ax.set_ylim(self.height, 0)
        for order, shape in enumerate(self.shapes):  # later shapes lie on top, as in SVG
            for artist in _PNG[shape[0]](ax, *shape[1:]):
                artist.set_zorder(order)
        out = io.BytesIO()
        FigureCanvasAgg(figure).print_png(out)
        return out.getvalue()


class Axes:
    """A plot area inside a picture, with scales, ticks and names of the axes.

    xlim, ylim: data ranges (low, high). log: "", "x", "y" or "xy".
    """

    def __init__(self, picture: Picture, box: tuple[float, float, float, float], xlim, ylim,
                 xlabel: str = "", ylabel: str = "", log: str = "", xticks=None, yticks=None):
        self.picture, self.box, self.log = picture, box, log
        self.xlim, self.ylim = xlim, ylim
        self._frame(xlabel, ylabel, xticks, yticks)

    def x(self, value: float) -> float:
        left, _, width, _ = self.box
        return left + width * _share(value, self.xlim, "x" in self.log)

    def y(self, value: float) -> float:
        _, top, _, height = self.box
        return top + height * (1 - _share(value, self.ylim, "y" in self.log))

    def plot(self, xs, ys, stroke: str = INK, width: float = 2.0, dash: str = "", label: str = "") -> None:
        """A line through data points; parts outside the box are cut off; the label stands at its end."""
        runs: list[list[tuple[float, float]]] = [[]]
        for x, y in zip(xs, ys):
            if self.xlim[0] <= x <= self.xlim[1] and self.ylim[0] <= y <= self.ylim[1]:
                runs[-1].append((self.x(x), self.y(y)))
            elif runs[-1]:
                runs.append([])
        drawn = [run for run in runs if len(run) > 1]
        for run in drawn:
            self.picture.line(run, stroke, width, dash)
        if label and drawn:
            self.picture.text(drawn[-1][-1][0] + 5, drawn[-1][-1][1] + 4, label, 12)

    def dot(self, x: float, y: float, fill: str = INK, r: float = 5.0, stroke: str = "none") -> None:
        self.picture.circle(self.x(x), self.y(y), r, fill, stroke)

    def _frame(self, xlabel, ylabel, xticks, yticks) -> None:
        left, top, width, height = self.box
        self.picture.line([(left, top), (left, top + height), (left + width, top + height)], INK, 1)
        for value in ticks(self.xlim, "x" in self.log) if xticks is None else xticks:
            self.picture.line([(self.x(value), top + height), (self.x(value), top + height + 4)], INK, 1)
            self.picture.text(self.x(value), top + height + 17, tick_text(value), 11, "middle")
        for value in ticks(self.ylim, "y" in self.log) if yticks is None else yticks:
            self.picture.line([(left - 4, self.y(value)), (left, self.y(value))], INK, 1)
            self.picture.text(left - 7, self.y(value) + 4, tick_text(value), 11, "end")
        self.picture.text(left + width, top + height + 33, xlabel, 12, "end")
        self.picture.text(left, top - 8, ylabel, 12, "start")


def bars(picture: Picture, box: tuple[float, float, float, float], rows: Sequence[tuple[str, float, str]],
         most: float, fill: Callable[[str], str], hatch: Callable[[str], str] = lambda _: "", name_width: float = 130) -> None:
    """Horizontal bars, one a row: (name, value, text at its end). most: the value of a full bar."""
    left, top, width, height = box
    step = height / max(len(rows), 1)
    for n, (name, value, text) in enumerate(rows):
        y = top + n * step
        length = (width - name_width - 110) * (value / most if most else 0.0)
        picture.text(left, y + step * 0.62, name, 12)
        picture.rect(left + name_width, y + step * 0.18, max(length, 1.0), step * 0.64, fill(name), INK, hatch(name))
        picture.text(left + name_width + max(length, 1.0) + 6, y + step * 0.62, text, 12)


def ticks(limits: tuple[float, float], log: bool = False, about: int = 5) -> list[float]:
    """Round numbers inside the limits.

    >>> ticks((0, 10)), ticks((1, 1000), log=True)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [1.0, 10.0, 100.0, 1000.0])
    """
    low, high = limits
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / 6))
        return [10.0**e for e in range(first, last + 1, step)]
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = float(next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999))
    first = math.ceil(low / step - 1e-9)
    return [first * step + i * step for i in range(int((high - first * step) / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """A tick's number, short.

    >>> tick_text(1e6), tick_text(0.25), tick_text(2000.0), tick_text(1e-4)
    ('1M', '0.25', '2k', '1e-4')
    """
    if value and abs(value) < 1e-2:
        return f"{value:.0e}".replace("e-0", "e-")
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:g}{letter}"
    return f"{round(value, 10):g}"


def _share(value: float, limits: tuple[float, float], log: bool) -> float:
    low, high = limits
    if log:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _patterns(used: list[str]) -> str:
    """The hatch tiles that a picture uses, each drawn over the colour beneath it."""
    tiles = "".join(
        f'<pattern id="hatch{list(HATCHES).index(h)}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<path d="{HATCHES[h][0]}" stroke="#000" stroke-opacity=".65" stroke-width="1.2"/></pattern>' for h in used)
    return f"<defs>{tiles}</defs>" if tiles else ""


def _svg_rect(x, y, w, h, fill, stroke, hatch, opacity) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
    faint = f' opacity="{opacity:g}"' if opacity < 1 else ""
    shape = f'<rect {place} fill="{fill}" stroke="{stroke}"{faint}/>'
    return shape + (f'<rect {place} fill="url(#hatch{list(HATCHES).index(hatch)})"/>' if hatch else "")


def _svg_line(points, stroke, width, dash) -> str:
    stroke = ON_BOTH.get(stroke, stroke)
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{text}" fill="none" stroke="{stroke}" stroke-width="{width:g}" stroke-dasharray="{DASHES[dash]}"/>'


def _svg_circle(x, y, r, fill, stroke) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}" fill="{fill}" stroke="{stroke}"/>'


def _svg_text(x, y, text, size, anchor, fill, bold) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{fill}"{weight}>{escape(text)}</text>'


def _paper(colour: str) -> str:
    """The same colour on white paper, where the theme's ink is nearly black."""
    return "#222222" if colour == INK else colour


def _png_rect(ax, x, y, w, h, fill, stroke, hatch, opacity) -> list:
    from matplotlib.patches import Rectangle

    boxes = [Rectangle((x, y), w, h, facecolor=_paper(fill), edgecolor=_paper(stroke), alpha=opacity, linewidth=0.8)]
    if hatch:
        boxes.append(Rectangle((x, y), w, h, fill=False, edgecolor="#555555", linewidth=0.0, hatch=HATCHES[hatch][1]))
    return [ax.add_patch(box) for box in boxes]


def _png_line(ax, points, stroke, width, dash) -> list:
    return ax.plot(*zip(*points), color=_paper(stroke), linewidth=width, linestyle=dash or "-")


def _png_circle(ax, x, y, r, fill, stroke) -> list:
    from matplotlib.patches import Ellipse

    return [ax.add_patch(Ellipse((x, y), 2 * r, 2 * r, facecolor=_paper(fill), edgecolor=_paper(stroke)))]


def _png_text(ax, x, y, text, size, anchor, fill, bold) -> list:
    place = {"start": "left", "middle": "center", "end": "right"}[anchor]
    return [ax.text(x, y, text.replace("$", r"\$"), fontsize=size * 0.92, ha=place, va="baseline", color=_paper(fill),
                    fontweight="bold" if bold else "normal")]


_SVG = {"rect": _svg_rect, "line": _svg_line, "circle": _svg_circle, "text": _svg_text}
_PNG = {"rect": _png_rect, "line": _png_line, "circle": _png_circle, "text": _png_text}
