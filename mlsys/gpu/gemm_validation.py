"""The GEMM model against measured times that no constant was fitted to.

`mlsys/data/gemm_sample.csv` holds the rows that `tests/benchmarks/gemm_fit.py` keeps from the fit by a hash of their sizes:
917 medians of linear layers in fp16 on three GPUs, from microsoft/vidur (MIT licence). The mean errors are uncertain: with
(n, k) pairs drawn anew (bootstrap), 95 % of them lie within 5.0 to 6.6, 5.7 to 8.4 and 5.3 to 7.4 % on A100, A40 and H100.
In five-fold cross-validation over pairs on three times as many rows they are 5.4, 6.7 and 6.5 %; A100's within 5.0 to 5.8.
The shared constants of the model were chosen with all of these rows in view.
Lessons: tiling.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .gemm import roofline_s, time_s
from .gemm_constants import ROOFLINE

# MAPE in % of a roofline with waves, fitted to the 62,088 shapes of the same source and measured on the same
ANCHOR = {"a100": 6.63, "a40": 8.18, "h100": 9.41}


@dataclass(frozen=True)
class ValidationRow:
    """Errors in per cent on held-out measurements. baseline: of `roofline_s`; anchor: of a roofline with waves, in-sample."""

    data: str
    rows: int
    mape: float
    median: float
    p90: float
    bias: float
    baseline_mape: float
    anchor_mape: float


def measured() -> dict[str, np.ndarray]:
    """{gpu: rows of m, n, k, seconds}, held out from the fit; read anew at each call.

    >>> {gpu: rows.shape[1] for gpu, rows in measured().items()}
    {'a100': 4, 'a40': 4, 'h100': 4}
    """
    rows: dict[str, list] = {}
    path = Path(__file__).parents[1] / "data" / "gemm_sample.csv"
    lines = (line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    for row in csv.DictReader(lines):
        sizes = [int(row[name]) for name in "MNK"]
        rows.setdefault(row["gpu"], []).append((*sizes, float(row["time_median_ms"]) * 1e-3))
    return {gpu: np.array(found) for gpu, found in rows.items()}


def validation_rows() -> list[ValidationRow]:
    """One row a GPU, computed now.

    >>> all(row.mape < row.baseline_mape for row in validation_rows())
    True
    """
    found = []
    for gpu, rows in measured().items():
        sizes, seconds = rows[:, :3].T, rows[:, 3]
        off = 100 * (time_s(gpu, *sizes) / seconds - 1)
        plain = 100 * np.abs(roofline_s(gpu, *sizes, *ROOFLINE[gpu]) / seconds - 1)
        numbers = np.mean(abs(off)), np.median(abs(off)), np.quantile(abs(off), 0.9), np.mean(off), np.mean(plain), ANCHOR[gpu]
        found.append(ValidationRow(f"fp16 GEMM, {gpu}, held out", len(rows), *(float(number) for number in numbers)))
    return found
