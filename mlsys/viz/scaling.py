"""Pictures of scaling laws: what a budget buys, and the valleys of a sweep.

Lessons: scaling laws.
"""

from __future__ import annotations

import numpy as np

from ..transformer.scaling_laws import optimum
from ..units import count
from .style import COLOUR

INK = "#222222"


def budget_terms(law, flops: float, ax=None):
    """The two terms of a law along one budget: too few parameters on the left, too few tokens on the right.

    law: has E, A, B, alpha, beta and loss(parameters, tokens); flops: the budget, spent as 6ND.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    n = np.geomspace(3e9, 1.2e12, 300)
    d = flops / 6 / n
    size, data = law.A * n**-law.alpha, law.B * d**-law.beta
    total = size + data
    lines = ((size, "A/N^alpha", INK, "--"), (data, "B/D^beta", INK, ":"), (total, "their sum", COLOUR["compute"], "-"))
    for ys, name, colour, dash in lines:
        ax.plot(n, ys, dash, color=colour)
        ax.annotate(name, (n[-1], ys[-1]), xytext=(6, 0), textcoords="offset points", va="center")
    best = optimum(law, flops)
    at = best.parameters, best.loss - law.E
    ax.plot(*at, "D", color=COLOUR["compute"], markeredgecolor=INK, markersize=8)
    ax.annotate(f"{count(best.parameters)} parameters, {best.tokens_per_parameter:.1f} tokens each", at, xytext=(0, 14),
                textcoords="offset points", ha="center")
    title = "Fewer parameters or fewer tokens: the best size is in between"
    ax.set(xscale="log", ylim=(0, 0.4), xlabel="parameters N (log)", ylabel="loss above the floor E, nats", title=title)
    return ax


def flat_valleys(laws, flops: float, ax=None):
    """How much worse than its own best each law expects a size to be, all on one budget."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    n = np.geomspace(5e9, 4e11, 400)
    for law, colour, dash in zip(laws, (COLOUR["limiter"], INK, COLOUR["compute"]), (":", "--", "-")):
        best = optimum(law, flops)
        excess = law.loss(n, flops / 6 / n) - best.loss
        ax.plot(n, excess, dash, color=colour, label=f"{law.name}: {best.tokens_per_parameter:.1f} tokens per parameter")
        ax.plot(best.parameters, 0, "D", color=colour, markeredgecolor=INK, markersize=8, clip_on=False, zorder=5)
    ax.legend(loc="upper center")
    title = "One budget, one set of runs, three best sizes"
    ax.set(xscale="log", ylim=(0, 0.08), xlabel="parameters N (log)", ylabel="loss above the least, nats", title=title)
    return ax


def sweep_valleys(runs, valleys, title: str, ax=None):
    """Measured losses of each budget, the parabola through them and its lowest point.

    runs: with parameters, losses and flops; valleys: a parabola for each budget (flops, parameters, loss, curve).
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 4.2))[1]
    for valley in valleys:
        mine = np.abs(np.log(runs.flops / valley.flops)) < 0.1
        sizes, losses = runs.parameters[mine], runs.losses[mine]
        n = np.geomspace(sizes.min(), sizes.max(), 100)
        ax.plot(n, valley.curve(n), "-", color=COLOUR["compute"], linewidth=1.5)
        ax.plot(sizes, losses, "o", color=INK, markersize=4)
        ax.plot(valley.parameters, valley.loss, "D", color=COLOUR["compute"], markeredgecolor=INK, markersize=8)
        ax.annotate(f"{valley.flops:.0e} FLOP".replace("e+0", "e").replace("e+", "e"), (n[-1], valley.curve(n[-1])),
                    xytext=(8, 0), textcoords="offset points", va="center")
    ax.set(xscale="log", xlabel="parameters N (log)", ylabel="held-out loss, nats per character", title=title)
    ax.set_xlim(right=ax.get_xlim()[1] * 2.2)
    return ax


def growth_lines(sweeps, title: str, ax=None):
    """Best size against budget, with the line through each sweep's minima. sweeps: {name: valleys}."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    for (name, valleys), colour, dash, marker in zip(sweeps.items(), (COLOUR["compute"], COLOUR["limiter"]), ("-", "--"), "Ds"):
        flops, sizes = np.array([[v.flops, v.parameters] for v in valleys]).T
        a, b = np.polyfit(np.log(flops), np.log(sizes), 1)
        ends = np.array([flops[0], flops[-1] * 10])
        ax.plot(flops, sizes, marker, color=colour, markeredgecolor=INK)
        ax.plot(ends, np.exp(b) * ends**a, dash, color=colour)
        ax.annotate(f"{name}: a = {a:.2f}", (ends[1], np.exp(b) * ends[1] ** a), xytext=(6, 0), textcoords="offset points", va="center")
    ax.set(xscale="log", yscale="log", xlabel="budget, FLOP (log)", ylabel="best size N (log)", title=title)
    return ax
