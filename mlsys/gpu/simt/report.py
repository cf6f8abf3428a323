"""What a launch reports: plain numbers, for the whole kernel and for each of its lines.

An issue slot is one statement for one warp: every line that a warp executes with at least one
of its lanes active costs one, whatever the number of lanes. The head of a loop costs one for
each check, the last included; an `if` costs one for its condition.
Left out: a statement is several machine instructions, so a profiler shows a multiple of these
slots; time, caches, and the order in which warps run are left out altogether.
Lessons: SMs and warps, CUDA programming model, coalescing.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.gpu.banks import SharedTraffic
from mlsys.gpu.coalescing import Traffic
from mlsys.gpu.simt.masks import WARP
from mlsys.gpu.simt.races import Race


@dataclass(frozen=True)
class LineReport:
    """One line of a kernel: issue slots, active lanes in them, and its memory traffic."""

    line: int
    text: str
    issue_slots: int
    active_lanes: int
    requests: int  # to global memory
    sectors: int
    shared_requests: int
    shared_passes: int

    @property
    def active_share(self) -> float:
        """Active lanes over lanes issued."""
        return self.active_lanes / (WARP * self.issue_slots) if self.issue_slots else 0.0


@dataclass(frozen=True)
class Report:
    """What a launch did. Without trace=True everything from `issue_slots` on is None."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    threads: int  # in the whole grid
    warps: int
    shared_bytes: int  # per block
    issue_slots: int | None = None
    active_lanes: int | None = None  # summed over issue slots
    loads: Traffic | None = None  # global memory
    stores: Traffic | None = None
    atomics: Traffic | None = None
    shared: SharedTraffic | None = None  # loads, stores and atomics
    atomic_turns: int | None = None  # global and shared
    barriers: int | None = None  # barriers passed, summed over blocks
    races: tuple[Race, ...] | None = None
    lines: tuple[LineReport, ...] | None = None
    timeline: tuple[tuple[int, int], ...] | None = None  # (line, active lanes as bits), slot by slot, of one warp

    @property
    def traced(self) -> bool:
        return self.issue_slots is not None

    @property
    def active_share(self) -> float:
        """Active lanes over lanes issued: 1 without divergence and with full warps."""
        return self.active_lanes / (WARP * self.issue_slots) if self.issue_slots else 0.0

    @property
    def requests(self) -> int:
        """Requests to global memory."""
        return self.loads.requests + self.stores.requests + self.atomics.requests

    @property
    def sectors(self) -> int:
        """32-byte sectors of global memory, loads and stores and atomics."""
        return self.loads.sectors + self.stores.sectors + self.atomics.sectors

    @property
    def bytes_asked(self) -> int:
        """Bytes of global memory that active lanes asked for."""
        return self.loads.bytes_asked + self.stores.bytes_asked + self.atomics.bytes_asked

    @property
    def bytes_moved(self) -> int:
        """Bytes of all sectors of global memory."""
        return self.loads.bytes_moved + self.stores.bytes_moved + self.atomics.bytes_moved

    @property
    def bank_ways(self) -> float:
        """Mean passes of a request to shared memory: 1 without bank conflicts."""
        return self.shared.passes / self.shared.requests if self.shared.requests else 0.0

    def __str__(self) -> str:
        head = f"{self.kernel}: grid {self.grid}, block {self.block}: {self.threads} threads, warps: {self.warps}"
        if not self.traced:
            return head + "; not traced"
        rows = [head, f"  issue slots     {self.issue_slots}, {self.active_share:.1%} of their lanes active"]
        for name in ("loads", "stores", "atomics"):
            t = getattr(self, name)
            if t.requests:
                rows.append(
                    f"  global {name:8} {t.requests} requests, {t.sectors} sectors ({t.sectors_per_request:.2f} each),"
                    f" {t.bytes_asked} bytes asked, {t.bytes_moved} moved"
                )
        if self.shared.requests:
            rows.append(
                f"  shared memory   {self.shared.requests} requests, {self.shared.passes} passes"
                f" ({self.bank_ways:.2f} each), {self.shared_bytes} bytes per block, {self.barriers} barriers"
            )
        if self.atomic_turns:
            rows.append(f"  atomic turns    {self.atomic_turns}")
        return "\n".join(rows + ["  " + str(race) for race in self.races])

    def table(self) -> str:
        """One row for each line of the kernel."""
        head = f"{'slots':>8} {'active':>7} {'sectors':>8} {'passes':>8}  line"
        rows = [
            f"{r.issue_slots:8} {r.active_share:7.1%} {r.sectors:8} {r.shared_passes:8}  {r.line:4} {r.text}"
            for r in self.lines
        ]
        return "\n".join([head, *rows])
