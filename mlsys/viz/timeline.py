"""Pictures of traces: tracks over time, and accounts of where the wall time went.

A screen has fewer columns than a step has kernels. Each column shows what filled most of it, and nothing where the
track was empty for more than half of it; so a gap shorter than half a column is not seen until you zoom in.
Lessons: reading a profiler.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ..profile.intervals import clip, gaps
from ..profile.trace import DEVICE, Trace
from .picture import INK, Picture
from .runs import runs
from .style import COLOUR

MEANINGS = {  # name: colour, hatch, what it says
    "matrix": (COLOUR["compute"], "", "matrix products"),
    "memory": (COLOUR["memory"], "\\", "memory-bound kernels, copies"),
    "optimizer": (COLOUR["optimizer"], "-", "optimizer"),
    "communication": (COLOUR["communication"], "/", "all-reduce"),
    "launch": ("#c9d8f7", "|", "host: launching"),
    "work": ("#ffffff", "", "host, loader: other work"),
    "wait": (COLOUR["idle"], "x", "host: waiting"),
    "idle": (COLOUR["idle"], "x", "device: idle"),
}
LINE = 24  # pixels of a row
COLUMNS = 400  # of a figure


def meaning(name: str, kind: str) -> str:
    """What an event is drawn as, one of `MEANINGS`.

    >>> meaning("qkv dx", "kernel"), meaning("gelu", "kernel"), meaning("cudaStreamSynchronize", "sync")
    ('matrix', 'memory', 'wait')
    """
    if kind == "kernel":
        words = name.split()
        product = words[-1] in ("dx", "dw", "dq", "dk") or name in PRODUCTS
        return "optimizer" if words[0] == "adamw" else "matrix" if product else "memory"
    return {"nccl": "communication", "memcpy": "memory", "launch": "launch", "sync": "wait"}.get(kind) or (
        "wait" if name == "wait for batch" else "work")


PRODUCTS = {"qkv", "projection", "mlp up", "mlp down", "logits", "scores", "values", "flash attention"}


Rows = list[tuple[int, str, dict[str, np.ndarray]]]  # rank, track, intervals by meaning


def rows_of(trace: Trace) -> Rows:
    """What a picture shows: of each rank the host, two streams and when none of its streams runs; of the first a loader.

    >>> from mlsys.profile import Event
    >>> trace = Trace((Event("qkv", "kernel", "compute", 0.0, 1.0), Event("adamw", "kernel", "compute", 2.0, 1.0)))
    >>> [(track, list(parts)) for rank, track, parts in rows_of(trace)]
    [('compute', ['matrix', 'optimizer']), ('device idle', ['idle'])]
    """
    rows: Rows = []
    look = cache(meaning)
    for rank in trace.ranks:
        for track in ("loader 0", "host", "compute", "comm"):
            found: dict[str, list] = {}
            for i in np.flatnonzero(trace.mask(track=track, rank=rank)) if track != "loader 0" or rank == 0 else ():
                event = trace.events[i]
                found.setdefault(look(event.name, event.kind), []).append((event.start_s, event.end_s))
            if found:
                rows.append((rank, track, {name: np.array(part) for name, part in found.items()}))
        idle = gaps(trace.intervals(kind=DEVICE, rank=rank), (trace.start_s, trace.end_s))
        rows.append((rank, "device idle", {"idle": idle}))
    return rows


def filled(rows: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """How much of each column between neighbouring edges the intervals cover, in seconds; they must not overlap.

    >>> filled(np.array([[0.0, 1.5], [2.0, 3.0]]), np.array([0.0, 1.0, 2.0, 3.0])).tolist()
    [1.0, 0.5, 1.0]
    """

    def before(points):  # covered time up to each edge: of all begun intervals, less what lies behind their ends
        order = np.sort(points)
        sums = np.concatenate([[0.0], np.cumsum(order)])
        count = np.searchsorted(order, edges)
        return count * edges - sums[count]

    return np.diff(before(rows[:, 0]) - before(rows[:, 1]))


def columns(by_meaning: dict[str, np.ndarray], window: tuple[float, float], count: int) -> list[tuple[str, int, int]]:
    """(meaning, first column, column behind the last) of what fills most of each column of a window."""
    edges = np.linspace(*window, count + 1)
    names = list(by_meaning)
    if not names:
        return []
    parts = np.stack([filled(clip(by_meaning[name], window), edges) for name in names])
    best = np.where(parts.sum(0) >= 0.5 * (edges[1] - edges[0]), parts.argmax(0), -1)
    return [(names[part], first, end) for part, first, end in runs(best) if part >= 0]


def draw_tracks(picture: Picture, box: tuple[float, float, float], rows: Rows, window: tuple[float, float]) -> float:
    """Rows of `rows_of` into a picture; box: left, top, width. Returns the y of the bottom."""
    left, top, width = box
    for number, (rank, track, parts) in enumerate(rows):
        y = top + LINE * number + 6 * rank
        picture.text(left - 8, y + 15, f"rank {rank} {track}", 11, "end")
        picture.line([(left, y + LINE - 3), (left + width, y + LINE - 3)], INK, 0.4)
        for name, first, last in columns(parts, window, int(width) // 2):
            colour, hatch, _ = MEANINGS[name]
            wide = 2 * (last - first)
            picture.rect(left + 2 * first, y + 3, wide, LINE - 6, colour, INK if wide >= 6 else "none", hatch if wide >= 6 else "")
    return y + LINE


def draw_key(picture: Picture, left: float, top: float) -> None:
    """What the colours mean, four in a line."""
    for number, (colour, hatch, text) in enumerate(MEANINGS.values()):
        x, y = left + (0, 160, 400, 570)[number % 4], top + 18 * (number // 4)
        picture.rect(x, y, 20, 12, colour, INK, hatch)
        picture.text(x + 26, y + 11, text, 11)


def timeline(trace: Trace, window: tuple[float, float], title: str, ax=None):
    """The tracks of a trace in a window, in ms from its start; a track with nothing in the window is left out."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    rows = [(f"rank {rank} {track}", columns(parts, window, COLUMNS)) for rank, track, parts in rows_of(trace)]
    rows = [(name, pieces) for name, pieces in rows if pieces]
    ax = ax or plt.subplots(figsize=(8.6, 0.9 + 0.3 * len(rows)))[1]
    width, used = (window[1] - window[0]) * 1e3 / COLUMNS, set()
    for number, (_, pieces) in enumerate(rows):
        for name, first, last in pieces:
            colour, hatch, _ = MEANINGS[name]
            edge = 0.6 if last - first > 3 else 0.0
            ax.broken_barh([(first * width, (last - first) * width)], (number - 0.4, 0.8), facecolor=colour, edgecolor="#222222",
                           linewidth=edge, hatch=2 * hatch if edge else "")
            used.add(name)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.set(xlim=(0, COLUMNS * width), ylim=(len(rows) - 0.4, -0.6), xlabel="ms", title=title)
    ax.grid(False)
    shown = [look for name, look in MEANINGS.items() if name in used]
    key = [Patch(facecolor=colour, edgecolor="#222222", hatch=2 * hatch, label=text) for colour, hatch, text in shown]
    ax.legend(handles=key, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8.5)
    return ax


ACCOUNT = {  # part: colour, hatch
    "compute": ("compute", ""), "exposed communication": ("communication", "//"), "exposed copies": ("memory", "\\\\"),
    "idle": ("idle", "xx"),
}  # fmt: skip


def account_bars(accounts: dict[str, dict[str, float]], title: str, ax=None):
    """Where a step's time went, one bar for each trace: accounts of `device_account`, in seconds of one step."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7.4, 0.9 + 0.42 * len(accounts)))[1]
    names = list(accounts)
    left = np.zeros(len(names))
    for part, (colour, hatch) in ACCOUNT.items():
        values = 1e3 * np.array([accounts[name][part] for name in names])
        if values.sum() > 0.01:
            ax.barh(names, values, left=left, color=COLOUR[colour], edgecolor="#222222", linewidth=0.6, hatch=hatch, label=part)
        left += values
    for y, total in enumerate(left):
        ax.annotate(f"{total:.1f}", (total, y), xytext=(5, 0), textcoords="offset points", va="center")
    ax.invert_yaxis()
    ax.set(xlabel="ms of one step", title=title, xlim=(0, 1.12 * left.max()))
    ax.grid(axis="y", visible=False)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax
