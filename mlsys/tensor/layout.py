"""Layout: the rule that turns an index into a place in memory.

An array is a flat buffer plus a shape, one stride for each axis and an offset. NumPy makes the
views; this file reads their rule off, so that it can be drawn and counted.
Lessons: tensors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layout:
    """shape in elements; strides and offset in bytes, as NumPy counts them; itemsize in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    itemsize: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements that an index can name; a broadcast axis counts each time.

        >>> layout_of(np.broadcast_to(np.float32([1, 2]), (1000, 2)), None).size_bytes
        8000
        """
        return math.prod(self.shape) * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether reading in order walks through memory without a gap or a step back."""
        expected = self.itemsize
        for length, stride in zip(reversed(self.shape), reversed(self.strides)):
            if length != 1 and stride != expected:
                return False
            expected *= length
        return True


def layout_of(view: np.ndarray, base: np.ndarray | None) -> Layout:
    """The layout of a view; its offset is counted from the first byte of base (0 where base is None).

    Raises ValueError if the view does not lie in the memory of base.

    >>> base = np.zeros((3, 4), np.float32)
    >>> layout_of(base.T[1:], base)
    Layout(shape=(3, 3), strides=(4, 16), offset=4, itemsize=4)
    """
    offset = 0
    if base is not None:
        if not np.may_share_memory(view, base):
            raise ValueError(f"the array of shape {view.shape} does not lie in the memory of the one of shape {base.shape}")
        offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Layout(view.shape, view.strides, offset, view.itemsize)


def offsets(layout: Layout) -> np.ndarray:
    """Byte offset of every element, in reading order (last index fastest): int64, shape of the layout.

    >>> base = np.zeros((2, 3), np.float32)
    >>> offsets(layout_of(base.T, base)).tolist()
    [[0, 12], [4, 16], [8, 20]]
    """
    place = np.full(layout.shape, layout.offset, np.int64)
    for axis, (length, stride) in enumerate(zip(layout.shape, layout.strides)):
        along = np.arange(length, dtype=np.int64) * stride
        place += along.reshape([-1 if a == axis else 1 for a in range(len(layout.shape))])
    return place
