"""Atomic operations: many lanes change one element, one after the other.

The lanes go in the order of their numbers; hardware promises no order, so a kernel must not
depend on it (sums of floats differ in the last digits from run to run on a GPU, not here).
`atomic_turns` counts what a warp asks for. How long a turn takes is left out, and that hardware
may first add up the lanes of a warp: the true cost can be lower.
Lessons: CUDA programming model.
"""

from __future__ import annotations

import numpy as np

UFUNCS = {"add": np.add, "max": np.maximum, "min": np.minimum}


def apply(flat: np.ndarray, position: np.ndarray, op: str, operands: list[np.ndarray], wanted: bool) -> np.ndarray | None:
    """Apply one atomic in every lane; the old values, if wanted.

    flat: the memory; position and each operand: one number for each active lane.

    >>> memory = np.zeros(2, int)
    >>> apply(memory, np.array([1, 1, 1]), "add", [np.array([5, 6, 7])], wanted=True), memory
    (array([ 0,  5, 11]), array([ 0, 18]))
    """
    if op in UFUNCS and not wanted:
        UFUNCS[op].at(flat, position, operands[0])
        return None
    order = np.argsort(position, kind="stable")
    sorted_position = position[order]
    starts = np.flatnonzero(np.r_[True, sorted_position[1:] != sorted_position[:-1]][: len(order)])
    counts = np.diff(np.r_[starts, len(order)])
    old = np.empty(len(position), flat.dtype)
    if op in UFUNCS and len(starts) < counts.max(initial=0):
        by_element(flat, position, UFUNCS[op], operands[0], old, np.split(order, starts[1:]))
    else:
        by_turn(flat, position, op, operands, old, order, starts, counts)
    return old


def by_element(flat, position, ufunc, operand, old, groups) -> None:
    """Few elements, many lanes each: a running sum (maximum, minimum) per element."""
    for lanes in groups:
        at = position[lanes[0]]
        running = ufunc.accumulate(np.r_[flat[at : at + 1], operand[lanes].astype(flat.dtype)], dtype=flat.dtype)
        old[lanes], flat[at] = running[:-1], running[-1]


def by_turn(flat, position, op, operands, old, order, starts, counts) -> None:
    """Few lanes for each element: first the first lane of every element, then the second of each, and so on."""
    for turn in range(counts.max(initial=0)):
        lanes = order[starts[counts > turn] + turn]
        at = position[lanes]
        old[lanes] = before = flat[at]
        if op == "cas":
            expected, new = (operand[lanes] for operand in operands)
            flat[at] = np.where(before == expected, new, before)
        elif op == "exch":
            flat[at] = operands[0][lanes]
        else:
            flat[at] = UFUNCS[op](before, operands[0][lanes].astype(flat.dtype))


def atomic_turns(position: np.ndarray, active: np.ndarray | None = None) -> int:
    """Turns of all requests together; position: one row of element numbers for each warp.

    >>> atomic_turns(np.arange(32)[None] % 8), atomic_turns(np.arange(64).reshape(2, 32))
    (4, 2)
    """
    lanes = position.shape[1]
    live = np.ones(position.shape, bool) if active is None else active
    used = live.any(1)
    rows, live = position[used].astype(np.int64), live[used]
    spare = rows.max(initial=0) + 1 + np.arange(lanes)
    rows = np.sort(np.where(live, rows, spare), 1)  # lanes that sit out: a number of their own
    start = np.ones(rows.shape, bool)
    start[:, 1:] = rows[:, 1:] != rows[:, :-1]
    begin = np.maximum.accumulate(np.where(start, np.arange(lanes), 0), 1)
    return int((np.arange(lanes) - begin + 1).max(1, initial=0).sum())
