"""A trace: what ran, on which track, from when to when.

A profiler writes one row for each thing that it saw: a kernel on a stream of a GPU, a copy, a call on the host. All
questions of the lesson (who was busy, who waited, what hid behind what) are questions about these rows.
Left out: everything inside a kernel, call stacks, memory use. A real profiler also slows down what it watches, by
microseconds for each call; a trace made here is not slowed down, so short calls look cheaper than in a recorded one.
Lessons: reading a profiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

DEVICE = ("kernel", "memcpy", "nccl")  # what occupies a GPU
HOST = ("launch", "sync", "cpu")  # what a thread of the host does, waiting included
KINDS = DEVICE + HOST


@dataclass(frozen=True)
class Event:
    """One row. track: a stream ("compute", "copy", "comm") or a thread ("host", "loader 0") of that rank.

    kind: "kernel", "memcpy", "nccl" (a collective) on the device; "launch" (a call that hands work to the device),
    "sync" (the host waits for the device), "cpu" (anything else) on the host.
    step: of the training loop, -1 if none; flow: the same number on a launch and on what it launched, -1 if none.
    """

    name: str
    kind: str
    track: str
    start_s: float
    duration_s: float
    rank: int = 0
    step: int = -1
    flow: int = -1

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


@dataclass(frozen=True)
class Trace:
    """Events of one run, of all its ranks, on one clock.

    >>> trace = Trace((Event("gemm", "kernel", "compute", 0.0, 2e-3), Event("sync", "sync", "host", 0.0, 2e-3)))
    >>> trace.wall_s, trace.intervals(kind="kernel").tolist()
    (0.002, [[0.0, 0.002]])
    """

    events: tuple[Event, ...]

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The events as arrays: start and end in seconds, kind as its place in `KINDS`, track, rank, step."""
        unknown = {event.kind for event in self.events} - set(KINDS)
        if unknown:
            raise ValueError(f"kind={min(unknown)!r} is none of {', '.join(KINDS)}")
        start = np.array([event.start_s for event in self.events], float)
        duration = np.array([event.duration_s for event in self.events], float)
        found = {"start": start, "end": start + duration, "kind": np.array([KINDS.index(event.kind) for event in self.events], int)}
        for name, kind in (("rank", int), ("step", int), ("track", str)):
            found[name] = np.array([getattr(event, name) for event in self.events], kind)
        return found

    @property
    def start_s(self) -> float:
        return float(self.columns["start"].min())

    @property
    def end_s(self) -> float:
        return float(self.columns["end"].max())

    @property
    def wall_s(self) -> float:
        """From the first start to the last end."""
        return self.end_s - self.start_s

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        return tuple(int(rank) for rank in np.unique(self.columns["rank"]))

    def tracks(self, rank: int = 0) -> tuple[str, ...]:
        """Tracks of a rank, in the order of their first row."""
        return tuple(dict.fromkeys(event.track for event in self.events if event.rank == rank))

    def mask(self, kind: str | Sequence[str] | None = None, track: str | None = None, rank: int | None = None,
             step: int | None = None) -> np.ndarray:
        """Which events have these properties; None asks for nothing."""
        found = np.ones(len(self.events), bool)
        if kind is not None:
            kinds = (kind,) if isinstance(kind, str) else kind
            found &= np.array([one in kinds for one in KINDS])[self.columns["kind"]]
        for name, value in (("track", track), ("rank", rank), ("step", step)):
            if value is not None:
                found &= self.columns[name] == value
        return found

    def select(self, **properties) -> Trace:
        """The events with these properties (as in `mask`), as a trace."""
        return Trace(tuple(self.events[i] for i in np.flatnonzero(self.mask(**properties))))

    def intervals(self, **properties) -> np.ndarray:
        """(start, end) of each event with these properties, in seconds: shape (n, 2), neither sorted nor merged."""
        found = self.mask(**properties)
        return np.stack([self.columns["start"][found], self.columns["end"][found]], axis=1)

    def rows(self, window: tuple[float, float] | None = None) -> list[tuple]:
        """(rank, track, kind, name, start in us, end in us) of each event that touches the window: plain data.

        >>> Trace((Event("gemm", "kernel", "compute", 0.0, 2e-3),)).rows()
        [(0, 'compute', 'kernel', 'gemm', 0.0, 2000.0)]
        """
        low, high = window or (self.start_s, self.end_s)
        inside = (event for event in self.events if event.start_s < high and event.end_s > low)
        return [(e.rank, e.track, e.kind, e.name, round(e.start_s * 1e6, 3), round(e.end_s * 1e6, 3)) for e in inside]

    def step_ends(self, rank: int | None = None) -> np.ndarray:
        """When the device finished the last thing of each step, in seconds; of one rank or of all."""
        device = self.mask(kind=DEVICE, rank=rank) & (self.columns["step"] >= 0)
        steps, where = np.unique(self.columns["step"][device], return_inverse=True)
        ends = np.full(len(steps), -np.inf)
        np.maximum.at(ends, where, self.columns["end"][device])
        return ends

    def step_times(self, rank: int | None = None) -> np.ndarray:
        """Seconds from one step's end to the next, the first counted from the start of the trace."""
        return np.diff(self.step_ends(rank), prepend=self.start_s)

    def steady(self, warmup: int = 2, rank: int | None = None) -> tuple[float, float]:
        """The window without the first steps: from the end of the last warm-up step to the end of the last step.

        Raises ValueError if no step is left.
        """
        ends = self.step_ends(rank)
        if not 0 <= warmup < len(ends):
            raise ValueError(f"warmup={warmup} leaves none of {len(ends)} steps")
        return (float(ends[warmup - 1]) if warmup else self.start_s), float(ends[-1])


def merged(traces: Iterable[Trace]) -> Trace:
    """Traces of several ranks as one; their clocks have to agree, which on real machines they do not at first."""
    return Trace(tuple(event for trace in traces for event in trace.events))
