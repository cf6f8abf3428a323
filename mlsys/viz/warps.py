"""Pictures of an SM: its parts, the lanes of a warp slot by slot, who issues when, and the waves of a grid.

Lessons: SMs and warps.
"""

from __future__ import annotations

import numpy as np

from ..gpu.scheduler import ISSUED, READY, WAITING, chain, ipc_bound, simulate
from ..gpu.waves import waves
from ..units import percent
from .style import COLOUR

INK = "#222222"
WARP = 32


def sm_parts(title: str, sm, fp32_lanes: int, ax=None):
    """The parts of one SM: four partitions with a scheduler each, and the memory that they share.

    sm: limits of the SM, from `mlsys.specs`; fp32_lanes: of the whole SM.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7.6, 3.4))[1]
    registers = sm.registers * 4 // sm.partitions // 1024
    rows = (
        (f"scheduler: one warp instruction a cycle,\nfrom up to {sm.max_warps // sm.partitions} resident warps", "white", 1.0, 1.0),
        (f"registers, {registers} KiB", COLOUR["memory"], 0.55, 0.45),
        (f"{fp32_lanes // sm.partitions} FP32 lanes, tensor core,\nload and store, ...", COLOUR["compute"], 1.0, 0.35),
    )
    for partition in range(sm.partitions):
        x, y = partition % 2 * 5.1, 1.0 + partition // 2 * 3.15
        ax.add_patch(plt.Rectangle((x, y), 4.9, 3.0, facecolor="none", edgecolor=INK))
        top = y + 2.9
        for text, colour, height, alpha in rows:
            top -= height + 0.08
            ax.add_patch(plt.Rectangle((x + 0.1, top), 4.7, height, facecolor=colour, alpha=alpha, edgecolor=INK))
            ax.text(x + 2.45, top + height / 2, text, ha="center", va="center", fontsize=9)
    ax.add_patch(plt.Rectangle((0, 0), 10, 0.8, facecolor=COLOUR["memory"], alpha=0.45, edgecolor=INK))
    shared = f"shared memory and L1 cache; up to {sm.shared_bytes // 1024} KiB as shared memory"
    ax.text(5, 0.4, shared, ha="center", va="center", fontsize=9)
    ax.set(xlim=(-0.1, 10.1), ylim=(-0.1, 7.3), title=title)
    ax.set_axis_off()
    return ax


def lane_map(timeline, title: str, names=None, ax=None):
    """Which lanes are active in each issue slot of one warp.

    timeline: (line, active lanes as bits) for each slot, as a traced launch reports it; names: text below each slot.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 3.4))[1]
    active = np.array([[bits >> lane & 1 for _, bits in timeline] for lane in range(WARP)])
    ax.imshow(np.where(active, 1.0, np.nan), cmap=_one_colour(COLOUR["compute"]), aspect="auto", interpolation="nearest",
              extent=(0, len(timeline), WARP, 0))
    if names is not None:
        short = [name if len(name) <= 16 else f"{name[:14]}..." for name in names]
        ax.set_xticks(np.arange(len(names)) + 0.5, short, rotation=35, ha="right", family="monospace", fontsize=8)
        for edge in range(1, len(names)):
            ax.axvline(edge, color="white", linewidth=1.5)
    ax.set(xlabel="issue slot", ylabel="lane (coloured: active)", yticks=[0, 8, 16, 24, 32], title=title)
    ax.grid(False)
    return ax


def _one_colour(colour: str):
    from matplotlib.colors import ListedColormap

    return ListedColormap([colour])


