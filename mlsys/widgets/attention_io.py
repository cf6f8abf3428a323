"""The attention traffic explorer: how blocks and SRAM decide what attention moves, and what then bounds its time.

Above: what the blocks take of SRAM. In the middle: bytes between the chip and its memory against the queries in a block, for
attention that writes its scores and for the tiled one whose queries stay, with two borders: where the blocks stop fitting,
and from where on the arithmetic takes longer than the memory. Below: the times.
Left out: the L2 cache, which serves many repeated reads, so memory times are too long; registers, which hold accumulators
in real kernels, so more fits; softmax and every start, so arithmetic times are too short.
Lessons: fusion and IO-aware kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import ipywidgets as w
import numpy as np

from ..gpu.attention_traffic import (
    Attention,
    by_queries_bytes,
    forward_work,
    most_rows,
    naive_bytes,
    pairs_computed,
    sram_bytes,
)
from ..gpu.roofline import parts_s
from ..specs.accelerators import A100_80GB, H100_SXM, Accelerator
from ..units import KIB, kib, si
from ..viz.picture import INK, Axes, Picture, bars
from ..viz.style import COLOUR
from .base import Explorer, choice, slider, stops

CHIPS = {chip.name: chip for chip in (A100_80GB, H100_SXM)}
TOKENS = [(f"{n:,}", n) for n in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)]
HEADS = 16
ROWS = (16, 1024)  # of the axis
GRID = sorted({int(round(r / 16)) * 16 for r in np.geomspace(*ROWS, 25)})
FILL = {  # part of a block: colour and hatch
    "q": ("compute", "/"), "out": ("compute", ""), "k": ("memory", "/"), "v": ("memory", ""), "scores": ("activations", "x"),
    "row sums": ("idle", ""),
}


@dataclass(frozen=True)
class View:
    """What the picture shows: bytes of all heads, seconds, and the space of one block."""

    shape: Attention
    chip: Accelerator
    rows: int
    cols: int
    room_bytes: int
    needed_bytes: int
    naive: float
    tiled: float
    compute_s: float
    naive_s: float
    tiled_s: float

    @property
    def fits(self) -> bool:
        return self.needed_bytes <= self.room_bytes


class AttentionIOExplorer(Explorer):
    """Traffic of attention, naive and tiled, for a size of SRAM, blocks, length and head."""

    def __init__(self):
        self.chip = choice("chip", list(CHIPS), H100_SXM.name)
        self.tokens = stops("tokens", TOKENS, 8192)
        self.d = stops("numbers in a head", [(str(d), d) for d in (32, 64, 128, 256)], 64)
        self.sram = slider("SRAM, KiB", 100, 16, 228, 4)
        self.rows = slider("queries in a block", 64, 16, 1024, 16)
        self.cols = slider("keys in a block", 64, 16, 256, 16)
        self.causal = w.Checkbox(False, description="causal mask", indent=False)
        super().__init__([self.chip, self.tokens, self.d, self.sram, self.rows, self.cols, self.causal])

    def model(self) -> View:
        shape = Attention(self.tokens.value, self.d.value, self.causal.value, HEADS)
        chip, rows, cols = CHIPS[self.chip.value], min(self.rows.value, shape.n), min(self.cols.value, shape.n)
        naive, tiled = naive_bytes(shape), by_queries_bytes(shape, rows, cols)
        times = parts_s(forward_work(shape, tiled, pairs_computed(shape, rows, cols)), chip)
        return View(shape, chip, rows, cols, self.sram.value * KIB, sram_bytes(shape.d, rows, cols), naive, tiled,
                    times["compute"], naive / chip.mem_bw, times["memory"])

    def sentence(self) -> str:
        view = self.model()
        fits = f"takes {kib(view.needed_bytes)} of {kib(view.room_bytes)} KiB"
        if not view.fits:
            return f"A block of {view.rows} queries with {view.cols} keys {fits}: it does not fit."
        naive, tiled, least = (si(size, "B", 3) for size in (view.naive, view.tiled, view.shape.floor_bytes))
        arithmetic, traffic, before = (si(time, "s", 3) for time in (view.compute_s, view.tiled_s, view.naive_s))
        return (f"A block of {view.rows} queries with {view.cols} keys {fits}. Naive attention moves {naive}, this one {tiled}, and none "
                f"less than {least}. At its peaks the {view.chip.name} takes {arithmetic} for the arithmetic and {traffic} for the "
                f"traffic (naive: {before}).")

    def draw(self) -> Picture:
        view = self.model()
        picture = Picture(680, 548, f"Traffic of attention against block size. {self.sentence()}")
        picture.text(16, 20, finding(view), 14, bold=True)
        draw_space(picture, (60, 52, 560, 22), view)
        draw_traffic(picture, (60, 136, 470, 236), view)
        draw_times(picture, (16, 434, 648, 84), view)
        picture.text(16, 540, f"{HEADS} heads, forward, 2 bytes a number; lower bounds at peak rates, without the L2 cache", 10)
        return picture


def finding(view: View) -> str:
    """The title: whether the blocks fit, then which of the two borders they have passed."""
    if not view.fits:
        return f"Does not fit: {kib(view.needed_bytes)} KiB of {kib(view.room_bytes)}"
    if view.tiled > 0.95 * view.naive:
        return "Blocks too small: keys are read so often that nothing is saved"
    decides = "Arithmetic" if view.compute_s >= view.tiled_s else "Memory"
    return f"{decides} decides; {view.naive / view.tiled:.1f} times fewer bytes than naive attention"


def draw_space(picture: Picture, box, view: View) -> None:
    """One bar: what the block takes of SRAM, part by part, and where SRAM ends."""
    left, top, width, height = box
    d, rows, cols = view.shape.d, view.rows, view.cols
    parts = dict(zip(FILL, (rows * d, rows * d, cols * d, cols * d, rows * cols, 4 * rows)))
    most = max(view.needed_bytes, view.room_bytes)
    x = left
    for name, numbers in parts.items():
        length = width * 2 * numbers / most
        colour, hatch = FILL[name]
        picture.rect(x, top, length, height, COLOUR[colour], INK, hatch)
        if length > 8 * len(name):
            picture.text(x + length / 2, top + height + 14, name, 11, "middle")
        x += length
    end = left + width * view.room_bytes / most
    picture.line([(end, top - 6), (end, top + height + 6)], INK, 3)
    picture.text(left, top - 10, f"SRAM: {kib(view.needed_bytes)} KiB taken, {kib(view.room_bytes)} KiB there (thick line)", 12)


def draw_traffic(picture: Picture, box, view: View) -> None:
    """Bytes against queries in a block, with the borders of space and of the roofline."""
    shape, cols = view.shape, view.cols
    low, high = shape.floor_bytes / 2, max(view.naive, by_queries_bytes(shape, ROWS[0], cols)) * 1.6
    axes = Axes(picture, box, ROWS, (low, high), "queries in a block (log)", "bytes between chip and memory (log)", "xy",
                xticks=[16, 32, 64, 128, 256, 512], yticks=decades(low, high))
    right = box[0] + box[2] + 12
    grid = [r for r in sorted({*GRID, view.rows}) if r <= shape.n]
    moved = [by_queries_bytes(shape, r, cols) for r in grid]
    fit = most_rows(view.room_bytes, shape.d, cols)
    if fit < ROWS[1]:
        x = axes.x(max(fit, ROWS[0]))
        picture.rect(x, box[1], box[0] + box[2] - x, box[3], COLOUR["idle"], opacity=0.25)
        below = axes.y(view.naive) - box[1] < 20  # the line of naive attention lies where the words would stand
        picture.text(box[0] + box[2] - 4, axes.y(view.naive) + 15 if below else box[1] + 13, "does not fit", 11, "end")
    border = roofline_rows(view)
    if border and ROWS[0] < border < ROWS[1]:
        axes.plot([border, border], [low, high], COLOUR["limiter"], 1.8, "--")
        side, anchor = (4, "start") if border < 200 else (-4, "end")
        picture.text(axes.x(border) + side, box[1] + box[3] - 6, f"from {border} on arithmetic decides", 10, anchor)
    axes.plot(ROWS, (view.naive, view.naive), COLOUR["activations"], 2.2, "-.")
    axes.plot(ROWS, (shape.floor_bytes, shape.floor_bytes), INK, 1.4, ":")
    axes.plot(grid, moved, COLOUR["compute"], 2.8)
    axes.dot(max(view.rows, ROWS[0]), view.tiled, COLOUR["compute"] if view.fits else COLOUR["limiter"], 6, INK)
    gap = abs(axes.y(view.naive) - axes.y(moved[-1]))
    labels = ((view.naive, "naive", -8 if gap < 14 else 4), (moved[-1], "tiled", 4), (shape.floor_bytes, "all once", 4))
    for value, name, shift in labels:
        overlap = name == "tiled" and abs(axes.y(moved[-1]) - axes.y(shape.floor_bytes)) < 14
        picture.text(right, axes.y(value) + shift - (10 if overlap else 0), f"{name} {si(value, 'B', 3)}", 11)


def decades(low: float, high: float) -> list[float]:
    """Powers of ten between two numbers; where these are few, twice and five times as much too."""
    marks = [[m * 10.0**e for e in range(5, 15) for m in few if low <= m * 10.0**e <= high] for few in ((1,), (1, 2, 5))]
    return marks[0] if len(marks[0]) > 1 else marks[1]


def roofline_rows(view: View) -> int | None:
    """The fewest queries in a block, in steps of 16, from which on traffic takes no longer than arithmetic."""
    found = None
    for rows in range(min(ROWS[1], view.shape.n), 0, -16):
        work = forward_work(view.shape, by_queries_bytes(view.shape, rows, view.cols), pairs_computed(view.shape, rows, view.cols))
        times = parts_s(work, view.chip)
        if times["memory"] > times["compute"]:
            break
        found = rows
    return found


def draw_times(picture: Picture, box, view: View) -> None:
    """Seconds at peak rates: the arithmetic, and the traffic of both ways."""
    rows = [("arithmetic", view.compute_s), ("traffic, tiled", view.tiled_s), ("traffic, naive", view.naive_s)]
    longest = "arithmetic" if view.compute_s >= view.tiled_s else "traffic, tiled"
    fill = {"arithmetic": "compute", "traffic, tiled": "memory", "traffic, naive": "activations"}
    hatch = {"arithmetic": "", "traffic, tiled": "/", "traffic, naive": "x"}
    shown = [(name, seconds, si(seconds, "s", 3) + (", decides" if name == longest and view.fits else "")) for name, seconds in rows]
    bars(picture, box, shown, max(seconds for _, seconds in rows), lambda name: COLOUR[fill[name]], hatch.get)
