"""The tracer: watches a launch and adds up issue slots, memory requests, barriers and races.

Accesses whose pattern is the same in every block are counted for one block and multiplied.
Local arrays are not counted: on a GPU they live in registers as long as their indices are known
when the kernel is compiled, and in global memory otherwise, so the true traffic can be higher.
Lessons: SMs and warps, CUDA programming model, coalescing.
"""

from __future__ import annotations

import linecache
from collections import defaultdict

import numpy as np

from mlsys.gpu.banks import WORD, SharedTraffic, conflicts
from mlsys.gpu.coalescing import LINE, Traffic, coalesce
from mlsys.gpu.simt.atomics import atomic_turns
from mlsys.gpu.simt.masks import WARP, Geometry, Mask
from mlsys.gpu.simt.memory import Array
from mlsys.gpu.simt.races import KINDS, Race, RaceLog
from mlsys.gpu.simt.report import LineReport

FILE = 1_000_000  # lines of the second file are numbered from here, of the third from twice that


class Tracer:
    """Counts of one launch."""

    def __init__(self, geometry: Geometry, filename: str, watched: int | None = None):
        self.geometry, self.files, self.watched = geometry, [filename], watched
        if watched is not None and not 0 <= watched < geometry.warps:
            raise ValueError(f"timeline={watched}: the launch has warps 0 to {geometry.warps - 1}.")
        self.timeline: list[tuple[int, int]] = []
        self.slots: dict[int, list[int]] = defaultdict(lambda: [0, 0])  # line: issue slots, active lanes
        self.traffic: dict[tuple, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])  # (space, kind, line): counts
        self.patterns: dict[tuple, tuple] = {}  # (array, kind, line): the last pattern and its cost
        self.barriers = 0
        self.epoch: int | np.ndarray = 0  # barriers that each block has passed; one number while all agree
        self.logs: dict[int, RaceLog] = {}

    def slot(self, line: int, mask: Mask) -> None:
        warps, lanes = mask.count(self.geometry)
        entry = self.slots[line]
        entry[0] += warps
        entry[1] += lanes
        if self.watched is not None:
            block, warp = divmod(self.watched, self.geometry.warps_per_block)
            row = mask.rows(self.geometry)[warp + (block * self.geometry.warps_per_block if len(mask.lanes) > 1 else 0)]
            if row.any():
                self.timeline.append((line % FILE, int(np.packbits(row, bitorder="little").view("<u4")[0])))

    def file(self, filename: str) -> int:
        """What to add to the line numbers of a file, so that lines of two files stay apart."""
        if filename not in self.files:
            self.files.append(filename)
        return self.files.index(filename) * FILE

    def source(self, number: int) -> tuple[int, str]:
        """Line and its text."""
        return number % FILE, linecache.getline(self.files[number // FILE], number % FILE).strip()

    def barrier(self, mask: Mask) -> None:
        if mask.every:
            self.epoch = self.epoch + 1
            self.barriers += self.geometry.blocks
        elif mask.some:
            waiting = np.broadcast_to(mask.lanes, self.geometry.shape).any(1)[:, None]
            self.epoch = self.epoch + waiting
            self.barriers += int(waiting.sum())

    def access(self, array: Array, kind: str, position: np.ndarray, mask: Mask, line: int) -> None:
        if array.space == "local" or not mask.some:
            return
        entry = self.traffic[array.space, kind, line]
        for k, count in enumerate(self.cost(array, kind, position, mask, line)):
            entry[k] += count
        if array.space == "shared" or array.watched:
            if id(array) not in self.logs:
                self.logs[id(array)] = RaceLog(array, self.geometry, self.source)
            self.logs[id(array)].note(KINDS[kind], position, mask, line, self.epoch)

    def requests(self, position: np.ndarray, mask: Mask) -> tuple[np.ndarray, np.ndarray | None, int]:
        """Rows of 32 element numbers, rows of active lanes, and how many blocks each row stands for."""
        blocks = max(position.shape[0], mask.lanes.shape[0])
        rows = self.geometry.rows(np.broadcast_to(position, (blocks, self.geometry.threads)))
        copies = self.geometry.blocks // blocks
        if mask.every and self.geometry.threads % WARP == 0:
            return rows, None, copies
        active = mask.rows(self.geometry)
        if len(active) < len(rows):
            active = np.tile(active, (len(rows) // len(active), 1))
        live = active.any(1)
        return (rows, active, copies) if live.all() else (rows[live], active[live], copies)

    def cost(self, array: Array, kind: str, position: np.ndarray, mask: Mask, line: int) -> list[int]:
        """Requests, sectors or passes, lines or least passes, bytes asked, atomic turns.

        In a loop the pattern is often that of the round before, moved on. Shared memory costs the
        same wherever a pattern begins, global memory wherever it begins in its cache line.
        """
        at = position.item(0) * array.dtype.itemsize % (LINE if array.space == "global" else WORD)
        before = self.patterns.get((array, kind, line))
        if before is None or before[1] is not mask or not moved(before[0], position):
            before = self.patterns[array, kind, line] = position, mask, {}
        if at not in before[2]:
            before[2][at] = self.fresh_cost(array, kind, position, mask)
        return before[2][at]

    def fresh_cost(self, array: Array, kind: str, position: np.ndarray, mask: Mask) -> list[int]:
        rows, active, copies = self.requests(position, mask)
        itemsize = array.dtype.itemsize
        address = rows * itemsize if array.size * itemsize < 2**31 else rows.astype(np.int64) * itemsize
        if array.space == "global":
            t = coalesce(address, itemsize, active)
            counts = t.requests, t.sectors, t.lines, t.bytes_asked
        else:
            s = conflicts(address, itemsize, active)
            counts = s.requests, s.passes, s.least, s.bytes_asked
        turns = atomic_turns(rows, active) if kind == "atomic" else 0
        return [count * copies for count in (*counts, turns)]

    # results ----------------------------------------------------------------

    def total(self, space: str, *kinds: str) -> list[int]:
        """Requests, sectors or passes, lines or least passes, bytes asked."""
        entries = [e for (where, kind, _), e in self.traffic.items() if where == space and kind in kinds]
        return [sum(column) for column in zip(*entries)][:4] or [0, 0, 0, 0]

    def races(self) -> tuple[Race, ...]:
        return tuple(race for log in self.logs.values() for race in log.finish())

    def lines(self) -> tuple[LineReport, ...]:
        return tuple(self.line(number) for number in sorted({*self.slots, *(line for *_, line in self.traffic)}))

    def line(self, number: int) -> LineReport:
        sums = {space: [0, 0] for space in ("global", "shared")}
        for (space, _, line), (requests, cost, *_) in self.traffic.items():
            if line == number:
                sums[space][0] += requests
                sums[space][1] += cost
        slots = self.slots.get(number, (0, 0))
        return LineReport(*self.source(number), *slots, *sums["global"], *sums["shared"])

    def numbers(self) -> dict:
        """The traced fields of a `Report`."""
        return {
            "issue_slots": sum(slots for slots, _ in self.slots.values()),
            "active_lanes": sum(lanes for _, lanes in self.slots.values()),
            "loads": Traffic(*self.total("global", "load")),
            "stores": Traffic(*self.total("global", "store")),
            "atomics": Traffic(*self.total("global", "atomic")),
            "shared": SharedTraffic(*self.total("shared", "load", "store", "atomic")),
            "atomic_turns": sum(entry[4] for entry in self.traffic.values()),
            "barriers": self.barriers,
            "races": self.races(),
            "lines": self.lines(),
            "timeline": None if self.watched is None else tuple(self.timeline),
        }


def moved(before: np.ndarray, now: np.ndarray) -> bool:
    """Whether two patterns are the same but for where they begin."""
    if before is now:
        return True
    return before.shape == now.shape and bool((now - before == now.item(0) - before.item(0)).all())
