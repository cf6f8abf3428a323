"""Every prediction of `mlsys` beside what it was held against: makes the page mlsys/VALIDATION.md.

    python -m tests.benchmarks.validation            print the page
    python -m tests.benchmarks.validation --write    write it; a test fails while it says something else

All numbers are computed now, from the rows that ship with the course. Where these are part of a larger set, the page says
what was found on the whole of it.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlsys.dtypes import decode
from mlsys.gpu.attention_traffic import (
    GPT2_MEDIUM,
    PUBLISHED,
    PUBLISHED_COLS,
    backward_bytes,
    by_keys_bytes,
    naive_backward_bytes,
    naive_bytes,
)
from mlsys.gpu.coalescing import coalesce
from mlsys.gpu.gemm_validation import validation_rows
from mlsys.gpu.occupancy import occupancy
from mlsys.gpu.sgemm_ladder import ladder
from mlsys.profile.simulate import Loop, all_reduce_s, simulate
from mlsys.specs.architecture import chinchilla
from mlsys.specs.models import GPT3_2_7B, GPT3_LARGE, GPT3_MEDIUM, GPT3_SMALL, GPT3_XL, MODELS
from mlsys.specs.sm import sm
from mlsys.specs.training_runs import GPT3_TABLE_D1, KORTHIKANTI_STEPS, PALM_STEP
from mlsys.transformer import counts
from mlsys.viz.occupancy import plain_division

DATA = Path(__file__).resolve().parents[1] / "mlsys" / "data"
PAGE = Path(__file__).resolve().parents[2] / "mlsys" / "VALIDATION.md"
HEAD = """# What the simulators predict, and how far off they are

Made by `python -m tests.benchmarks.validation --write`; a test holds it equal to what that prints. *Withheld* says whether a
constant was fitted to other rows of the same data. *Trivial* is the error of the simplest model that somebody might use instead,
on the same rows; *others* is what the best published simulator or model says of itself on such data.

| prediction | held against | rows | error | trivial | others | what is left out, and which way that errs |
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """One line of the page."""

    what: str
    against: str
    rows: int
    error: str
    trivial: str
    others: str
    left_out: str

    def text(self) -> str:
        cells = (self.what, self.against, f"{self.rows:,}", self.error, self.trivial, self.others, self.left_out)
        return "| " + " | ".join(cells) + " |\n"


def table(name: str) -> list[dict[str, str]]:
    """Rows of a data file of the tests."""
    with open(DATA / name, encoding="utf-8") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def wrong(differ: Iterator[bool], of: int) -> str:
    number = sum(map(bool, differ))
    return "exact" if number == 0 else f"{number} of {of} differ"


def parameter_rows() -> Iterator[Row]:
    rows = [row for row in table("parameter_counts.csv")]
    naive = [12 * MODELS[row["model"]].layers * MODELS[row["model"]].d_model ** 2 for row in rows]
    off = np.mean([abs(guess / int(row["total"]) - 1) for guess, row in zip(naive, rows)])
    yield Row(
        "parameters of a transformer", "models built in transformers 5.24 and counted", len(rows),
        wrong((counts.parameters(MODELS[row["model"]]) != int(row["total"]) for row in rows), len(rows)), f"12Ld²: {off:.0%}", "-", "-",
    )  # fmt: skip
    rows = table("chinchilla_models.csv")
    sizes = [[int(row[key]) for key in ("d_model", "layers", "heads", "head_dim", "d_ff")] for row in rows]
    ours = [counts.parameters(chinchilla(d, layers, heads, width, d_ff=f)) for d, layers, heads, width, f in sizes]
    yield Row(
        "the same, millions", "Chinchilla, Table A9 (arXiv 2203.15556)", len(rows),
        wrong((round(n / 1e6) != int(row["printed_millions"]) for n, row in zip(ours, rows)), len(rows)), "-", "-", "-",
    )  # fmt: skip


