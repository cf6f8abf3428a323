"""Pictures of the memory hierarchy: how large and fast its levels are, which sizes miss, which banks collide, and roofs.

Lessons: memory hierarchy and roofline.
"""

from __future__ import annotations

import numpy as np

from ..gpu.cache import miss_curve, stack_distances
from ..gpu.roofline import attainable_flops, bandwidths, levels
from ..units import si
from .style import COLOUR

INK = "#222222"
DASH = {"memory": "-", "L2": ":", "shared memory": "--"}


def ladder(on, ax=None):
    """Size against bandwidth of each level of a chip, all SMs together; levels without a known bandwidth are left out."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 3.4))[1]
    known = [level for level in levels(on) if level.bw]
    sizes, speeds = [level.size_bytes for level in known], [level.bw for level in known]
    for level in known:
        ax.plot(level.size_bytes, level.bw, "s", color=COLOUR["memory"], markeredgecolor=INK, markersize=10)
        text = f"{level.name}: {si(level.size_bytes, 'B', 3)}, {'at least ' * (level.name == 'registers')}{si(level.bw, 'B/s', 3)}"
        last = level.name == "memory"
        ax.annotate(text, (level.size_bytes, level.bw), xytext=(-10 if last else 12, 9 if last else -3),
                    textcoords="offset points", ha="right" if last else "left")
    ax.set(xscale="log", yscale="log", xlim=(8e6, 3e11), ylim=(speeds[0] / 2, speeds[-1] * 3), xlabel="bytes it holds (log)",
           ylabel="bytes per second (log)", title=f"{on.name}: the registers are {speeds[-1] / speeds[0]:.0f} times faster "
           f"and {sizes[0] / sizes[-1]:,.0f} times smaller than memory")
    return ax


def miss_curves(traces, line_bytes: int, title: str, ax=None):
    """Share of accesses that miss in a fully associative LRU cache of each size. traces: {name: addresses}, up to three."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    lines = np.unique(np.geomspace(1, 1024, 200).astype(int))
    for (name, addresses), dash, colour in zip(traces.items(), ("-", "--", ":"), (COLOUR["compute"], COLOUR["limiter"], INK)):
        share = miss_curve(stack_distances(addresses, line_bytes), lines) / np.size(addresses)
        ax.step(lines * line_bytes, 100 * share, dash, where="post", color=colour, label=name)
    ax.legend()
    ax.set(xscale="log", ylim=(0, None), xlabel="bytes of cache (log)", ylabel="accesses that miss, %", title=title)
    ax.set_xticks([line_bytes * 4**e for e in range(6)], [si(line_bytes * 4**e, "B", 3) for e in range(6)])
    ax.minorticks_off()
    return ax


def column_banks(row_words, title: str, axes=None):
    """Where the 32 words of a tile's first column lie: row against bank, one panel for each length of a row in words."""
    import matplotlib.pyplot as plt

    axes = axes if axes is not None else plt.subplots(1, len(row_words), figsize=(7, 3.4), sharey=True)[1]
    rows = np.arange(32)
    for ax, words in zip(axes, row_words):
        bank = rows * words % 32
        most = int(np.bincount(bank).max())
        ax.plot(bank, rows, "s", color=COLOUR["memory"], markeredgecolor=INK, markersize=5)
        ax.set(xlim=(-1, 32), ylim=(32, -1), xlabel="bank", title=f"rows of {words}: {most} pass{'es' * (most > 1)}")
        ax.set_xticks([0, 8, 16, 24, 31])
    axes[0].set(ylabel="row of the tile")
    axes[0].figure.suptitle(title, x=0.02, ha="left", fontsize=12)
    return axes


def roof(on, precision: str = "bf16", kernels=None, title: str = "", ax=None):
    """The roof of a chip with a ceiling for each level that is known.

    kernels: {name: {level: FLOP per byte}}; each is marked where its level allows most, with a line up to that roof.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 4.0))[1]
    x = np.geomspace(0.05, 5e3, 400)
    peak = on.peak(precision)
    for level, bw in bandwidths(on).items():
        y = attainable_flops(on, x, precision, bw)
        ax.plot(x, y, DASH[level], color=INK, linewidth=1.6, label=f"{level}, {si(bw, 'B/s', 3)}")
    y = attainable_flops(on, x, precision)
    ridge = peak / on.mem_bw
    ax.fill_between(x, 1e9, y, where=x <= ridge, color=COLOUR["memory"], alpha=0.25, hatch="//", edgecolor="white", linewidth=0)
    ax.fill_between(x, 1e9, y, where=x >= ridge, color=COLOUR["compute"], alpha=0.25, linewidth=0)
    for name, intensities in (kernels or {}).items():
        for level, intensity in intensities.items():
            top = min(peak, intensity * bandwidths(on)[level])
            ax.plot(intensity, top, "o", color=COLOUR["limiter"], markeredgecolor=INK, markersize=8, zorder=4)
            place = {"xytext": (8, -14)} if level == "memory" else {"xytext": (-6, 7), "ha": "right"}
            ax.annotate(name, (intensity, top), textcoords="offset points", **place)
    ax.text(ridge * 1.1, peak * 1.25, f"{si(peak, 'FLOP/s', 4)}, ridge at {ridge:.0f} FLOP/B", ha="left" if ridge < 100 else "center")
    ax.legend(loc="lower right", title="read from")
    ax.set(xscale="log", yscale="log", xlim=(0.05, 5e3), ylim=(peak / 1e4, peak * 3), xlabel="FLOP per byte (log)",
           ylabel="FLOP/s (log)", title=title or f"{on.name} in {precision}: memory decides below {ridge:.0f} FLOP per byte")
    return ax


def measured_roof(on, works, times_s, title: str, precision: str = "bf16", ax=None):
    """What kernels reached, below the roof. works: with flops and intensity; times_s: measured, in the same order."""
    ax = roof(on, precision, title=title, ax=ax)
    ax.plot([w.intensity for w in works], [w.flops / t for w, t in zip(works, times_s)], "o", color=COLOUR["limiter"],
            markeredgecolor=INK, markersize=6, label="measured", zorder=5)
    ax.legend(loc="lower right")
    return ax


def decode_intensity(curves, ridge: float, title: str, ax=None):
    """FLOP per byte of a decoding step against batch. curves: {name: function of the batch}, up to three."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    batch = np.geomspace(1, 4096, 200)
    for (name, curve), dash, colour in zip(curves.items(), ("-", "--", ":"), (COLOUR["compute"], COLOUR["limiter"], INK)):
        ax.plot(batch, curve(batch), dash, color=colour)
        ax.annotate(name, (batch[-1], curve(batch[-1])), xytext=(6, 0), textcoords="offset points", va="center")
    ax.axhline(ridge, color=INK, linewidth=1, linestyle="-.")
    ax.text(1, ridge * 1.15, f"ridge, {ridge:.0f} FLOP/B")
    ax.set(xscale="log", yscale="log", xlabel="sequences in the batch (log)", ylabel="FLOP per byte (log)", title=title)
    return ax
