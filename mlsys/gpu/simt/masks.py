"""Masks: which lanes take part in a statement.

A launch has `blocks` x `threads` lanes. Every value in a kernel is an array that broadcasts to
(blocks, threads): what is the same for all threads of a block has shape (blocks, 1), what is
the same in every block (1, threads), a constant (1, 1). Masks follow the same rule, so that a
condition on `thread_idx` alone is worked out once and not once per block.
Lessons: SMs and warps.
"""

from __future__ import annotations

import numpy as np

WARP = 32


class Geometry:
    """Sizes of a launch: grid and block as (x, y, z) triples, and the counts that follow."""

    def __init__(self, grid: tuple[int, int, int], block: tuple[int, int, int]):
        self.grid, self.block = grid, block
        self.blocks, self.threads = int(np.prod(grid)), int(np.prod(block))
        self.shape = (self.blocks, self.threads)
        self.lanes = self.blocks * self.threads
        self.warps_per_block = -(-self.threads // WARP)
        self.warps = self.blocks * self.warps_per_block

    def thread(self, lane: int) -> tuple[tuple, tuple]:
        """(block, thread) triples of a lane number.

        >>> Geometry((2, 1, 1), (8, 4, 1)).thread(32 + 9)
        ((1, 0, 0), (1, 1, 0))
        """
        return triple(lane // self.threads, self.grid), triple(lane % self.threads, self.block)

    def first(self, lanes: np.ndarray) -> int:
        """Number of the first lane that is set."""
        return int(np.broadcast_to(lanes, self.shape).argmax())

    def rows(self, values: np.ndarray) -> np.ndarray:
        """(b, t) values as one row of 32 per warp; lanes that no thread fills are zero."""
        b = values.shape[0]
        if values.shape[1] != self.threads:
            values = np.broadcast_to(values, (b, self.threads))
        spare = -self.threads % WARP
        if spare:
            padded = np.zeros((b, self.threads + spare), values.dtype)
            padded[:, : self.threads] = values
            values = padded
        return values.reshape(-1, WARP)


def triple(number: int, size: tuple[int, int, int]) -> tuple[int, int, int]:
    """(x, y, z) of the number-th element, x running fastest."""
    return number % size[0], number // size[0] % size[1], number // (size[0] * size[1])


class Mask:
    """A set of lanes: `lanes` (bool, broadcastable), and whether it holds `every` lane or `some`."""

    __slots__ = ("lanes", "every", "some", "_count", "_rows", "_chosen")

    def __init__(self, lanes: np.ndarray, every: bool, some: bool):
        self.lanes, self.every, self.some = lanes, every, some
        self._count = self._rows = self._chosen = None

    def narrow(self, condition: np.ndarray) -> Mask:
        """Those lanes for which the condition holds."""
        if condition.all():
            return self
        lanes = condition if self.every else self.lanes & condition
        return Mask(lanes, False, bool(lanes.any()))

    def without(self, condition: np.ndarray) -> Mask:
        """Those lanes for which the condition does not hold."""
        return self.narrow(~condition)

    def rows(self, geometry: Geometry) -> np.ndarray:
        """One row of 32 bools per warp (of one block only, where all blocks are alike)."""
        if self._rows is None:
            self._rows = geometry.rows(self.lanes)
        return self._rows

    def count(self, geometry: Geometry) -> tuple[int, int]:
        """(warps with a lane in the set, lanes in the set)."""
        if self._count is None:
            copies = geometry.blocks // self.lanes.shape[0]
            rows = self.rows(geometry)
            warps = np.count_nonzero(np.packbits(rows).view(np.uint32))  # 32 lanes: one word, as in hardware
            self._count = int(warps) * copies, int(np.count_nonzero(rows)) * copies
        return self._count

    def chosen(self, shape: tuple[int, int]) -> np.ndarray:
        """Positions of the lanes of the set in a raveled array of that shape."""
        if self._chosen is None or self._chosen[0] != shape:
            self._chosen = shape, np.flatnonzero(np.broadcast_to(self.lanes, shape))
        return self._chosen[1]


def full() -> Mask:
    return Mask(np.ones((1, 1), bool), True, True)


def empty() -> Mask:
    return Mask(np.zeros((1, 1), bool), False, False)
