"""Pictures of occupancy: what fits on one SM, what the rounding wastes, and the steps on the way.

An SM is drawn as its four partitions, one a row: on the left the slots for warps, on the right the registers. Blocks
are dealt to the rows one warp at a time, as evenly as can be. Real hardware may place them in another order; how many
fit is the vendor's count either way.
Lessons: coalescing and occupancy, tiling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..gpu.occupancy import Launch, Occupancy, fit
from ..specs.sm import SM
from ..units import KIB, kib, percent
from .picture import INK, Axes, Picture
from .style import COLOUR, blend, ink_on

NAMES = {"warps": "warp slots", "registers": "registers", "shared_memory": "shared memory", "blocks": "block slots"}
SHADES = [blend(COLOUR["compute"], share) for share in (1.0, 0.4, 0.7, 0.2)]  # of blocks, one after the other
REGS, THREADS = np.arange(1, 256), np.arange(16, 1025, 16)
SMEM = np.arange(0, 228 * KIB + 1, KIB // 2)


@dataclass(frozen=True)
class Resident:
    """A launch, the SM that it meets, and how many of its blocks live there at once."""

    launch: Launch
    on: SM
    found: Occupancy
    plain: int

    @property
    def warps_per_block(self) -> int:
        return -(-self.launch.threads // self.on.warp)

    @property
    def limiters(self) -> list[str]:
        """The scarcest resources. Barriers are left out: with one a block they never decide alone."""
        return [name for name in NAMES if self.found.limiting[name]]


def settle(threads: int, regs: int, smem_bytes: int, on: SM) -> Resident:
    """What fits of a kernel that asked for as much shared memory as a block may have.

    >>> from mlsys.specs.sm import sm
    >>> here = settle(256, 33, 0, sm("8.0"))
    >>> here.found.blocks_per_sm, here.plain, here.limiters
    (6, 7, ['registers'])
    """
    launch = Launch(threads, regs, dynamic_smem_bytes=smem_bytes, opt_in=True)
    return Resident(launch, on, fit(launch, on), int(plain_division(threads, regs, smem_bytes, on)))


def plain_division(threads, regs, smem_bytes, on: SM):
    """Blocks by dividing what there is by what is asked for: never fewer than really fit, and often more.

    >>> from mlsys.specs.sm import sm
    >>> plain_division(256, np.array([32, 33, 40, 48]), 0, sm("8.0")).tolist()
    [8, 7, 6, 5]
    """
    shared = on.shared_bytes // np.maximum(smem_bytes, 1)
    limits = on.max_threads // np.asarray(threads), on.registers // np.maximum(np.asarray(regs) * threads, 1), shared, on.max_blocks
    return np.minimum.reduce(np.broadcast_arrays(*limits))


def along(here: Resident, name: str, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks that fit, and blocks by plain division, when one field of the launch takes other values."""
    asked = {"threads": here.launch.threads, "regs": here.launch.regs, "dynamic_smem_bytes": here.launch.dynamic_smem_bytes}
    asked[name] = values
    return fit(Launch(**asked, opt_in=True), here.on).blocks_per_sm, plain_division(*asked.values(), here.on)


def draw_limits(picture: Picture, box, here: Resident) -> None:
    """A bar for each resource: how many blocks it would allow. The scarcest is red and hatched."""
    left, top, width, height = box
    step, scale = height / len(NAMES), (width - 172) / here.on.max_blocks
    for n, (name, words) in enumerate(NAMES.items()):
        y, limit, scarce = top + n * step, here.found.limits[name], here.found.limiting[name]
        length = max(min(limit, here.on.max_blocks) * scale, 1.5)
        picture.text(left + 104, y + step * 0.66, words, 12, "end", bold=scarce)
        picture.rect(left + 112, y + 3, length, step - 6, COLOUR["limiter"] if scarce else COLOUR["idle"], INK, "/" if scarce else "")
        if limit > here.on.max_blocks:
            picture.line([(left + 112 + length + x, y + step / 2 + dy) for x, dy in ((2, -5), (8, 0), (2, 5))], INK, 1.5)
        number = "any" if np.isinf(limit) else f"{limit:,}"
        role = "" if not scarce else " ◂ decides" if here.found.blocks_per_sm else " ◂ refuses"
        picture.text(left + 126 + length, y + step * 0.66, number + role, 12, bold=scarce)


