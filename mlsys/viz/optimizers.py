"""Two views of a race between optimizers: how the loss falls, and what the learning rate does to it.

The lines are told apart by their dashes and by the names at their ends; the last one is violet.
Lessons: optimizers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .style import COLOUR

STROKES = [(COLOUR["idle"], ":", "s"), ("#333333", "--", "^"), (COLOUR["optimizer"], "-", "o")]  # colour, dash, marker


def race(losses: Mapping[str, np.ndarray], ax=None, window: int = 20):
    """Loss of up to three runs against the step, each a running mean over `window` steps."""
    ax = ax or _new_axes()
    for (name, loss), (colour, dash, _) in zip(losses.items(), STROKES):
        smooth = np.convolve(loss, np.ones(window) / window, "valid")
        ax.plot(np.arange(window, len(loss) + 1), smooth, color=colour, linestyle=dash)
        ax.annotate(name, (len(loss), smooth[-1]), (5, 0), textcoords="offset points", va="center")
    ax.set(yscale="log", xlabel="step", ylabel="training loss", xlim=(0, 1.25 * len(loss)))
    _plain_ticks(ax.yaxis)
    return ax


def rate_sweep(rates: Sequence[float], losses: Mapping[str, np.ndarray], ax=None):
    """Final loss against the learning rate; losses: for each optimizer (rates, seeds). A band spans the seeds."""
    ax = ax or _new_axes()
    for (name, loss), (colour, dash, marker) in zip(losses.items(), STROKES):
        mean = loss.mean(axis=1)
        ax.fill_between(rates, loss.min(axis=1), loss.max(axis=1), color=colour, alpha=0.15, linewidth=0)
        ax.plot(rates, mean, color=colour, linestyle=dash, marker=marker, markersize=5)
        best = int(mean.argmin())
        ax.annotate(name, (rates[best], mean[best]), (0, -16), textcoords="offset points", ha="center")
    ax.set(xscale="log", yscale="log", xlabel="learning rate", ylabel="loss at the end")
    ax.set_ylim(bottom=0.6 * min(loss.mean(axis=1).min() for loss in losses.values()))
    _plain_ticks(ax.yaxis)
    _plain_ticks(ax.xaxis)
    return ax


def _new_axes():
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def _plain_ticks(axis) -> None:
    """0.1 and 1 instead of powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
