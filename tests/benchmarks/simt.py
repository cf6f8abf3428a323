"""How fast are kernels in Python, next to Numba's CUDA simulator?

    python -m tests.benchmarks.simt [--numba /path/to/a/python/that/has/numba]

Counted is the processor time of one thread's work: the best of several launches for `mlsys`, one
launch for Numba (it takes seconds; NUMBA_ENABLE_CUDASIM starts a Python thread for every CUDA thread).
Both run in this one command, pinned to one core where the system allows it. Without Numba the absolute numbers
are printed alone. A ratio of 1000 means: a thousand times less processor time than Numba.
Never run by pytest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import numpy as np

from tests.benchmarks.simt_kernels import TILE, collatz, tiled_matmul, vector_add

N_ADD, N_MATMUL = 100_000, 64
AIMS = {("vector add", False): 1500, ("vector add", True): 1000, ("matmul", False): 1000, ("matmul", True): 250}

NUMBA = """
import os, sys, time
os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
import numpy as np
from numba import cuda, float32
TILE, N_ADD, N_MATMUL = map(int, sys.argv[1:])

@cuda.jit
def vector_add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]

@cuda.jit
def tiled_matmul(a, b, c):
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x = cuda.blockIdx.x * TILE + tx
    y = cuda.blockIdx.y * TILE + ty
    total = float32(0.0)
    for t in range(a.shape[1] // TILE):
        tile_a[ty, tx] = a[y, t * TILE + tx]
        tile_b[ty, tx] = b[t * TILE + ty, x]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    c[y, x] = total

def seconds(run):
    begin = time.process_time()
    run()
    return time.process_time() - begin

rng = np.random.default_rng(0)
a, b = rng.random(N_ADD, np.float32), rng.random(N_ADD, np.float32)
out = np.zeros_like(a)
add_s = seconds(lambda: vector_add[(N_ADD + 255) // 256, 256](a, b, out))
assert (out == a + b).all()
a, b = rng.random((N_MATMUL, N_MATMUL), np.float32), rng.random((N_MATMUL, N_MATMUL), np.float32)
out = np.zeros_like(a)
matmul_s = seconds(lambda: tiled_matmul[(N_MATMUL // TILE,) * 2, (TILE, TILE)](a, b, out))
assert np.allclose(out, a @ b, rtol=1e-4)
print(add_s, matmul_s)
"""


def best_s(run, rounds: int) -> float:
    """Least processor seconds of several runs, after one to warm up."""
    run()
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


def ours(traced: bool, rounds: int) -> dict[str, tuple[float, str]]:
    """Work: processor seconds, and the rate that this is."""
    rng, out = np.random.default_rng(0), {}
    blocks, tiles = (N_ADD + 255) // 256, (N_MATMUL // TILE, N_MATMUL // TILE)

    a, b = rng.random(N_ADD, np.float32), rng.random(N_ADD, np.float32)
    c = np.zeros_like(a)
    s = best_s(lambda: vector_add.launch(blocks, 256, (a, b, c, N_ADD), trace=traced), rounds)
    assert (c == a + b).all()
    out["vector add"] = s, f"{N_ADD / s / 1e6:.0f} M threads/s"

    m, n = rng.random((N_MATMUL, N_MATMUL), np.float32), rng.random((N_MATMUL, N_MATMUL), np.float32)
    product = np.zeros_like(m)
    s = best_s(lambda: tiled_matmul.launch(tiles, (TILE, TILE), (m, n, product, N_MATMUL), trace=traced), rounds)
    assert np.allclose(product, m @ n, rtol=1e-4)
    out["matmul"] = s, f"{N_MATMUL**3 / s / 1e6:.0f} M FMA/s"

    start, steps = np.arange(1, N_ADD + 1, dtype=np.int64), np.zeros(N_ADD, np.int32)
    s = best_s(lambda: collatz.launch(blocks, 256, (start, steps, N_ADD), trace=traced), 1)
    out["Collatz"] = s, f"{steps.sum() / s / 1e6:.0f} M loop rounds/s"
    return out


def numba_s(python: str) -> dict[str, float] | None:
    """Processor seconds of Numba's simulator, or None where it does not run."""
    answer = subprocess.run(
        [python, "-c", NUMBA, str(TILE), str(N_ADD), str(N_MATMUL)], capture_output=True, text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    if answer.returncode:
        print("Numba's simulator: not measured,", answer.stderr.strip().splitlines()[-1])
        return None
    return dict(zip(("vector add", "matmul"), map(float, answer.stdout.split())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numba", default=sys.executable, help="a Python interpreter that has numba")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    tables = {traced: ours(traced, options.rounds) for traced in (False, True)}
    peer = numba_s(options.numba)
    print(f"vector add: {N_ADD} threads; matmul: {N_MATMUL} x {N_MATMUL}, {TILE} x {TILE} tiles; Collatz: {N_ADD} threads")
    for traced, table in tables.items():
        for work, (seconds, rate) in table.items():
            row = f"{work:11} {'traced' if traced else '':7} {seconds * 1e3:8.2f} ms  {rate:24}"
            if peer and work in peer:
                row += f" Numba {peer[work]:.2f} s, {peer[work] / seconds:.0f}x (aim: {AIMS[work, traced]}x)"
            print(row)


if __name__ == "__main__":
    main()
