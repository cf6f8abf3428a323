"""Fit the constants of `mlsys.gpu.gemm` to measured times, and say how well they do on rows that the fit has not seen.

    python -m tests.benchmarks.gemm_fit MEASURED.csv [--gpu a100] [--cross] [--sample OUT.csv]

MEASURED.csv has the columns gpu, M, N, K, time_median_ms (more are ignored), such as the medians of linear layers in
microsoft/vidur (data/profiling/compute/GPU/MODEL/mlp.csv, MIT licence). By default: for each GPU, rows are held out by a hash
of their sizes (a fifth of the (N, K) pairs whole, and a tenth of all other rows), both models are fitted to the rest, and the
errors on the held-out rows are printed, beside those of the constants in the library. --cross: five folds by pairs, and
five by rows. --sample writes the held-out rows, those of mlsys/data/gemm_sample.csv.
Takes about a minute a GPU, seven with --cross. Never run by pytest.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import fields
from zlib import crc32

import numpy as np

from mlsys.gpu.gemm import predict, roofline_s, time_s
from mlsys.gpu.gemm_constants import GemmConstants

NAMES = [field.name for field in fields(GemmConstants)]
START = {
    "a100": (0.9, 0.1, 0.8, 5e12, 4e-6, 1e-6), "a40": (0.9, 0.1, 0.8, 3e12, 4e-6, 1e-6), "h100": (1.0, 0.1, 0.9, 10e12, 4e-6, 1e-6),
}  # fmt: skip
LOW = (0.3, 0.02, 0.3, 1e12, 1e-6, 5e-7)  # what the constants are kept between: a kernel takes half a microsecond, if it does nothing
HIGH = (1.3, 0.5, 1.0, 30e12, 20e-6, 10e-6)


def read(path: str) -> dict[str, np.ndarray]:
    """Rows (m, n, k, seconds) of each GPU, sorted."""
    rows: dict[str, list] = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            sizes = [int(row[name]) for name in "MNK"]
            rows.setdefault(row["gpu"], []).append((*sizes, float(row["time_median_ms"]) * 1e-3))
    return {gpu: np.array(sorted(found)) for gpu, found in rows.items()}


def held_out(rows: np.ndarray) -> np.ndarray:
    """Whether a row is kept from the fit, by a hash of its sizes: a fifth of the (n, k) pairs, a tenth of the other rows."""
    sizes = rows[:, :3].astype(int).tolist()
    return np.array([crc32(f"{n},{k}".encode()) % 5 == 0 or crc32(f"{m},{n},{k}".encode()) % 10 == 0 for m, n, k in sizes])


def errors(predicted: np.ndarray, rows: np.ndarray) -> str:
    """MAPE, median, ninth decile and bias, in per cent."""
    off = 100 * (predicted / rows[:, 3] - 1)
    mape, median, p90 = np.mean(abs(off)), np.median(abs(off)), np.quantile(abs(off), 0.9)
    return f"MAPE {mape:5.2f}  median {median:4.1f}  p90 {p90:4.1f}  bias {np.mean(off):+4.1f}"


def model(gpu: str, rows: np.ndarray, values) -> np.ndarray:
    return predict(gpu, *rows[:, :3].T, GemmConstants(*values)).time_s


def roofline(gpu: str, rows: np.ndarray, values) -> np.ndarray:
    return roofline_s(gpu, *rows[:, :3].T, *values)


def fit(gpu: str, rows: np.ndarray, guess, run=model) -> np.ndarray:
    """Constants of least MAPE, by Nelder and Mead's simplex on their logarithms."""

    def loss(logs):
        values = np.exp(logs)
        if run is model and (np.any(values < LOW) or np.any(values > HIGH)):
            return np.inf
        return np.mean(np.abs(run(gpu, rows, values) / rows[:, 3] - 1))

    logs = np.log(guess)
    for spread in (0.15, 0.1):
        logs = simplex(loss, logs, spread)
    return np.exp(logs)


