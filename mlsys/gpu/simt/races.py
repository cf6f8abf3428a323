"""The race detector: two threads, one element, no barrier between them, and at least one write.

Every access is noted with its line and with the number of barriers its block has passed. Two
accesses are ordered if the same thread makes both, or if both threads are of one block and a
barrier lies between them. Blocks are never ordered. Two atomics do not race with each other; an
atomic and a plain access do.
The detector looks at the accesses of this launch with this data: no report does not prove that
a kernel is free of races. Lanes of one warp are not taken to be in step (they are not, on
GPUs since 2017), and two threads that write the same number are reported too. Two arguments that
overlap without being the same array are taken for two arrays.
Lessons: CUDA programming model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mlsys.gpu.simt.masks import Geometry, Mask
from mlsys.gpu.simt.memory import Array

LOAD, ATOMIC, STORE = 0, 1, 2
KINDS = {"load": LOAD, "atomic": ATOMIC, "store": STORE}
CONFLICTS = ((STORE, STORE), (STORE, LOAD), (STORE, ATOMIC), (ATOMIC, LOAD))
VERBS = {LOAD: "reads", ATOMIC: "updates", STORE: "writes"}
BUDGET = 1 << 22  # accesses of one array that are kept before they are condensed


@dataclass(frozen=True)
class Access:
    """One side of a race. block, thread: (x, y, z)."""

    line: int
    text: str  # of the line
    kind: str
    block: tuple[int, int, int]
    thread: tuple[int, int, int]

    def __str__(self):
        return f"thread {self.thread} of block {self.block} {self.kind} it in line {self.line} ({self.text})"


@dataclass(frozen=True)
class Race:
    """Races between two lines over one array: one example, and how many elements were seen to race."""

    space: str
    array: str
    index: tuple[int, ...]
    first: Access
    second: Access
    elements: int

    def __str__(self):
        element = f"{self.array}[{', '.join(map(str, self.index))}]"
        more = f" ({self.elements} elements)" if self.elements > 1 else ""
        return f"race on {self.space} {element}{more}: {self.first}, {self.second}, and no barrier lies between."


@dataclass
class Notes:
    """Accesses in flat form, all of one kind: element, thread, line, and barriers passed (epoch)."""

    kind: int
    element: np.ndarray
    thread: np.ndarray
    line: np.ndarray
    epoch: np.ndarray


class RaceLog:
    """Accesses to one array, noted as they come and looked through at the end of the launch."""

    def __init__(self, array: Array, geometry: Geometry, source: Callable[[int], tuple[int, str]]):
        self.array, self.geometry, self.source = array, geometry, source
        self.raw: list[tuple] = []
        self.condensed: list[Notes] = []
        self.size = 0
        self.found: dict[tuple, Race] = {}

    def note(self, kind: int, position: np.ndarray, mask: Mask, line: int, epoch: int | np.ndarray) -> None:
        self.raw.append((kind, position, mask.lanes, line, epoch))
        self.size += max(position.size, mask.lanes.size) if self.array.space == "shared" else self.geometry.lanes
        if self.size > BUDGET:
            self.condensed, self.size = self.look(), 0
            self.raw.clear()

    def finish(self) -> list[Race]:
        """Races of the whole launch."""
        self.look(last=True)
        return list(self.found.values())

    def look(self, last: bool = False) -> list[Notes]:
        """Find the races in what is noted; gives the accesses that later ones may still race with."""
        kinds = {kind for kind, *_ in self.raw} | {n.kind for n in self.condensed}
        shared = self.array.space == "shared"
        if last and STORE not in kinds and not kinds >= {ATOMIC, LOAD}:
            return []
        raw, alike = self.raw, last and shared and not self.condensed and self.same_in_all_blocks()
        if alike:  # one block stands for all; and between two barriers in which nobody writes there is no race
            written = {epoch for kind, *_, epoch in raw if kind != LOAD}
            raw = [r for r in raw if r[-1] in written]
        if last and not self.condensed and self.each_its_own(raw):
            return []
        notes = merge([self.flat(r, 1 if alike else self.geometry.blocks) for r in raw] + self.condensed)
        units = [False]  # threads; and between blocks, where barriers do not count, blocks
        if not shared and self.geometry.blocks > 1 and not (last and all(not n.epoch.any() for n in notes.values())):
            units.append(True)
        keep = [self.search(notes, by_block, self.geometry.blocks if alike else 1) for by_block in units]
        return [] if last else self.condense(notes, keep)

    def each_its_own(self, raw: list[tuple]) -> bool:
        """Whether every thread plainly keeps to one element of its own; the usual case, and quick to see."""
        if not raw:
            return True
        first = raw[0][1]
        blocks = (1, self.geometry.blocks) if self.array.space == "shared" else (self.geometry.blocks,)
        if first.shape[0] not in blocks or first.shape[1] != self.geometry.threads:
            return False
        if any(position is not first and not np.array_equal(position, first) for _, position, *_ in raw):
            return False
        rows = first if self.array.space == "shared" else first.reshape(1, -1)
        return bool((rows[:, 1:] > rows[:, :-1]).all())

    def same_in_all_blocks(self) -> bool:
        return all(p.shape[0] == m.shape[0] == 1 and isinstance(e, int) for _, p, m, _, e in self.raw)

    def flat(self, raw: tuple, blocks: int) -> Notes:
        kind, position, lanes, line, epoch = raw
        shape = blocks, self.geometry.threads
        active = np.broadcast_to(lanes, shape)
        position = np.broadcast_to(position, shape)
        if self.array.space == "shared":
            position = position + np.arange(blocks, dtype=np.int64)[:, None] * self.array.size
        thread = np.flatnonzero(active).astype(np.int32)
        element = position[active] if not active.all() else position.ravel()
        epochs = np.broadcast_to(epoch, shape)[active] if isinstance(epoch, np.ndarray) else np.full(len(thread), epoch, np.int32)
        return Notes(kind, element, thread, np.full(len(thread), line, np.int32), epochs)

    def search(self, notes: dict[int, Notes], by_block: bool, copies: int) -> dict[int, tuple]:
        """Races between threads (or blocks); for each kind the accesses that stand for all others.

        Of each element two accesses by different threads are enough: whoever comes, one of the
        two is not himself.
        """
        place_of, count = addresses(notes, self.array.size * self.geometry.blocks, by_block)
        stand_in = {}
        for kind, n in notes.items():
            who = n.thread // self.geometry.threads if by_block else n.thread
            first, second = np.full(count, -1), np.full(count, -1)
            first[place_of[kind]] = np.arange(len(who))
            other = np.flatnonzero(who[first[place_of[kind]]] != who)
            second[place_of[kind][other]] = other
            stand_in[kind] = first, second, who
        for a, b in CONFLICTS:
            if a in notes and b in notes:
                self.compare(notes[a], notes[b], stand_in[a], stand_in[b], copies)
        return stand_in

    def compare(self, a: Notes, b: Notes, stand_a: tuple, stand_b: tuple, copies: int) -> None:
        """Report elements that both kinds touch, from two different threads."""
        (a1, a2, who_a), (b1, b2, who_b) = stand_a, stand_b
        for x, y in ((a1, b1), (a1, b2), (a2, b1)):
            both = np.flatnonzero((x >= 0) & (y >= 0))
            both = both[who_a[x[both]] != who_b[y[both]]]
            if len(both):
                self.report(a, b, x[both], y[both], copies)

    def report(self, a: Notes, b: Notes, x: np.ndarray, y: np.ndarray, copies: int) -> None:
        pairs = a.line[x].astype(np.int64) << 32 | b.line[y]
        for pair, at, count in zip(*np.unique(pairs, return_index=True, return_counts=True)):
            key = a.kind, b.kind, *sorted((int(pair) >> 32, int(pair) & 0xFFFFFFFF))
            if key not in self.found:
                element = int(a.element[x[at]]) % self.array.size
                index = tuple(int(k) for k in np.unravel_index(element, self.array.shape))
                sides = [self.side(n, i[at]) for n, i in ((a, x), (b, y))]
                self.found[key] = Race(self.array.space, self.array.name, index, *sides, int(count) * copies)

    def side(self, notes: Notes, at: int) -> Access:
        return Access(*self.source(int(notes.line[at])), VERBS[notes.kind], *self.geometry.thread(int(notes.thread[at])))

    def condense(self, notes: dict[int, Notes], keep: list[dict[int, tuple]]) -> list[Notes]:
        out = []
        for kind, n in notes.items():
            chosen = np.unique(np.concatenate([s for stand in keep for s in stand[kind][:2]]))
            chosen = chosen[chosen >= 0]
            out.append(Notes(kind, *(x[chosen] for x in (n.element, n.thread, n.line, n.epoch))))
        return out


def merge(notes: list[Notes]) -> dict[int, Notes]:
    """One list of accesses for each kind."""
    out = {}
    for kind in (LOAD, ATOMIC, STORE):
        same = [n for n in notes if n.kind == kind]
        if same:
            columns = zip(*((n.element, n.thread, n.line, n.epoch) for n in same))
            out[kind] = Notes(kind, *(np.concatenate(c) if len(same) > 1 else c[0] for c in columns))
    return out


def addresses(notes: dict[int, Notes], size: int, by_block: bool) -> tuple[dict[int, np.ndarray], int]:
    """A number for each (element, epoch) that is touched, for each access; and how many there are."""
    parts = {}
    for kind, n in notes.items():
        once = by_block or not len(n.epoch) or (n.epoch == n.epoch[0]).all() and n.epoch[0] == 0
        parts[kind] = n.element if once else n.element + n.epoch.astype(np.int64) * size
    total = sum(len(p) for p in parts.values())
    top = max((int(p.max(initial=0)) for p in parts.values()), default=0) + 1
    if top <= max(4 * total, 1 << 16):
        return parts, top
    values, number = np.unique(np.concatenate(list(parts.values())), return_inverse=True)
    splits = np.cumsum([len(p) for p in parts.values()])[:-1]
    return dict(zip(parts, np.split(number, splits))), len(values)
