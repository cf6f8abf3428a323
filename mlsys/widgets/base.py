"""The one kind of widget in this course: controls, one sentence, one picture.

A change of a control draws a new picture as SVG text into an `HTML` widget, which takes about a
millisecond. There is no `Output` widget and no `interact`: programs that run notebooks stall on these.
Where no kernel runs, the same display shows a static picture (PNG) and the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import ipywidgets as w

from ..viz.alt import img
from ..viz.picture import Picture

LONG = {"description_width": "11em"}


def wide(width: str = "34em") -> w.Layout:
    """A layout of its own for each control, so that one can be hidden without the others."""
    return w.Layout(width=width)


def slider(name: str, value: int, low: int, high: int, step: int = 1) -> w.IntSlider:
    """An integer slider with a label wide enough to read."""
    return w.IntSlider(value, low, high, step, description=name, style=LONG, layout=wide())


def float_slider(name: str, value: float, low: float, high: float, step: float, form: str = ".2f") -> w.FloatSlider:
    return w.FloatSlider(value, min=low, max=high, step=step, description=name, readout_format=form, style=LONG, layout=wide())


def log_slider(name: str, value: float, low: float, high: float, step: float = 0.1, form: str = ".3g") -> w.FloatLogSlider:
    """A slider over powers of ten: low and high are exponents."""
    return w.FloatLogSlider(value, base=10, min=low, max=high, step=step, description=name, readout_format=form, style=LONG, layout=wide())


def stops(name: str, options: Sequence[tuple[str, float]], value: float) -> w.SelectionSlider:
    """A slider over a few named values: (text beside the slider, value)."""
    return w.SelectionSlider(options=options, value=value, description=name, style=LONG, layout=wide("46em"))


def choice(name: str, options: Sequence, value=None) -> w.Dropdown:
    return w.Dropdown(options=options, value=value if value is not None else options[0], description=name, style=LONG, layout=wide())


class Explorer(w.VBox):
    """Base of all widgets: a subclass makes its controls and says `draw` and `sentence`.

    Both are called after every change; they read the controls' values and keep nothing.
    """

    def __init__(self, controls: Sequence[w.Widget]):
        self.readout = w.HTML()
        self.picture = w.HTML()
        for control in controls:
            control.observe(self.update, names="value")
        super().__init__([*controls, self.readout, self.picture])
        self.update()

    def draw(self) -> Picture:
        raise NotImplementedError

    def sentence(self) -> str:
        raise NotImplementedError

    def update(self, _change=None) -> None:
        """Ask the model again and show what it says."""
        self.readout.value = f'<div role="status">{escape(self.sentence())}</div>'
        self.picture.value = self.draw().svg()

    def _repr_mimebundle_(self, **kwargs):
        """The live widget, and for readers without a kernel the same picture as PNG with its sentence."""
        data, picture = super()._repr_mimebundle_(**kwargs), self.draw()
        png = picture.png()
        html = img(png, picture.label, picture.width)
        return {**data, "image/png": png, "text/html": html, "text/plain": self.sentence()}