def simplex(loss, start: np.ndarray, spread: float, steps: int = 150) -> np.ndarray:
    """The lowest point that a simplex of n + 1 points finds by reflecting its worst one."""
    points = np.vstack([start, start + spread * np.eye(len(start))])
    values = np.array([loss(point) for point in points])
    for _ in range(steps):
        order = values.argsort()
        points, values = points[order], values[order]
        centre = points[:-1].mean(0)
        point = 2 * centre - points[-1]
        value = loss(point)
        far = -2.0 if value < values[0] else 0.5 if value >= values[-2] else None
        if far is not None:
            other = centre + far * (points[-1] - centre)
            found = loss(other)
            if found < value:
                point, value = other, found
        if value < values[-1]:
            points[-1], values[-1] = point, value
        else:
            points[1:] = (points[1:] + points[0]) / 2
            values[1:] = [loss(point) for point in points[1:]]
    return points[values.argmin()]


def report(gpu: str, rows: np.ndarray) -> None:
    """Fit on what is not held out, and print both models on what is."""
    out = held_out(rows)
    values = fit(gpu, rows[~out], START[gpu])
    plain = fit(gpu, rows[~out], (0.7, 0.8, 1e-5), roofline)
    print(f"{gpu}: {np.sum(~out)} rows fitted, {out.sum()} held out")
    print(f'    "{gpu}": GemmConstants({", ".join(f"{value:.4g}" for value in values)}),  # {", ".join(NAMES)}')
    print("  this fit, fitted rows      ", errors(model(gpu, rows[~out], values), rows[~out]))
    print("  this fit, held out         ", errors(model(gpu, rows[out], values), rows[out]))
    print("  library, held out          ", errors(time_s(gpu, *rows[out, :3].T), rows[out]))
    print("  roofline of 3, held out    ", errors(roofline(gpu, rows[out], plain), rows[out]), f"  {np.array2string(plain, precision=3)}")


def cross(gpu: str, rows: np.ndarray, folds: int = 5) -> None:
    """Each row predicted by a fit that has not seen its fold: folds of (n, k) pairs, and folds of rows."""
    rng = np.random.default_rng(0)
    _, pair = np.unique(rows[:, 1:3], axis=0, return_inverse=True)
    ways = {"pairs": rng.permutation(pair.max() + 1)[pair.ravel()] % folds, "rows": rng.permutation(len(rows)) % folds}
    for name, fold in ways.items():
        predicted, plain = np.empty(len(rows)), np.empty(len(rows))
        for part in range(folds):
            seen, new = rows[fold != part], rows[fold == part]
            predicted[fold == part] = model(gpu, new, fit(gpu, seen, START[gpu]))
            plain[fold == part] = roofline(gpu, new, fit(gpu, seen, (0.7, 0.8, 1e-5), roofline))
        print(f"{gpu}: {folds} folds of {name:5}, model     ", errors(predicted, rows), flush=True)
        print(f"{gpu}: {folds} folds of {name:5}, roofline  ", errors(plain, rows), flush=True)


def sample(measured: dict[str, np.ndarray], path: str) -> None:
    """The held-out rows, in the order of m, n, k."""
    with open(path, "w") as file:
        file.write("# the rows that tests/benchmarks/gemm_fit.py holds out; ")
        file.write("microsoft/vidur data/profiling/compute, MIT licence; fp16 medians\n")
        file.write("gpu,M,N,K,time_median_ms\n")
        for gpu, rows in measured.items():
            for m, n, k, seconds in rows[held_out(rows)]:
                file.write(f"{gpu},{int(m)},{int(n)},{int(k)},{seconds * 1e3:.6g}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("measured")
    parser.add_argument("--gpu", choices=list(START))
    parser.add_argument("--cross", action="store_true")
    parser.add_argument("--sample")
    given = parser.parse_args()
    measured = {gpu: rows for gpu, rows in read(given.measured).items() if gpu in START}
    if given.sample:
        sample(measured, given.sample)
        return
    for gpu in [given.gpu] if given.gpu else measured:
        (cross if given.cross else report)(gpu, measured[gpu])


if __name__ == "__main__":
    main()
