"""The timeline explorer: two ranks of a training loop with a fault of your choice, at any zoom.

Host, streams and idle time of each rank, one row each; the window moves and narrows. What the window holds is added up
above the picture. GPT-2 small on two A100, simulated: see `mlsys.profile.simulate` for what that leaves out.
Lessons: reading a profiler.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

from ..profile.account import layered
from ..profile.intervals import clip, length
from ..profile.simulate import Loop, simulate
from ..profile.trace import Trace
from ..units import percent
from ..viz.picture import INK, Picture, tick_text, ticks
from ..viz.timeline import Rows, draw_key, draw_tracks, rows_of
from .base import Explorer, choice, float_slider, stops

STEPS = 6
BASE = dict(ranks=2, steps=STEPS)
LOOPS = {
    "none": Loop(**BASE),
    "input: one slow loader worker": Loop(**BASE, load_s=18e-3, workers=1),
    "sync: the host reads the loss in every step": Loop(**BASE, syncs=1),
    "launch: eager, optimizer loops over tensors": Loop(**BASE, batch=2, fused=False, fused_optimizer=False, launch_s=15e-6),
    "overlap: all-reduce after backward": Loop(**BASE, overlap=False),
    "straggler: rank 1 is 1.5 times slower": Loop(**BASE, slow_rank=1, slow_factor=1.5),
}
WIDTHS = [("0.2 ms", 0.2e-3), ("0.5 ms", 0.5e-3), ("1 ms", 1e-3), ("2 ms", 2e-3), ("5 ms", 5e-3), ("10 ms", 10e-3), ("20 ms", 20e-3),
          ("50 ms", 50e-3), ("100 ms", 100e-3)]  # fmt: skip
LEFT, TOP, WIDTH = 122, 44, 600


@cache
def run(fault: str) -> tuple[Trace, Rows, np.ndarray]:
    """The trace of one of `LOOPS`, the same each time; its rows for a picture; where its steps begin, in seconds."""
    trace = simulate(LOOPS[fault])
    return trace, rows_of(trace), np.concatenate([[trace.start_s], trace.step_ends()])


@cache
def device(fault: str) -> list[dict[str, np.ndarray]]:
    """For each rank the intervals of its device: kernels, collectives, copies."""
    trace, _, _ = run(fault)
    kinds = {"compute": "kernel", "exposed communication": "nccl", "exposed copies": "memcpy"}
    return [{name: trace.intervals(kind=kind, rank=rank) for name, kind in kinds.items()} for rank in trace.ranks]


@lru_cache(maxsize=4)
def accounts(fault: str, begin: float, end: float) -> list[dict[str, float]]:
    """For each rank the shares of the window: the device's account, and "hidden": communication beside kernels."""
    found = []
    for parts in device(fault):
        seconds = layered(parts, (begin, end))
        seconds["hidden"] = length(clip(parts["exposed communication"], (begin, end))) - seconds["exposed communication"]
        found.append({name: value / (end - begin) for name, value in seconds.items()})
    return found


class TimelineExplorer(Explorer):
    """Tracks of two ranks in a window of a trace, with its account."""

    def __init__(self):
        for fault in LOOPS:  # now rather than at the first look at each
            device(fault)
        self.fault = choice("fault", list(LOOPS))
        self.start = float_slider("window starts at step", 3.0, 0.0, float(STEPS), 0.02)
        self.width = stops("width of the window", WIDTHS, 20e-3)
        super().__init__([self.fault, self.start, self.width])

    def window(self) -> tuple[float, float]:
        """In seconds; a window that would reach beyond the end of the trace is moved back."""
        trace, _, steps = run(self.fault.value)
        begin = float(np.interp(self.start.value, np.arange(len(steps)), steps))
        begin = max(min(begin, trace.end_s - self.width.value), trace.start_s)
        return begin, begin + self.width.value

    def sentence(self) -> str:
        begin, end = self.window()
        said = [f"rank {rank}: compute {percent(a['compute'])}, exposed communication {percent(a['exposed communication'])} "
                f"(hidden {percent(a['hidden'])}), idle {percent(a['idle'])}"
                for rank, a in enumerate(accounts(self.fault.value, begin, end))]
        waits = clip(run(self.fault.value)[0].intervals(kind="sync", rank=0), (begin, end))
        host = f"; rank 0's host waits for its device {percent(length(waits) / (end - begin))}" if len(waits) else ""
        return f"{begin * 1e3:.1f} to {end * 1e3:.1f} ms. {'; '.join(said)}{host}. Shares are of the window."

    def finding(self) -> str:
        """The title: what costs most in this window."""
        a, b = accounts(self.fault.value, *self.window())
        lost = max(("idle", "exposed communication"), key=lambda name: a[name])
        if a[lost] < 0.1 and b[lost] < 0.1:
            return f"Kernels run on rank 0 for {percent(a['compute'])} of this window"
        if abs(a["exposed communication"] - b["exposed communication"]) > 0.1:
            share, first = max((part["exposed communication"], rank) for rank, part in enumerate((a, b)))
            return f"Rank {first} waits in its all-reduce for rank {1 - first}: {percent(share)} of this window"
        words = {"idle": "Rank 0's GPU stands idle for", "exposed communication": "Communication that no kernel hides takes"}
        return f"{words[lost]} {percent(a[lost])} of this window"

    def draw(self) -> Picture:
        begin, end = self.window()
        picture = Picture(760, 382, f"Timeline of two ranks. {self.sentence()}")
        picture.text(16, 22, self.finding(), 14, bold=True)
        bottom = draw_tracks(picture, (LEFT, TOP, WIDTH), run(self.fault.value)[1], (begin, end))
        picture.line([(LEFT, bottom + 4), (LEFT + WIDTH, bottom + 4)], INK, 1)
        for value in ticks((begin * 1e3, end * 1e3)):
            x = LEFT + WIDTH * (value * 1e-3 - begin) / (end - begin)
            picture.line([(x, bottom + 4), (x, bottom + 8)], INK, 1)
            picture.text(x, bottom + 21, tick_text(value), 11, "middle")
        picture.text(LEFT + WIDTH, bottom + 36, "ms since the start of the run", 12, "end")
        draw_key(picture, 16, bottom + 48)
        return picture
