"""The stride explorer: choose a view, see in which order it walks through memory.

Lessons: tensors.
"""

from __future__ import annotations

import numpy as np

from ..tensor import fetches, layout_of, lines_touched, offsets
from ..viz.picture import INK, Picture, bars
from ..viz.style import COLOUR, blend, ink_on
from .base import Explorer, choice, slider

ROWS = 8
LINE = 64  # bytes
VIEWS = {
    "as stored": lambda a, step: a,
    "transpose": lambda a, step: a.T,
    "every step-th column": lambda a, step: a[:, ::step],
    "every step-th row": lambda a, step: a[::step],
    "rows from last to first": lambda a, step: a[::-1],
    "first row, broadcast": lambda a, step: np.broadcast_to(a[0], a.shape),
}


class StrideExplorer(Explorer):
    """Views of an 8-row matrix. The picture is its memory, one 64-byte line a row of boxes.

    A box is one element; its number is the turn at which the view reads it first, and the later
    the turn, the darker the box. Empty boxes are never read.
    """

    def __init__(self):
        self.view = choice("view", list(VIEWS), "transpose")
        self.columns = slider("columns", 16, 4, 32)
        self.step = slider("step", 2, 1, 8)
        self.dtype = choice("element", ["float32", "float64", "float16"])
        self.cache = slider("cache, lines", 1, 1, 16)
        super().__init__([self.view, self.columns, self.step, self.dtype, self.cache])

    def update(self, _change=None) -> None:
        self.step.disabled = "step" not in self.view.value
        super().update()

    def model(self):
        """The base matrix and the layout of the chosen view."""
        base = np.zeros((ROWS, self.columns.value), self.dtype.value)
        return base, layout_of(VIEWS[self.view.value](base, self.step.value), base)

    def sentence(self) -> str:
        base, layout = self.model()
        strides = tuple(s // layout.itemsize for s in layout.strides)
        return (
            f"shape {layout.shape}, strides {strides} elements, offset {layout.offset // layout.itemsize}: "
            f"{'contiguous' if layout.is_contiguous else 'not contiguous'}. "
            f"{lines_touched(layout, LINE)} lines touched, {fetches(layout, LINE, self.cache.value)} fetched."
        )

    def draw(self) -> Picture:
        base, layout = self.model()
        per_line = LINE // layout.itemsize
        lines = -(-base.size // per_line)
        touched, fetched = lines_touched(layout, LINE), fetches(layout, LINE, self.cache.value)
        turns = first_turns(offsets(layout).ravel() // layout.itemsize, base.size)
        wide, high = 544 / per_line, min(24, 320 / lines)
        bottom = 56 + lines * high
        picture = Picture(640, int(bottom + 62), f"Memory of the matrix, one line of {LINE} bytes a row. {self.sentence()}")
        picture.text(70, 18, f"{touched} lines hold what is read; the walk fetches {fetched}, "
                     f"{fetched / touched:g} times each", 14, bold=True)
        picture.text(70, 40, f"memory: a row of boxes = one line of {LINE} bytes; a number = the turn at which it is read", 12)
        bars(picture, (0, bottom + 8, 640, 48), [("lines touched", touched, str(touched)), ("lines fetched", fetched, str(fetched))],
             max(fetched, touched), lambda name: COLOUR["memory" if name == "lines touched" else "limiter"],
             lambda name: "" if name == "lines touched" else "/")
        for element, turn in enumerate(turns):
            x, y = 70 + element % per_line * wide, 50 + element // per_line * high
            fill = "none" if turn < 0 else blend(COLOUR["memory"], 0.15 + 0.85 * turn / max(turns.max(), 1))
            picture.rect(x, y, wide - 1, high - 1, fill, INK)
            if turn >= 0 and high >= 11 and wide >= 16:
                picture.text(x + wide / 2 - 0.5, y + high / 2 + 3.5, str(turn), min(11, high - 2), "middle", ink_on(fill))
        for line in range(0, lines, max(1, lines // 8)):
            picture.text(62, 50 + line * high + high / 2 + 4, f"line {line}", 11, "end")
        return picture


def first_turns(order: np.ndarray, size: int) -> np.ndarray:
    """For each element of the buffer the turn at which it is first read, -1 if never.

    >>> first_turns(np.array([2, 0, 2]), 4).tolist()
    [1, -1, 0, -1]
    """
    turns = np.full(size, -1)
    elements, first = np.unique(order, return_index=True)
    turns[elements] = first
    return turns
