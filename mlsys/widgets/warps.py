"""The warp explorer: which warp issues in each cycle, which lanes take part, and what is left of the peak.

Each warp runs a loop round after round: two common instructions, then a branch whose long side has six
instructions and whose short side has two, then two common ones. Above: the warps of one scheduler, cycle by cycle.
Below left: the lanes of one round, slot by slot. Below right: instructions a cycle against warps.
Left out: memory queues, units that take two cycles for a warp, barriers; and the two sides of a branch wait for each
other, which hardware from Volta on can avoid.
Lessons: SMs and warps.
"""

from __future__ import annotations

import numpy as np

from ..gpu.scheduler import ISSUED, NOBODY, POLICIES, READY, Schedule, chain, ipc_bound, simulate
from ..units import percent, plural
from ..viz.picture import INK, Axes, Picture
from ..viz.runs import runs
from ..viz.style import COLOUR
from .base import Explorer, choice, slider

COMMON, LONG, SHORT = 4, 6, 2  # instructions of a round: before and after the branch, and on its two sides
WARP = 32
SHOWN = 64  # cycles in the picture
MOST_WARPS = 16  # of one scheduler: 64 of an SM
COUNTED = 96  # cycles to count over, at least


class WarpExplorer(Explorer):
    """Warps of one scheduler: number, latency, independent instructions, and lanes on the long side of a branch."""

    def __init__(self):
        self.warps = slider("warps", 4, 1, MOST_WARPS)
        self.latency = slider("latency, cycles", 8, 1, 32)
        self.ilp = slider("independent instr.", 1, 1, 4)
        self.lanes = slider("lanes, long side", 0, 0, WARP)
        self.policy = choice("next warp", list(POLICIES))
        super().__init__([self.warps, self.latency, self.ilp, self.lanes, self.policy])

    def model(self) -> tuple[Schedule, float]:
        """The schedule, and instructions a cycle counted over whole latencies."""
        latency = self.latency.value
        cycles = -(-COUNTED // latency) * latency
        program = chain(cycles, latency, self.ilp.value)
        schedule = simulate([program] * self.warps.value, self.policy.value, cycles)
        return schedule, schedule.ipc

    def sentence(self) -> str:
        _, ipc = self.model()
        masks = round_masks(self.lanes.value)
        bound = ipc_bound(self.warps.value, self.latency.value, self.ilp.value)
        share = masks.mean()
        return (f"{plural(self.warps.value, 'warp')}, latency {plural(self.latency.value, 'cycle')}, {self.ilp.value} independent: "
                f"{ipc:.2f} instructions a cycle (bound {bound:.2f}). {plural(self.lanes.value, 'lane')} on the long side: "
                f"a round takes {len(masks.T)} issue slots with {percent(share)} of the lanes active. "
                f"Together {percent(ipc * share)} of the lanes' peak.")

    def draw(self) -> Picture:
        schedule, ipc = self.model()
        masks = round_masks(self.lanes.value)
        picture = Picture(680, 520, f"Warps of one scheduler over {SHOWN} cycles. {self.sentence()}")
        picture.text(16, 20, finding(ipc, masks), 14, bold=True)
        draw_rows(picture, (64, 62, 576, 200), schedule, masks)
        draw_round(picture, (64, 344, 250, 128), masks)
        draw_curve(picture, (400, 344, 200, 128), self.warps.value, self.latency.value, self.ilp.value, ipc)
        return picture


def round_masks(long_lanes: int) -> np.ndarray:
    """(lanes, slots) of one round: which lanes are active in each issue slot; a side that no lane takes has no slot.

    >>> [round_masks(lanes).shape[1] for lanes in (0, 1, 31, 32)]
    [6, 12, 12, 10]
    """
    on_long = np.arange(WARP) < long_lanes
    every = np.ones(WARP, bool)
    sides = [mask for mask, length in ((on_long, LONG), (~on_long, SHORT)) for _ in range(length) if mask.any()]
    return np.array([every] * (COMMON // 2) + sides + [every] * (COMMON // 2)).T


def finding(ipc: float, masks: np.ndarray) -> str:
    """The title: how much of the peak is reached, and what costs it.

    >>> finding(0.5, round_masks(0)), finding(1.0, round_masks(1))
    ('50 % of the peak: too few instructions in flight', '51 % of the peak: lanes are masked off')
    """
    share = float(masks.mean())
    causes = ["too few instructions in flight"] * (ipc < 0.995) + ["lanes are masked off"] * (share < 1)
    return f"{percent(ipc * share)} of the peak: {' and '.join(causes) or 'every slot and every lane is in use'}"


def draw_rows(picture: Picture, box, schedule: Schedule, masks: np.ndarray) -> None:
    """One row a warp, one column a cycle. A square issues, as high as its share of active lanes; dotted: could have."""
    left, top, width, height = box
    warps = len(schedule.state)
    wide, high = width / SHOWN, min(48.0, height / warps)
    shares = masks.mean(axis=0)
    picture.text(left, top - 26, "square: issues (height: active lanes)", 11)
    picture.text(left + 240, top - 26, "dotted: ready, not chosen", 11)
    picture.text(left + 420, top - 26, "empty: waits for an operand", 11)
    for warp in range(warps):
        y = top + warp * high
        picture.line([(left, y + high - 1), (left + width, y + high - 1)], COLOUR["idle"], 0.7)
        if warps <= 8 or warp % 2 == 0:
            picture.text(left - 6, y + high * 0.85, str(warp), 10, "end")
        for state, first, last in runs(schedule.state[warp, :SHOWN]):
            if state == READY:
                picture.line([(left + first * wide + 1, y + high / 2), (left + last * wide - 1, y + high / 2)], INK, 1.5, ":")
        for cycle in np.flatnonzero(schedule.state[warp, :SHOWN] == ISSUED):
            tall = max(3.0, (high - 2) * shares[schedule.instruction[cycle] % len(shares)])  # one lane must be seen too
            picture.rect(left + cycle * wide + 0.5, y + high - 1 - tall, wide - 1, tall, COLOUR["compute"], INK)
    bottom = top + warps * high
    for cycle in range(SHOWN):  # the scheduler itself: a slot with nobody in it is lost
        if schedule.warp[cycle] == NOBODY:
            picture.rect(left + cycle * wide + 0.5, bottom + 4, wide - 1, 8, COLOUR["limiter"], INK)
    picture.text(left - 6, bottom + 12, "lost slots", 10, "end")
    for cycle in range(0, SHOWN + 1, 8):
        picture.text(left + cycle * wide, bottom + 27, str(cycle), 11, "middle")
    picture.text(left + width + 10, bottom + 27, "cycle", 11)
    picture.text(left - 6, top - 8, "warp", 11, "end")


def draw_round(picture: Picture, box, masks: np.ndarray) -> None:
    """Lanes against issue slots of one round; a slot's columns are named by the part of the code."""
    left, top, width, height = box
    slots = masks.shape[1]
    wide, high = width / (COMMON + LONG + SHORT), height / WARP
    picture.text(left, top - 24, f"One round of a warp: {slots} issue slots", 12, bold=True)
    picture.text(left, top - 8, "lane (filled: active)", 11)
    for slot, mask in enumerate(masks.T):
        for active, first, last in runs(mask):
            if active:
                picture.rect(left + slot * wide + 1, top + first * high, wide - 2, (last - first) * high, COLOUR["compute"], INK)
        picture.rect(left + slot * wide + 1, top, wide - 2, height, "none", COLOUR["idle"])
        picture.text(left + (slot + 0.5) * wide, top + height + 14, str(slot), 10, "middle")
    for lane in (0, 8, 16, 24, 32):
        picture.text(left - 6, top + lane * high + 4, str(lane), 10, "end")
    picture.text(left + slots * wide + 4, top + height + 14, "slot", 11)


def draw_curve(picture: Picture, box, warps: int, latency: int, ilp: int, ipc: float) -> None:
    """Instructions a cycle against warps, with the present setting."""
    axes = Axes(picture, box, (0, MOST_WARPS), (0, 1.1), "warps of the scheduler", "dashed: bound, dot: counted",
                xticks=[0, 4, 8, 12, 16], yticks=[0, 0.5, 1.0])
    xs = np.linspace(0, MOST_WARPS, 129)
    axes.plot(xs, [ipc_bound(x, latency, ilp) for x in xs], INK, 1.5, "--")
    axes.dot(warps, ipc, COLOUR["compute"], 6, INK)
    picture.text(box[0], box[1] - 24, f"{ipc:.2f} instructions a cycle", 12, bold=True)
