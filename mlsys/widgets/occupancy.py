"""The occupancy explorer: a launch on one SM, which resource gives out first, and how near the next step is.

Above: the blocks that each resource would allow. In the middle: the SM with its warp slots, registers and shared
memory filled by blocks, rounding included. Below: occupancy against each of the three numbers you can turn.
Exact in what it counts: it is the vendor's own rule. Left out: clusters, blocks with more than one barrier, and time.
Occupancy is no measure of speed, so the picture errs in neither direction about that: it says nothing.
Lessons: coalescing and occupancy, tiling.
"""

from __future__ import annotations

import numpy as np

from ..specs.sm import SMS, sm
from ..units import KIB, kib, percent, plural
from ..viz.occupancy import (
    NAMES,
    REGS,
    SMEM,
    THREADS,
    Resident,
    along,
    draw_curves,
    draw_legend,
    draw_limits,
    draw_shared,
    draw_sm,
    settle,
)
from ..viz.picture import Picture
from .base import Explorer, choice, slider

ALSO = {"8.6": "A10, A40, A6000", "12.0": "RTX 5090", "9.0": "H100, H200"}
CHIPS = [(f"{ALSO.get(name, row.example)} ({name})", name) for name, row in SMS.items()]
PARTS = {0.125: "an eighth", 0.25: "a quarter", 0.375: "three eighths", 0.5: "half", 0.625: "five eighths", 0.75: "three quarters",
         0.333333: "a third", 0.666667: "two thirds"}  # fmt: skip


class OccupancyExplorer(Explorer):
    """Registers, threads and shared memory of a launch; the SM that they fill."""

    def __init__(self):
        self.chip = choice("SM of", CHIPS, "8.0")
        self.regs = slider("registers per thread", 33, 16, 255)
        self.threads = slider("threads per block", 256, 16, 1024, 16)
        self.smem_kib = slider("shared memory, KiB", 0, 0, 228)
        super().__init__([self.chip, self.regs, self.threads, self.smem_kib])

    def model(self) -> Resident:
        return settle(self.threads.value, self.regs.value, self.smem_kib.value * KIB, sm(self.chip.value))

    def sentence(self) -> str:
        here = self.model()
        launch = here.launch
        asked = f"{launch.threads} threads of {launch.regs} registers and {kib(launch.dynamic_smem_bytes)} KiB on {here.on.example}: "
        if not here.found.blocks_per_sm:
            return f"{asked}{refusal(here)}."
        found, share = here.found, percent(here.found.fraction, ".3g")
        return f"{asked}{blocks(found.blocks_per_sm)}, {found.warps_per_sm} of {here.on.max_warps} warps, {share}."

    def draw(self) -> Picture:
        here = self.model()
        found, hint = here.found, next_step(here)
        picture = Picture(736, 588, f"Occupancy of one SM. {finding(here)}. {hint}")
        picture.text(16, 22, finding(here), 15, bold=True)
        picture.text(16, 42, hint, 12)
        picture.text(16, 68, "blocks that each resource allows", 12)
        draw_limits(picture, (16, 74, 470, 92), here)
        picture.text(720, 118, percent(found.fraction, ".3g"), 46, "end", bold=True)
        picture.text(720, 140, f"{blocks(found.blocks_per_sm)} × {plural(here.warps_per_block, 'warp')}", 12, "end")
        picture.text(720, 156, f"{found.warps_per_sm} of {here.on.max_warps} warps", 12, "end")
        draw_sm(picture, (16, 196, 704, 92), here)
        draw_shared(picture, (30, 316, 690, 26), here)
        draw_legend(picture, 30, 364)
        draw_curves(picture, 404, 128, here)
        return picture


def finding(here: Resident) -> str:
    """The title: what decided, and what rounding took away.

    >>> finding(settle(256, 33, 0, sm("8.0")))
    '33 registers leave 75 % of the warps; plain division says 87.5 %'
    >>> finding(settle(256, 64, 0, sm("8.0"))), finding(settle(32, 32, 0, sm("8.0")))
    ('Registers run out first: 4 blocks, 50 % of the warps', '32 blocks are the most: small blocks leave half of the warp slots empty')
    """
    found, on = here.found, here.on
    if not found.blocks_per_sm:
        return f"Does not run: {refusal(here)}"
    if found.warps_per_sm == on.max_warps:
        return f"All {on.max_warps} warp slots are filled: occupancy 100 %"
    if here.limiters == ["blocks"]:
        return f"{on.max_blocks} blocks are the most: small blocks leave {part(1 - found.fraction)} of the warp slots empty"
    if here.plain > found.blocks_per_sm:
        return rounding(here)
    names = " and ".join(NAMES[name] for name in here.limiters).replace(" and ", ", ", len(here.limiters) - 2).capitalize()
    verb = "runs" if names == "Shared memory" else "run"
    return f"{names} {verb} out first: {blocks(found.blocks_per_sm)}, {percent(found.fraction, '.3g')} of the warps"


