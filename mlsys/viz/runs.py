"""Neighbours that look alike, drawn as one shape: stretches of a row, and rectangles of a grid.

Used by the pictures of masks, warps, matrices, tiles and traces.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np


def runs(values: np.ndarray) -> list[tuple]:
    """Stretches of equal values in a row: (value, first place, one past the last).

    >>> runs(np.array([True, True, False, True]))
    [(True, 0, 2), (False, 2, 3), (True, 3, 4)]
    """
    found, first = [], 0
    for value, same in groupby(values.tolist()):
        end = first + len(list(same))
        found.append((value, first, end))
        first = end
    return found


def rectangles(first: int, end: int, across: int) -> list[tuple[int, int, int, int]]:
    """Places first to end - 1 of a grid, numbered row by row, as at most three pieces: (column, row, wide, high).

    >>> rectangles(6, 19, 4)
    [(2, 1, 2, 1), (0, 2, 4, 2), (0, 4, 3, 1)]
    """
    found = []
    while first < end:
        row, column = divmod(first, across)
        high = max((end - first) // across, 1) if column == 0 else 1
        wide = min(across - column, end - first)
        found.append((column, row, wide, high))
        first += wide * high
    return found