def draw_sm(picture: Picture, box, here: Resident) -> None:
    """Warp slots and registers of the four partitions, and below them the shared memory."""
    left, top, width, height = box
    slots, file = (left + 14, top, 286, height), (left + 330, top, width - 330, height)
    for row in range(here.on.partitions):
        picture.text(left + 6, top + (row + 0.64) * height / 4, f"{row + 1}", 11, "middle")
    draw_slots(picture, slots, here)
    draw_registers(picture, file, here)


def draw_slots(picture: Picture, box, here: Resident) -> None:
    """One cell a warp slot: blocks in shades with their number, slots without a warp hatched."""
    left, top, width, height = box
    rows, warps = here.on.partitions, here.warps_per_block
    step, tall = width / (here.on.max_warps // rows), height / rows
    picture.rect(left, top, width, height, COLOUR["idle"], INK, "/", 0.45)
    for k in range(here.found.warps_per_sm):
        block, warp = divmod(k, warps)
        x, y, shade = left + k // rows * step, top + k % rows * tall, SHADES[block % len(SHADES)]
        lanes = min(here.launch.threads - 32 * warp, 32) / 32
        if lanes < 1:
            picture.rect(x, y, step, tall, "#ffffff", INK)
        picture.rect(x, y, step, tall * lanes, shade, INK)
        if not warp and tall * lanes > 14:
            picture.text(x + step / 2, y + tall * 0.64, str(block + 1), 10, "middle", ink_on(shade))
    idle = here.on.max_warps - here.found.warps_per_sm
    if not here.found.blocks_per_sm:
        picture.rect(left + 70, top + height / 2 - 15, width - 140, 30, COLOUR["limiter"], INK)
        picture.text(left + width / 2, top + height / 2 + 5, "no block fits", 15, "middle", ink_on(COLOUR["limiter"]), bold=True)
    filled = f"{here.found.warps_per_sm} of {here.on.max_warps}" if idle else f"all {here.on.max_warps}"
    unused = " (white: idle lanes)" if here.launch.threads % 32 and here.found.blocks_per_sm else ""
    picture.text(left, top - 7, f"{filled} warp slots filled{unused}", 12)


def draw_registers(picture: Picture, box, here: Resident) -> None:
    """Each partition's registers: what warps asked for, what the rounding adds, and what nobody can have."""
    left, top, width, height = box
    rows, on = here.on.partitions, here.on
    tall, scale = height / rows, width / (on.registers // on.partitions)
    asked = here.launch.regs * on.warp
    given = here.found.regs_per_block // here.warps_per_block
    picture.rect(left, top, width, height, COLOUR["idle"], INK, "/", 0.45)
    for k in range(here.found.warps_per_sm):
        x, y, shade = left + k // rows * given * scale, top + k % rows * tall, SHADES[k // here.warps_per_block % len(SHADES)]
        picture.rect(x, y, given * scale, tall, COLOUR["memory"] if given > asked else shade, INK, "x" if given > asked else "")
        if given > asked:
            picture.rect(x, y, asked * scale, tall, shade, INK)
    for row in range(1, rows):
        picture.line([(left, top + row * tall), (left + width, top + row * tall)], INK, 1)
    taken = given * here.found.warps_per_sm
    picture.text(left, top - 7, f"registers: {asked * here.found.warps_per_sm:,} asked for, {taken:,} of {on.registers:,} taken", 12)


def draw_shared(picture: Picture, box, here: Resident) -> None:
    """The SM's shared memory: what blocks asked for, and what comes on top of it."""
    left, top, width, height = box
    on, found, asked = here.on, here.found, here.launch.dynamic_smem_bytes
    scale = width / on.shared_bytes
    picture.rect(left, top, width, height, COLOUR["idle"], INK, "/", 0.45)
    for block in range(found.blocks_per_sm):
        x, shade = left + block * found.smem_per_block * scale, SHADES[block % len(SHADES)]
        if found.smem_per_block > asked:
            picture.rect(x, top, found.smem_per_block * scale, height, COLOUR["memory"], INK, "x")
        if asked:
            picture.rect(x, top, asked * scale, height, shade, INK)
    taken = found.smem_per_block * found.blocks_per_sm
    words = f"{kib(asked * found.blocks_per_sm)} KiB asked for, {kib(taken)} of {kib(on.shared_bytes)} KiB taken"
    picture.text(left, top - 7, f"shared memory: {words}", 12)


def draw_legend(picture: Picture, left: float, y: float) -> None:
    """What the fills of an SM mean."""
    rows = (("asked for, a shade a block", SHADES[0], "", 1.0), ("rounded up, or kept by the system", COLOUR["memory"], "x", 1.0),
            ("free", COLOUR["idle"], "/", 0.45))
    for words, fill, hatch, opacity in rows:
        picture.rect(left, y - 11, 18, 13, fill, INK, hatch, opacity)
        picture.text(left + 24, y, words, 11)
        left += 46 + 6.2 * len(words)


def draw_curves(picture: Picture, top: float, height: float, here: Resident) -> None:
    """Occupancy against each of the three numbers, through the present point; dotted: by plain division."""
    launch, warps = here.launch, here.warps_per_block
    panels = (
        (48, "regs", REGS, 1, launch.regs, "registers per thread", [1, 64, 128, 192, 255]),
        (288, "threads", THREADS, 1, launch.threads, "threads per block", [16, 256, 512, 768]),
        (528, "dynamic_smem_bytes", SMEM, KIB, launch.dynamic_smem_bytes, "shared memory, KiB", [0, 50, 100, 150, 200]),
    )
    for left, name, values, unit, now, words, ticks in panels:
        blocks, plain = along(here, name, values)
        each = -(-values // 32) if name == "threads" else warps
        axes = Axes(picture, (left, top, 190, height), (values[0] / unit, values[-1] / unit), (0, 104), words,
                    "" if left > 48 else "occupancy, %; dotted: plain division", xticks=ticks, yticks=[0, 25, 50, 75, 100])
        share = 100 * blocks * each / here.on.max_warps
        axes.plot(*stairs(values / unit, np.minimum(100 * plain * each / here.on.max_warps, 100)), INK, 1.2, ":")
        axes.plot(*stairs(values / unit, share), COLOUR["compute"], 2.4)
        at = 100 * here.found.fraction
        axes.plot([now / unit] * 2, [0, 104], INK, 1, "--")
        axes.dot(now / unit, at, COLOUR["limiter"], 5.5, INK)


def stairs(xs: np.ndarray, ys: np.ndarray) -> tuple[list, list]:
    """Corners of a line that jumps where the values jump: flat from each point to the next.

    >>> stairs(np.array([1, 2, 3, 4]), np.array([5, 5, 5, 7]))
    ([1, 4, 4], [5, 5, 7])
    """
    jumps = np.flatnonzero(np.diff(ys)) + 1
    x, y = [xs[0]], [ys[0]]
    for j in jumps.tolist():
        x += [xs[j], xs[j]]
        y += [ys[j - 1], ys[j]]
    if x[-1] != xs[-1]:
        x, y = x + [xs[-1]], y + [ys[-1]]
    return [v.item() for v in x], [v.item() for v in y]


def register_steps(on: SM, threads: int, ax=None):
    """Occupancy against registers per thread on one SM: as handed out, and by plain division."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    here = settle(threads, 32, 0, on)
    blocks, plain = along(here, "regs", REGS)
    share = 100 * threads / on.max_threads
    ax.step(REGS, plain * share, ":", where="post", color="#222222", linewidth=1.4, label="plain division")
    ax.step(REGS, blocks * share, "-", where="post", color=COLOUR["compute"], label="as handed out")
    ax.plot(33, blocks[32] * share, "o", color=COLOUR["limiter"], markeredgecolor="#222222", markersize=8, zorder=5)
    found, hoped = (percent(each[32] * share / 100, ".3g") for each in (blocks, plain))
    ax.annotate(f"33 registers: {found}, not {hoped}", (33, blocks[32] * share), xytext=(12, 8), textcoords="offset points")
    ax.legend(loc="upper right")
    ax.set(xlim=(16, 256), xticks=range(32, 257, 32), ylim=(0, 105), xlabel="registers per thread",
           ylabel="occupancy, % of the warps", title="Registers are handed out in steps of 8 a thread")
    return ax


def throughput_lines(measure, latency: int, most: int, ilps=(1, 2, 4), ax=None):
    """Share of peak against warps, one line for each number of independent instructions. measure(warps, ilp, latency)."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    warps = range(1, most + 1)
    for ilp, colour, dash in zip(ilps, (COLOUR["compute"], COLOUR["activations"], COLOUR["limiter"]), ("-", "--", ":")):
        share = [100 * measure(count, ilp, latency) for count in warps]
        full = next((count for count, s in zip(warps, share) if s > 99), most)
        ax.plot(warps, share, dash, color=colour, label=f"{ilp} independent in each thread: full at {full} warps")
        ax.plot(full, share[full - 1], "D", color=colour, markeredgecolor="#222222", markersize=7)
    ax.legend(loc="lower right")
    ax.set(xlabel="warps on the SM", ylabel="issue slots used, %", ylim=(0, 108), title="Independent instructions replace warps")
    return ax