def training_rows() -> Iterator[Row]:
    off = [abs(counts.run_flops(run) / run.flops - 1) for run in GPT3_TABLE_D1]
    yield Row("training FLOPs by 6ND", "GPT-3, Table D.1 (arXiv 2005.14165)", len(off), f"mean {np.mean(off):.2%}, most {max(off):.2%}",
              "-", "-", "attention scores: errs low, by 1 to 3 % at 2,048 tokens")  # fmt: skip
    steps = [*KORTHIKANTI_STEPS, PALM_STEP]
    off = [abs(counts.mfu(step) - step.mfu) for step in steps]
    yield Row("model FLOPs utilisation of a measured step", "PaLM (arXiv 2204.02311), Korthikanti (arXiv 2205.05198)", len(off),
              f"at most {100 * max(off):.2f} points", "-", "-", "the step's time is given, not predicted")  # fmt: skip


def occupancy_rows() -> Iterator[Row]:
    rows = table("occupancy_oracle.csv")
    columns = [np.array([row[key] if key == "compute_capability" else int(row[key]) for row in rows]) for key in (
        "compute_capability", "threads_per_block", "regs_per_thread", "static_smem_bytes", "dynamic_smem_bytes")]  # fmt: skip
    more = {name: np.array([int(row[key]) for row in rows]) for name, key in (
        ("carveout_percent", "carveout_percent"), ("opt_in", "optin_smem_limit"), ("barriers", "block_barriers"))}  # fmt: skip
    found = occupancy(*columns, **more)
    blocks = np.array([int(row["active_blocks_per_sm"]) for row in rows])
    limiters = np.array([row["limiters"] for row in rows])
    plain = [plain_division(threads, regs, static + dynamic, sm(name)) for name, threads, regs, static, dynamic in zip(*columns)]
    yield Row("blocks on an SM and what limits them", "the vendor's calculator (cuda_occupancy.h of CUDA 13.0), 7.0 to 12.1", len(rows),
              wrong((found.blocks_per_sm != blocks) | (found.limiters != limiters), len(rows)) + "; on all 23,744 rows too",
              f"plain division: {np.mean(np.array(plain) != blocks):.0%} wrong", "-",
              "clusters and launch order; occupancy is no speed")  # fmt: skip


def memory_rows() -> Iterator[Row]:
    rows = table("coalescing_sectors.csv")
    differ, plain = [], []
    for row in rows:
        size, stride, start = (int(row[key]) for key in ("element_bytes", "stride_elements", "start_offset_bytes"))
        moved = coalesce(start + np.arange(32).reshape(1, 32) * size * stride, size)
        differ.append((moved.sectors, moved.lines) != (int(row["sectors_per_warp_request"]), int(row["cache_lines_touched"])))
        plain.append(size != int(row["sectors_per_warp_request"]))
    yield Row("sectors and lines of a request", "a table derived from the CUDA Programming Guide", len(rows),
              wrong(differ, len(rows)), f"bytes asked / 32: {np.mean(plain):.0%} wrong", "-",
              "caches: true traffic can be lower, never higher")  # fmt: skip


def format_rows() -> Iterator[Row]:
    rows = table("number_format_codes.csv")
    values = [decode([int(row["code"])], row["format"])[0] for row in rows]
    differ = [not (a == np.float32(row["value"]) or np.isnan(a) and row["value"] == "nan") for a, row in zip(values, rows)]
    yield Row("values of all number formats", "ml_dtypes 0.6 and the headers of CUDA 13.0", len(rows),
              wrong(differ, len(rows)) + "; so are 1,005 x 16 conversions", "-", "-", "-")  # fmt: skip


