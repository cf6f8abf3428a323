"""Which thread works on which element: the map from a launch to a matrix, and pictures of what a warp touches.

Threads of a block are numbered with x running fastest, then y; 32 in a row are a warp. The matrix lies row by row in
memory, from a 32-byte boundary on.
Left out: the third axis of grids and blocks, and caches: a sector counts for each request that touches it.
Lessons: CUDA programming model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..units import plural
from .runs import rectangles
from .style import COLOUR

SECTOR, WARP = 32, 32
INK = "#222222"


@dataclass(frozen=True)
class Mapping:
    """A launch over a matrix. Straight: x along a row. Swapped: the thread's x runs down a column.

    width, height: elements; block, grid: (x, y); itemsize: bytes of an element.
    """

    width: int
    height: int
    block: tuple[int, int]
    grid: tuple[int, int]
    swapped: bool = False
    itemsize: int = 4

    @property
    def per_block(self) -> int:
        return self.block[0] * self.block[1]

    @property
    def threads(self) -> int:
        """Threads of the whole launch."""
        return self.per_block * self.grid[0] * self.grid[1]

    @property
    def reach(self) -> tuple[int, int]:
        """Columns and rows that the grid covers."""
        across, down = (g * b for g, b in zip(self.grid, self.block))
        return (down, across) if self.swapped else (across, down)

    @property
    def busy(self) -> int:
        """Threads that have an element."""
        across, down = self.reach
        return min(across, self.width) * min(down, self.height)

    def place(self, thread: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """(block, thread in its block), each as (x, y), of a thread counted over the launch.

        >>> Mapping(40, 20, block=(16, 4), grid=(3, 5)).place(64 + 18)
        ((1, 0), (2, 1))
        """
        block, within = divmod(thread, self.per_block)
        return (block % self.grid[0], block // self.grid[0]), (within % self.block[0], within // self.block[0])

    def xy(self, threads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Column and row that threads of the launch work on, inside the matrix or not."""
        (bx, by), (tx, ty) = self.place(np.asarray(threads))
        across, down = bx * self.block[0] + tx, by * self.block[1] + ty
        return (down, across) if self.swapped else (across, down)

    def inside(self, threads: np.ndarray) -> np.ndarray:
        """Whether threads have an element: the guard."""
        x, y = self.xy(threads)
        return (x < self.width) & (y < self.height)

    def warp(self, thread: int) -> np.ndarray:
        """All threads of the warp of one thread; the last warp of a block can be thin."""
        block, within = divmod(thread, self.per_block)
        first = within - within % WARP
        return block * self.per_block + np.arange(first, min(first + WARP, self.per_block))

    def sectors(self, thread: int) -> np.ndarray:
        """32-byte sectors that one request of this thread's warp touches, in order.

        >>> straight = Mapping(64, 32, block=(32, 8), grid=(2, 4), itemsize=1)
        >>> swapped = Mapping(64, 32, block=(32, 8), grid=(1, 8), swapped=True, itemsize=1)
        >>> len(straight.sectors(0)), len(swapped.sectors(0))
        (1, 32)
        """
        warp = self.warp(thread)
        x, y = self.xy(warp[self.inside(warp)])
        return np.unique((y * self.width + x) * self.itemsize // SECTOR)

    def sector_boxes(self, thread: int) -> list[tuple[int, int, int, int]]:
        """The elements of these sectors as rectangles, in elements: (x, y, wide, high).

        >>> Mapping(16, 8, block=(16, 8), grid=(1, 1), itemsize=1).sector_boxes(0)
        [(0, 0, 16, 2)]
        """
        per, size = SECTOR // self.itemsize, self.width * self.height
        sectors = self.sectors(thread).tolist()
        return [box for s in sectors for box in rectangles(s * per, min(s * per + per, size), self.width)]

    def least_sectors(self, thread: int) -> int:
        """Sectors that as many bytes in a row would take."""
        return -(-int(self.inside(self.warp(thread)).sum()) * self.itemsize // SECTOR)


def mapping(width: int, height: int, block: tuple[int, int], swapped: bool = False, itemsize: int = 4, rounded_up: bool = True) -> Mapping:
    """A launch with as many blocks as the matrix needs, or (rounded down) as many as fit into it, at least one.

    >>> mapping(40, 20, (16, 4)).grid, mapping(40, 20, (16, 4), rounded_up=False).grid
    ((3, 5), (2, 5))
    """
    sizes = (height, width) if swapped else (width, height)
    grid = tuple(-(-s // b) if rounded_up else max(s // b, 1) for s, b in zip(sizes, block))
    return Mapping(width, height, block, grid, swapped, itemsize)


def footprints(maps: dict[str, Mapping], thread: int = 0, axes=None):
    """For each launch the elements of one thread's warp (blue, dotted) and the sectors they lie in (orange).

    Gives the axes.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    flat = max(launch.height / launch.width for launch in maps.values())
    if axes is None and flat < 0.25:  # wide strips lie below each other
        axes = plt.subplots(len(maps), 1, figsize=(7, len(maps) * (6 * flat + 0.75)), squeeze=False, layout="constrained")[1][:, 0]
    elif axes is None:
        axes = plt.subplots(1, len(maps), figsize=(2.9 * len(maps), 2.6), squeeze=False)[1][0]
    for ax, (name, launch) in zip(axes, maps.items()):
        for x, y, wide, high in launch.sector_boxes(thread):
            ax.add_patch(Rectangle((x, y), wide, high, facecolor=COLOUR["memory"], edgecolor=INK, linewidth=0.6))
        warp = launch.warp(thread)
        for x, y in zip(*launch.xy(warp[launch.inside(warp)])):
            ax.add_patch(Rectangle((x, y), 1, 1, facecolor=COLOUR["compute"], edgecolor=INK, linewidth=0.4, hatch="..", rasterized=True))
        moved = plural(len(launch.sectors(thread)), "sector")
        ax.set(xlim=(0, launch.width), ylim=(launch.height, 0), xlabel="x, elements", ylabel="y", title=f"{name}: {moved}")
        ax.set_aspect("equal")
        ax.grid(False)
        for side in ("top", "right"):
            ax.spines[side].set_visible(True)
    return axes