def rare_branch(shares, slots, common: float, branch: float, title: str, ax=None):
    """Slots of a warp against the share of threads that take a branch: counted, expected, and the mean over threads.

    common, branch: slots without the branch, and those that it adds.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    p = np.linspace(0, max(shares), 200)
    ax.plot(p, common + branch * (1 - (1 - p) ** WARP), "-", color=COLOUR["compute"])
    ax.plot(p, common + branch * p, "--", color=INK, linewidth=1.5)
    ax.plot(shares, slots, "o", color=COLOUR["compute"], markeredgecolor=INK)
    ax.annotate("what a warp pays (dots: counted)", (p[-1], common + branch * (1 - (1 - p[-1]) ** WARP)), xytext=(0, -60),
                textcoords="offset points", ha="right")
    ax.annotate("mean over threads", (p[-1], common + branch * p[-1]), xytext=(0, 6), textcoords="offset points", ha="right")
    ax.xaxis.set_major_formatter(lambda share, _: percent(share))
    ax.set(xlabel="threads that take the branch", ylabel="issue slots of a warp", ylim=(0, None), title=title)
    return ax


def issue_rows(schedules, title: str, cycles: int = 32, axes=None):
    """Who issues in each cycle, one panel for each schedule: a filled square issues, a ring could have, a dash waits.

    schedules: {name: schedule}.
    """
    import matplotlib.pyplot as plt

    heights = [len(schedule.state) + 1 for schedule in schedules.values()]
    if axes is None:
        options = {"sharex": True, "squeeze": False, "gridspec_kw": {"height_ratios": heights}}
        axes = plt.subplots(len(schedules), 1, figsize=(7, 0.7 + 0.26 * sum(heights)), **options)[1][:, 0]
    marks = ((WAITING, "_", COLOUR["idle"], 5), (READY, "o", "none", 4), (ISSUED, "s", COLOUR["compute"], 7))
    for ax, (name, schedule) in zip(axes, schedules.items()):
        for state, marker, colour, size in marks:
            warp, cycle = np.nonzero(schedule.state[:, :cycles] == state)
            edge = COLOUR["idle"] if state == WAITING else INK
            ax.plot(cycle, warp, marker, color=colour, markersize=size, markeredgecolor=edge)
        filled = np.count_nonzero(schedule.warp[:cycles] >= 0)
        ax.text(1.01, 0.5, f"{name}\n{filled} of {cycles} slots", transform=ax.transAxes, va="center", fontsize=9)
        warps = len(schedule.state)
        ax.set(ylim=(warps - 0.5, -0.5), ylabel="warp", xlim=(-0.7, cycles - 0.3), yticks=range(0, warps, max(1, warps // 4)))
        ax.grid(False)
    axes[0].set_title(title)
    axes[-1].set_xlabel("cycle (square: issues; ring: ready, not chosen; dash: waits)")
    return axes


def ipc_curves(latency: int, ilps, title: str, most: int = 16, ax=None):
    """Instructions a cycle against warps of one scheduler: simulated dots on the line min(1, W * ilp / latency)."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    warps = np.arange(1, most + 1)
    cycles = 4 * latency
    for ilp, colour, dash, marker in zip(ilps, (COLOUR["compute"], COLOUR["limiter"], COLOUR["activations"]), ("-", "--", ":"), "osD"):
        fine = np.linspace(0, most, 200)
        ax.plot(fine, [ipc_bound(w, latency, ilp) for w in fine], dash, color=colour)
        counted = [simulate([chain(cycles, latency, ilp)] * int(w), cycles=cycles).ipc for w in warps]
        ax.plot(warps, counted, marker, color=colour, markeredgecolor=INK, label=f"ilp {ilp}: full from {-(-latency // ilp)} warps")
    ax.legend(loc="lower right")
    ax.set(xlabel=f"resident warps of one scheduler, latency {latency} cycles", ylabel="instructions a cycle", ylim=(0, 1.08), title=title)
    return ax


def wave_teeth(chip, title: str, most: int = 10, ax=None):
    """Share of a chip that a grid of equal blocks uses, against its blocks in waves; one block fits on an SM."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    blocks = np.arange(1, most * chip.units + 1)
    used = np.array([waves(int(b), chip).utilisation for b in blocks])
    ax.plot(blocks / chip.units, used, "-", color=COLOUR["compute"], linewidth=1.5)
    lowest = blocks[chip.units :: chip.units]
    ax.plot(lowest / chip.units, used[lowest - 1], "v", color=COLOUR["limiter"], markeredgecolor=INK)
    at = lowest[0]
    words = f"{at} blocks: {percent(used[at - 1], '.1f')}"
    ax.annotate(words, (at / chip.units, used[at - 1]), xytext=(10, -4), textcoords="offset points", va="top")
    ax.yaxis.set_major_formatter(lambda share, _: percent(share))
    ax.set(xlabel=f"blocks of the grid, in waves of {chip.units}", ylabel="slots' time in use", ylim=(0, 1.05), title=title)
    return ax