def gemm_rows() -> Iterator[Row]:
    for row in validation_rows():
        yield Row(f"time of {row.data.split(',')[0]} on {row.data.split(',')[1].strip().upper()}",
                  "medians measured for Vidur (MIT licence), withheld from the fit", row.rows,
                  f"MAPE {row.mape:.1f} %, median {row.median:.1f}, p90 {row.p90:.1f}, bias {row.bias:+.1f}",
                  f"3-parameter roofline {row.baseline_mape:.1f} %", f"roofline with waves, in-sample {row.anchor_mape:.1f} %",
                  "the library's choice of kernel is not always the best: errs low at 128 < m < 1,024, by up to 1.8 times")  # fmt: skip
    found = ladder()
    ratios = np.array([step.gflops / step.published for step in found])
    order = np.argsort([s.gflops for s in found]).tolist() == np.argsort([s.published for s in found]).tolist()
    yield Row("speed of nine SGEMM kernels", "siboehm/SGEMM_CUDA (MIT licence), RTX A6000; nothing fitted to it", len(found),
              f"order {'right' if order else 'WRONG'}, {ratios.min():.2f} to {ratios.max():.2f} times", "-", "-",
              "the clock under load, address arithmetic: fast kernels come out too fast")  # fmt: skip


def attention_rows() -> Iterator[Row]:
    ours = fused_and_plain()
    yield Row("HBM bytes of attention, forward and backward", "FlashAttention, Figure 2 (arXiv 2205.14135)", 2,
              f"fused {ours[1] / PUBLISHED['HBM GB'][1] - 1:+.0%}, plain {ours[0] / PUBLISHED['HBM GB'][0] - 1:+.0%}", "-", "-",
              "plain: kernels that the figure does not name; fused: fp32 outputs and repeats that L2 serves nearly cancel")  # fmt: skip


def fused_and_plain() -> tuple[float, float]:
    """GB of the plain and of the fused way."""
    plain = naive_bytes(GPT2_MEDIUM) + naive_backward_bytes(GPT2_MEDIUM)
    fused = by_keys_bytes(GPT2_MEDIUM, 64, PUBLISHED_COLS) + backward_bytes(GPT2_MEDIUM, 64, PUBLISHED_COLS)
    return plain / 1e9, fused / 1e9


STEPS = {GPT3_SMALL: 1.31e6, GPT3_MEDIUM: 503e3, GPT3_LARGE: 245e3, GPT3_XL: 169e3, GPT3_2_7B: 85e3}  # tokens/s on 8 A100
ALL_REDUCE_US = {1 << 20: 92.8, 4 << 20: 95.8, 16 << 20: 232.4, 32 << 20: 358.1, 128 << 20: 1162.0, 512 << 20: 4191.5}  # by bytes


def profile_rows() -> Iterator[Row]:
    speeds = []
    for model, published in STEPS.items():
        begin, end = simulate(Loop(model=model, batch=8, seq=2048, ranks=8, steps=4)).steady(2)
        speeds.append(2 * 8 * 8 * 2048 / (end - begin) / published)
    yield Row("tokens a second of simulated training, 8 A100", "Dao-AILab/flash-attention, training/README.md", len(speeds),
              f"{min(speeds):.2f} to {max(speeds):.2f} times as fast", "-", "-",
              "efficiency of kernels below their roofline, overlap that costs both sides: always too fast")  # fmt: skip
    off = np.array([all_reduce_s(size, 8) * 1e6 / us - 1 for size, us in ALL_REDUCE_US.items()])
    yield Row("all-reduce of 8 A100 in one node", "nccl-tests in VIA-Research/vTrain (MIT licence), 1 to 512 MiB", len(off),
              f"MAPE {100 * np.mean(abs(off)):.0f} %, most {100 * max(abs(off)):.0f}", "-", "ASTRA-sim: 2.8 to 21 % (other chips)",
              "the choice of algorithm and protocol")  # fmt: skip


def page() -> str:
    """The whole page."""
    parts = (parameter_rows, training_rows, occupancy_rows, memory_rows, format_rows, gemm_rows, attention_rows, profile_rows)
    return HEAD + "".join(row.text() for part in parts for row in part())


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())
