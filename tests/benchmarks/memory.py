"""How many accesses a second do the models of a GPU's memory take?

    python -m tests.benchmarks.memory [--rounds 7]

Counted is processor time of one thread; printed is the median round. Each model gets patterns that suit it and
patterns that do not: lanes out of order for coalescing, random words for banks, random lines for caches. The last
column is what the course promises for the worst of them on the machine where it was built; no test reads it.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from mlsys.dtypes import decode, encode
from mlsys.gpu import Cache, coalesce, hits, passes_per_request, stack_distances, units_per_request
from mlsys.gpu.occupancy import occupancy
from mlsys.specs import SMS

WARPS = 1 << 16


def warp_rows(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Byte addresses (warps, 32) of 4-byte accesses."""
    warps, lanes = np.arange(WARPS).reshape(-1, 1), np.arange(32)
    shuffled = rng.permuted(np.tile(lanes, (WARPS, 1)), axis=1)
    return {
        "in a row": warps * 128 + lanes * 4,
        "stride 33 words": warps * 128 + lanes * 132,
        "lanes shuffled": warps * 128 + shuffled * 4,
        "random": rng.integers(0, 1 << 20, (WARPS, 32)) * 4,
    }


def shared_rows(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Byte addresses (warps, 32) within 48 KiB of shared memory."""
    warps, lanes = np.arange(WARPS).reshape(-1, 1), np.arange(32)
    return {
        "column": warps % 32 * 4 + lanes * 128,
        "lanes shuffled": rng.permuted(np.tile(lanes, (WARPS, 1)), axis=1) * 4,
        "random": rng.integers(0, 12_288, (WARPS, 32)) * 4,
        "few words": rng.integers(0, 40, (WARPS, 32)) * 4,
    }


def product_trace(n: int = 128, tile: int = 16) -> np.ndarray:
    """Byte addresses of A, B and C in turn, for an n x n float32 product in tiles."""
    t, u = np.arange(n // tile), np.arange(tile)
    bi, bj, bk, i, j, k = np.meshgrid(t, t, t, u, u, u, indexing="ij")
    i, j, k = bi * tile + i, bj * tile + j, bk * tile + k
    return np.stack([i * n + k, n * n + k * n + j, 2 * n * n + i * n + j], -1).ravel() * 4


def jobs(rng: np.random.Generator):
    """(model, pattern, how many accesses, call, promised per second)."""
    for name, rows in warp_rows(rng).items():
        yield "sectors", name, rows.size, lambda rows=rows: units_per_request(rows), 200e6
    rows = warp_rows(rng)["random"]
    half = rng.random(rows.shape) < 0.5
    yield "sectors", "random, half the lanes", rows.size, lambda: units_per_request(rows, active=half), None
    yield "sectors and lines", "random", rows.size, lambda: coalesce(rows), None
    for name, words in shared_rows(rng).items():
        yield "banks", name, words.size, lambda words=words: passes_per_request(words), 50e6
    traces = {"tiled product": product_trace(), "random": rng.integers(0, 1 << 16, 1 << 20) * 128}
    for sets, ways in ((64, 4), (16, 8), (512, 8), (2048, 16), (64, 1)):
        of, promised = Cache(sets, ways), 12e6 if (sets, ways) == (64, 4) else None
        for name, trace in traces.items():
            yield f"LRU {sets} x {ways}", name, trace.size, lambda of=of, trace=trace: hits(of, trace), promised
    part = traces["tiled product"][: 1 << 20]
    yield "stack distances", "tiled product", part.size, lambda: stack_distances(part), None
    values = rng.standard_normal(1 << 20)
    for name in ("bf16", "e4m3fn", "e2m1"):
        codes = encode(values, name)
        yield f"encode {name}", "normal", values.size, lambda name=name: encode(values, name), None
        yield f"decode {name}", "normal", values.size, lambda name=name, codes=codes: decode(codes, name), None
    capability = rng.choice(list(SMS), 100_000)
    threads, regs = rng.integers(1, 1025, (2, 100_000)) // [[1], [5]]
    yield "occupancy", "random launches", 100_000, lambda: occupancy(capability, threads, regs), None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"{'model':18} {'pattern':24} {'M accesses/s':>12} {'promised':>9}")
    for model, pattern, size, call, promised in jobs(np.random.default_rng(0)):
        call()
        seconds = []
        for _ in range(rounds):
            begin = time.process_time()
            call()
            seconds.append(time.process_time() - begin)
        rate = size / statistics.median(seconds)
        print(f"{model:18} {pattern:24} {rate / 1e6:12.1f} {'' if promised is None else f'{promised / 1e6:.0f}':>9}")


if __name__ == "__main__":
    main()
