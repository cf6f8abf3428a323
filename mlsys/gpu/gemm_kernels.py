"""Matrix products as kernels that run lane by lane: without tiles, with tiles in shared memory, with tiles in registers too.

What `mlsys.gpu.tiles.traffic_bytes` says in closed form is counted here from the loads themselves:

>>> import numpy as np
>>> from mlsys.gpu.tiles import Tile, traffic_bytes
>>> a, b, c = np.ones((32, 16), np.float32), np.ones((16, 32), np.float32), np.zeros((32, 32), np.float32)
>>> for tile in (Tile(1, 1, 1, 1, 1), Tile(16, 16, 8, 1, 1), Tile(32, 32, 8, 4, 2)):
...     report = run(tile, a, b, c)
...     print(report.bytes_asked, report.bytes_asked == traffic_bytes(tile, 32, 32, 16), bool((c == 16).all()))
135168 True True
12288 True True
8192 True True

Asked is what lanes ask for. Lanes of a warp that ask for one word move it once: see `bytes_moved`. Written for reading: no
vector loads, no padding against bank conflicts.
Lessons: tiling.
"""

from __future__ import annotations

import numpy as np

from .simt import Report, block_dim, block_idx, float32, kernel, local, shared, sync_threads, thread_idx
from .simt.launch import Kernel
from .tiles import Tile, problem

SIDE = 16  # of a block, for the product without tiles


@kernel
def naive(a, b, c, m, n, k):
    row = block_idx.y * block_dim.y + thread_idx.y
    column = block_idx.x * block_dim.x + thread_idx.x
    if row < m and column < n:
        total = 0.0
        for j in range(k):
            total += a[row, j] * b[j, column]
        c[row, column] = total


def tiled(tile: Tile) -> Kernel:
    """A kernel for one tile. Blocks are (threads, 1, 1); slabs that reach over an edge are filled with zeros.

    >>> tiled(Tile(32, 32, 8, 4, 4)).parameters
    ['a', 'b', 'c', 'm', 'n', 'k']
    """
    if wrong := problem(tile):
        raise ValueError(f"{tile}: {wrong}")
    BM, BN, BK, TM, TN = (int(size) for size in vars(tile).values())
    THREADS, ACROSS = int(tile.threads), int(tile.bn // tile.tn)

    @kernel
    def gemm(a, b, c, m, n, k):
        slab_a = shared((BM, BK), float32)
        slab_b = shared((BK, BN), float32)
        sums = local((TM, TN), float32)
        row = block_idx.y * BM
        column = block_idx.x * BN
        my_row = thread_idx.x // ACROSS * TM
        my_column = thread_idx.x % ACROSS * TN
        for i in range(TM):
            for j in range(TN):
                sums[i, j] = 0.0
        for start in range(0, k, BK):
            for i in range(thread_idx.x, BM * BK, THREADS):
                y = i // BK
                x = i % BK
                slab_a[y, x] = a[row + y, start + x] if row + y < m and start + x < k else 0.0
            for i in range(thread_idx.x, BK * BN, THREADS):
                y = i // BN
                x = i % BN
                slab_b[y, x] = b[start + y, column + x] if start + y < k and column + x < n else 0.0
            sync_threads()
            for depth in range(BK):
                for i in range(TM):
                    left = slab_a[my_row + i, depth]
                    for j in range(TN):
                        sums[i, j] += left * slab_b[depth, my_column + j]
            sync_threads()
        for i in range(TM):
            for j in range(TN):
                if row + my_row + i < m and column + my_column + j < n:
                    c[row + my_row + i, column + my_column + j] = sums[i, j]

    return gemm


def run(tile: Tile, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Report:
    """Compute c = a @ b with a tile, traced. `Tile(1, 1, 1, 1, 1)` runs the kernel without tiles. c is changed.

    >>> a, b, c = np.ones((8, 8), np.float32), np.ones((8, 8), np.float32), np.zeros((8, 8), np.float32)
    >>> run(Tile(8, 8, 4, 1, 1), a, b, c).shared_bytes
    256
    """
    (m, k), n = a.shape, b.shape[1]
    if b.shape[0] != k or c.shape != (m, n):
        raise ValueError(f"c {c.shape} cannot be a {a.shape} @ b {b.shape}")
    if tile == Tile(1, 1, 1, 1, 1):
        return naive.launch((-(-n // SIDE), -(-m // SIDE)), (SIDE, SIDE), (a, b, c, m, n, k), trace=True)
    grid = -(-n // tile.bn), -(-m // tile.bm)
    return tiled(tile).launch(grid, int(tile.threads), (a, b, c, m, n, k), trace=True)
