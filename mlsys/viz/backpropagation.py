"""Figure of the gradient check: the error of a central difference against its step.

Lessons: backpropagation.
"""

from __future__ import annotations

import numpy as np

from .style import COLOUR

DASH = {"float64": "-", "float32": "--"}


def difference_errors(steps: np.ndarray, errors: dict[str, np.ndarray], ax=None):
    """One line for each number format, with its best step marked; both axes logarithmic.

    steps: the h of (f(x + h) - f(x - h)) / 2h; errors: distance from the true slope for each h,
    by the name of the number format.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1]
    for name, error in errors.items():
        best = int(np.argmin(error))
        ax.loglog(steps, error, color="#222222", linestyle=DASH.get(name, ":"))
        ax.plot(steps[best], error[best], "o", color=COLOUR["compute"], markeredgecolor="#222222", markersize=8)
        ax.annotate(f"best: h = {steps[best]:.0e}, error {error[best]:.0e}", (steps[best], error[best]),
                    xytext=(-8, -8), textcoords="offset points", ha="right", va="top")
        ax.annotate(name, (steps[0], error[0]), xytext=(0, 8), textcoords="offset points")
    worst, least = max(e.max() for e in errors.values()), min(e.min() for e in errors.values())
    ax.set(xlabel="step h", ylabel="error of the slope", title="Too small a step is as bad as too large a step",
           ylim=(least / 50, worst * 30))
    ax.text(0.13, 0.3, "rounding", transform=ax.transAxes, color="0.35", ha="center")
    ax.text(0.93, 0.66, "bending", transform=ax.transAxes, color="0.35", ha="center", va="top")
    return ax