def rounding(here: Resident) -> str:
    """The title where a plain division promises more blocks than fit: which rounding takes most of them.

    >>> rounding(settle(224, 96, 0, sm("8.0"))), rounding(settle(48, 40, 0, sm("8.0")))
    ('Each partition holds 5 whole warps of 96 registers: 2 blocks, not 3', '48 threads take 2 whole warps: 24 blocks, not 32')
    """
    found, launch, on, warps = here.found, here.launch, here.on, here.warps_per_block
    instead = f"{blocks(found.blocks_per_sm)}, not {here.plain}"
    if here.limiters == ["shared_memory"]:
        extra = found.smem_per_block - launch.dynamic_smem_bytes
        return f"{kib(extra)} KiB on top of each block's shared memory: {instead}"
    given = found.regs_per_block // warps
    counts = [here.plain, on.registers // (launch.regs * 32 * warps), on.registers // (given * warps), found.blocks_per_sm]
    whole, rounded, parted = -np.diff(np.minimum(counts, here.plain))
    if rounded >= max(whole, parted, 1):
        shares = percent(found.fraction, ".3g"), percent(min(here.plain * warps / on.max_warps, 1), ".3g")
        return f"{launch.regs} registers leave {shares[0]} of the warps; plain division says {shares[1]}"
    if parted > whole:
        return f"Each partition holds {on.registers // on.partitions // given} whole warps of {launch.regs} registers: {instead}"
    return f"{launch.threads} threads take {plural(warps, 'whole warp')}: {instead}"


def refusal(here: Resident) -> str:
    """Why not even one block fits."""
    launch, on = here.launch, here.on
    if not here.found.limits["shared_memory"]:
        most = max(on.block_shared_bytes_opt_in, on.block_shared_bytes)
        return f"{kib(launch.dynamic_smem_bytes)} KiB for a block, and {on.example} gives one at most {kib(most)} KiB"
    needed = here.found.regs_per_block
    return f"{launch.threads} threads take {needed:,} registers, and the SM has {on.registers:,}"


def next_step(here: Resident) -> str:
    """The smallest change of one number that fits a block more, or how much may be added for free."""
    found, launch = here.found, here.launch
    if found.warps_per_sm == here.on.max_warps:
        values = REGS[along(here, "regs", REGS)[0] >= found.blocks_per_sm]
        return f"There is room up to {values.max()} registers per thread."
    options = []
    for name, values, now, unit, words in (
        ("regs", REGS, launch.regs, 1, "registers"), ("dynamic_smem_bytes", SMEM, launch.dynamic_smem_bytes, KIB, "KiB of shared memory"),
    ):
        better = values[(along(here, name, values)[0] > found.blocks_per_sm) & (values < now)]
        if better.size:
            options.append(f"{better.max() / unit:g} {words} (now {now / unit:g})")
    if options:
        start = "One block more fits" if found.blocks_per_sm else "A block fits"
        return f"{start} with at most {' or '.join(options)}."
    if len(here.limiters) > 1 and not found.blocks_per_sm:
        return f"{' and '.join(NAMES[name] for name in here.limiters).capitalize()} both refuse."
    warps = along(here, "threads", THREADS)[0] * -(-THREADS // 32)
    best = THREADS[warps > found.warps_per_sm]
    if not best.size:
        return "No other block size fills more warps."
    nearest = best[np.argmin(np.abs(best - launch.threads))]
    return f"The nearest block size that fills more warps is {nearest} threads."


def part(share: float) -> str:
    """A share in words where there is a short one.

    >>> part(0.25), part(0.4)
    ('a quarter', '40 %')
    """
    return PARTS.get(round(share, 6), percent(share, ".3g"))


def blocks(count: int) -> str:
    return plural(count, "block")
