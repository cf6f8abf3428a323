"""Intervals of time: union, intersection, difference, and what follows from them.

Two kernels that run at once keep a GPU busy once, not twice. So busy time is the length of the *union* of intervals,
never the sum of their lengths; overlap is the length of an intersection; and what a step pays for communication is
the part of it that no kernel hides, a difference. All functions take (start, end) rows in any order, overlapping or
not, and are exact: ends are compared, never rounded. Work grows as n log n.
Left out: how *much* of the GPU is busy. One block on one SM counts as a busy GPU, so busy time errs high as a
measure of use.
Lessons: reading a profiler.
"""

from __future__ import annotations

import numpy as np


def as_intervals(rows) -> np.ndarray:
    """(start, end) rows as a float array of shape (n, 2); empty ones are dropped.

    Raises ValueError for an interval that ends before it starts.
    """
    rows = np.asarray(rows, float).reshape(-1, 2)
    backward = rows[:, 1] < rows[:, 0]
    if backward.any():
        raise ValueError(f"the interval {tuple(rows[backward][0].tolist())} ends before it starts")
    return rows[rows[:, 1] > rows[:, 0]]


def union(rows) -> np.ndarray:
    """The same points of time as disjoint intervals in order, shape (k, 2). What touches becomes one.

    >>> union([(4, 6), (0, 2), (1, 3), (6, 7)]).tolist()
    [[0.0, 3.0], [4.0, 7.0]]
    """
    rows = as_intervals(rows)
    if not len(rows):
        return rows
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    reach = np.maximum.accumulate(rows[:, 1])
    first = np.concatenate([[True], rows[1:, 0] > reach[:-1]])
    return np.stack([rows[first, 0], reach[np.concatenate([first[1:], [True]])]], axis=1)


def length(rows) -> float:
    """How much time the intervals cover together.

    >>> length([(0, 2), (1, 3)])  # not 4
    3.0
    """
    merged = union(rows)
    return float(np.sum(merged[:, 1] - merged[:, 0]))


def _covered(rows: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Whether disjoint ordered intervals hold each point, their starts included, their ends not."""
    place = np.searchsorted(rows[:, 0], points, side="right") - 1
    return (place >= 0) & (points < rows[np.maximum(place, 0), 1]) if len(rows) else np.zeros(len(points), bool)


def _combined(a, b, keep) -> np.ndarray:
    """Intervals between neighbouring ends of both, where keep(in a, in b)."""
    a, b = union(a), union(b)
    cuts = np.unique(np.concatenate([a.ravel(), b.ravel()]))
    if len(cuts) < 2:
        return np.zeros((0, 2))
    wanted = keep(_covered(a, cuts[:-1]), _covered(b, cuts[:-1]))
    return union(np.stack([cuts[:-1][wanted], cuts[1:][wanted]], axis=1))


def intersection(a, b) -> np.ndarray:
    """Times that are in both.

    >>> intersection([(0, 4), (6, 8)], [(3, 7)]).tolist()
    [[3.0, 4.0], [6.0, 7.0]]
    """
    return _combined(a, b, lambda in_a, in_b: in_a & in_b)


def difference(a, b) -> np.ndarray:
    """Times that are in a and not in b.

    >>> difference([(0, 4)], [(1, 2), (3, 9)]).tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    return _combined(a, b, lambda in_a, in_b: in_a & ~in_b)


def clip(rows, window: tuple[float, float]) -> np.ndarray:
    """The parts of the intervals that lie in a window, each row for itself (no merging)."""
    rows = as_intervals(rows)
    rows = np.clip(rows, window[0], window[1])
    return rows[rows[:, 1] > rows[:, 0]]


def gaps(rows, window: tuple[float, float]) -> np.ndarray:
    """Times in a window that no interval covers.

    >>> gaps([(1, 2), (4, 9)], (0, 6)).tolist()
    [[0.0, 1.0], [2.0, 4.0]]
    """
    return difference([window], rows)


def overlap_s(a, b) -> float:
    """How long both are running."""
    return length(intersection(a, b))


def exposed_s(a, b) -> float:
    """How long a runs while b does not: communication that no kernel hides, a copy that nothing hides.

    >>> exposed_s([(2, 6)], [(0, 3), (4, 5)])
    2.0
    """
    return length(difference(a, b))
