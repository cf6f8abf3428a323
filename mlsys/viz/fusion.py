"""Pictures of fusion: what kernels move, and how attention's traffic falls with SRAM.

Lessons: fusion and IO-aware kernels.
"""

from __future__ import annotations

import numpy as np

from ..gpu.attention_traffic import Attention, by_queries_bytes, most_rows, naive_bytes
from ..units import plural
from .style import COLOUR

INK = "#222222"
HATCHES = ("", "///", "...", "\\\\\\")


def plan_bars(scores, title: str, ax=None):
    """Bytes of each kernel of several plans, one bar a plan. scores: {name: score of a plan}."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 2.2))[1]
    unit = 1e9
    for row, (_name, found) in enumerate(scores.items()):
        at = 0.0
        for number, kernel in enumerate(found.kernels):
            width = kernel.bytes_moved / unit
            ax.barh(row, width, left=at, color=COLOUR["memory"], edgecolor=INK, hatch=HATCHES[number % len(HATCHES)])
            at += width
        kernels = plural(len(found.kernels), "kernel")
        ax.annotate(f"{kernels}, {at:.2f} GB", (at, row), xytext=(6, 0), textcoords="offset points", va="center")
    ax.set_yticks(range(len(scores)), list(scores))
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.set(xlabel="GB through memory, one piece for each kernel", title=title)
    ax.set_xlim(right=max(found.bytes_moved for found in scores.values()) / unit * 1.3)
    return ax


def sram_curve(shape: Attention, cols: int, ax=None):
    """Bytes of attention against the size of SRAM, naive and tiled with as many queries as fit; log-log."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 3.8))[1]
    kib = np.geomspace(20, 1024, 120)
    rows = np.array([most_rows(int(size * 1024), shape.d, cols) for size in kib])
    kib, rows = kib[rows > 0], rows[rows > 0]
    moved = np.array([by_queries_bytes(shape, min(int(r), shape.n), cols) for r in rows])
    rule = 4 * shape.heads * shape.itemsize * shape.n**2 * shape.d**2 / (kib * 1024 / shape.itemsize)
    lines = (
        (np.full_like(kib, naive_bytes(shape)), "naive: scores in memory", COLOUR["activations"], "-."),
        (moved, "tiled, as many queries as fit", COLOUR["compute"], "-"),
        (rule, "4 n²d²/M numbers", INK, "--"),
        (np.full_like(kib, shape.floor_bytes), "everything once", INK, ":"),
    )
    for ys, name, colour, dash in lines:
        ax.plot(kib, ys / 1e9, dash, color=colour, label=name)
    for size, chip, side in ((163, "A100: 163 KiB", "right"), (227, "H100: 227 KiB", "left")):
        ax.axvline(size, color=COLOUR["idle"], linewidth=1)
        shift = -3 if side == "right" else 3
        ax.annotate(chip, (size, naive_bytes(shape) / 1e9 * 2.1), ha=side, fontsize=9, xytext=(shift, 0), textcoords="offset points")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    title = "Twice the SRAM, half the traffic; naive attention gains nothing"
    ticks = [32, 64, 128, 256, 512, 1024]
    ax.set(xscale="log", yscale="log", xlabel="SRAM, KiB (log)", ylabel="GB through memory (log)", title=title)
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(top=naive_bytes(shape) / 1e9 * 4)
    return ax
