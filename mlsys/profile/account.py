"""Accounts of a window: where the wall time of a rank went, on the device and on the host.

Every moment of the window gets one entry, so the parts sum to the wall: a moment counts as compute if any kernel runs,
else as exposed communication, else as exposed copy, else as idle. Percentages are of wall. The host's account sorts its
time by what it did, waiting included; time in which the host has no row is idle.
Left out: that a collective which runs beside kernels slows them, and that a busy GPU may be busy with one block.
Lessons: reading a profiler.
"""

from __future__ import annotations

import numpy as np

from . import intervals as iv
from .trace import Trace

WAITS = ("sync", "wait for batch")  # kind or name of host rows in which the host does nothing


def device_account(trace: Trace, rank: int = 0, window: tuple[float, float] | None = None) -> dict[str, float]:
    """Seconds of the window by what the device of a rank did. window: the whole trace if None.

    >>> from mlsys.profile.simulate import Loop, simulate
    >>> trace = simulate(Loop(ranks=2, overlap=False))
    >>> window = trace.steady(rank=0)
    >>> {name: f"{s / (window[1] - window[0]):.0%}" for name, s in device_account(trace, 0, window).items()}
    {'compute': '75%', 'exposed communication': '23%', 'exposed copies': '0%', 'idle': '2%'}
    """
    window = window or (trace.start_s, trace.end_s)
    order = (("compute", "kernel"), ("exposed communication", "nccl"), ("exposed copies", "memcpy"))
    return layered({name: trace.intervals(kind=kind, rank=rank) for name, kind in order}, window)


def layered(parts: dict[str, np.ndarray], window: tuple[float, float]) -> dict[str, float]:
    """Seconds of a window that each part adds to what the parts before it cover, and "idle": what none covers.

    >>> layered({"compute": np.array([[0.0, 4.0]]), "communication": np.array([[3.0, 6.0]])}, (0, 10))
    {'compute': 4.0, 'communication': 2.0, 'idle': 4.0}
    """
    found, covered, before = {}, iv.as_intervals([]), 0.0
    for name, rows in parts.items():
        covered = iv.union(np.concatenate([covered, iv.clip(rows, window)]))
        total = iv.length(covered)
        found[name], before = total - before, total
    return {**found, "idle": window[1] - window[0] - before}


def host_account(trace: Trace, rank: int = 0, window: tuple[float, float] | None = None) -> dict[str, float]:
    """Seconds of the window by what the host thread of a rank did: launching, waiting, other work, nothing.

    A launch that is held up by a full queue counts as launching, as it does in every profiler.
    """
    window = window or (trace.start_s, trace.end_s)
    rows = [event for event in trace.events if event.rank == rank and event.track == "host"]
    sort = {"launch": [], "wait": [], "work": []}
    for event in rows:
        key = "wait" if event.kind in WAITS or event.name in WAITS else "launch" if event.kind == "launch" else "work"
        sort[key].append((event.start_s, event.end_s))
    found = {name: iv.length(iv.clip(part, window)) for name, part in sort.items()}
    everything = [row for part in sort.values() for row in part]
    return {**found, "idle": iv.length(iv.gaps(everything, window))}


def kernel_table(trace: Trace, rank: int = 0, window: tuple[float, float] | None = None) -> list[tuple[str, int, float]]:
    """(name, calls, seconds in all) of the kernels that begin in the window, the longest first.

    Seconds are summed over calls, as a profiler's table does; where kernels overlap they are more than the busy time.
    """
    window = window or (trace.start_s, trace.end_s)
    sums: dict[str, list[float]] = {}
    for event in trace.events:
        if event.kind == "kernel" and event.rank == rank and window[0] <= event.start_s < window[1]:
            entry = sums.setdefault(event.name, [0, 0.0])
            entry[0] += 1
            entry[1] += event.duration_s
    return sorted(((name, int(calls), time) for name, (calls, time) in sums.items()), key=lambda row: -row[2])
