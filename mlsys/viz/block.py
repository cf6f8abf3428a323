"""Pictures of the block: what a model's parameters are made of, and a small model as it learns.

Lessons: the block and its counts.
"""

from __future__ import annotations

import numpy as np

from .style import COLOUR

HATCH = {"token table": "--", "positions": "..", "attention": "", "MLP": "//", "norms": "", "output layer": "||"}
NAMES = {"token embedding": "token table", "position embedding": "positions", "mlp": "MLP"}


def part_bars(models: dict[str, dict[str, int]], ax=None):
    """One bar a model, cut into the shares of its parts in per cent; shares below 5 % carry no number.

    models: name -> `mlsys.transformer.counts.parameter_parts`. The hatch says which part, as the key below.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    ax = ax or plt.subplots(figsize=(7.5, 0.55 * len(models) + 1.3))[1]
    seen = {}
    for row, parts in enumerate(models.values()):
        total, left = sum(parts.values()), 0.0
        for part, count in parts.items():
            part, share = NAMES.get(part, part), 100 * count / total
            if share < 0.1:
                continue
            style = dict(facecolor=COLOUR["memory"], edgecolor="#222222", hatch=HATCH.get(part, "xx"), linewidth=0.8)
            ax.barh(row, share, 0.6, left, **style)
            seen.setdefault(part, Patch(**style, label=part))
            if share >= 5:
                box = dict(facecolor="white", edgecolor="none", pad=1.0, alpha=0.85)
                ax.text(left + share / 2, row, f"{share:.0f} %", ha="center", va="center", fontsize=9, bbox=box)
            left += share
    ax.set_yticks(range(len(models)), [f"{name}\n{_billions(sum(p.values()))}" for name, p in models.items()], fontsize=9)
    ax.invert_yaxis()
    ax.grid(False)
    ax.set(xlabel="share of the parameters, %", xlim=(0, 100), title="As models grow, the MLP takes over")
    ax.legend(handles=list(seen.values()), ncols=len(seen), loc="upper center", bbox_to_anchor=(0.45, -0.26), fontsize=9)
    return ax


def _billions(count: float) -> str:
    return f"{count / 1e9:.3g} billion"


def learning_curve(losses, marks: dict[str, float], held_out: float, ax=None):
    """Loss in bits per byte against steps, smoothed over 20, with levels to beat and the held-out end.

    losses: one a step, in bits; marks: name -> level, drawn dashed; held_out: bits on unseen text.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    losses = np.asarray(losses)
    means = np.convolve(losses, np.ones(20) / 20, mode="valid")
    ax.plot(np.arange(len(losses)), losses, color=COLOUR["idle"], linewidth=0.7)
    ax.plot(np.arange(len(means)) + 10, means, color=COLOUR["compute"])
    for name, level in marks.items():
        ax.axhline(level, linestyle="--", color="#222222", linewidth=1)
        ax.annotate(name, (len(losses), level), xytext=(0, 4), textcoords="offset points", ha="right", fontsize=9)
    ax.plot(len(losses), held_out, "D", color=COLOUR["limiter"], markeredgecolor="#222222", markersize=8, clip_on=False)
    ax.annotate(f"unseen text {held_out:.2f}", (len(losses), held_out), xytext=(0, -26), textcoords="offset points", ha="right")
    beaten = [name for name, level in marks.items() if held_out < level]
    title = f"{len(losses)} steps beat {len(beaten)} of {len(marks)} simple tables on unseen text"
    ax.set(xlabel="step", ylabel="bits per byte", title=title, ylim=(min(held_out, losses.min()) - 0.6, losses.max() + 0.2))
    return ax
