"""Kernels that tests/benchmarks/simt.py launches: the same work as its Numba versions."""

from mlsys.gpu.simt import block_dim, block_idx, float32, kernel, shared, sync_threads, thread_idx

TILE = 16


@kernel
def vector_add(a, b, out, n):
    i = block_idx.x * block_dim.x + thread_idx.x
    if i < n:
        out[i] = a[i] + b[i]


@kernel
def tiled_matmul(a, b, c, n):
    tile_a = shared((TILE, TILE), float32)
    tile_b = shared((TILE, TILE), float32)
    tx = thread_idx.x
    ty = thread_idx.y
    x = block_idx.x * TILE + tx
    y = block_idx.y * TILE + ty
    total = 0.0
    for t in range(n // TILE):
        tile_a[ty, tx] = a[y, t * TILE + tx]
        tile_b[ty, tx] = b[t * TILE + ty, x]
        sync_threads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        sync_threads()
    c[y, x] = total


@kernel
def collatz(start, out, n):
    i = block_idx.x * block_dim.x + thread_idx.x
    if i < n:
        v = start[i]
        steps = 0
        while v > 1:
            if v % 2 == 0:
                v //= 2
            else:
                v = 3 * v + 1
            steps += 1
        out[i] = steps
