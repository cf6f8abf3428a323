"""Pictures of learning: the gap between two accuracy curves, and small images in a row.

Lessons: learning or memorising.
"""

from __future__ import annotations

import numpy as np

from .style import COLOUR


def gap_curves(xs, train, valid, xlabel: str, title: str, log: bool = False, ax=None):
    """Training and validation accuracy; the gap is shaded where training is ahead; a diamond marks the best validation.

    train, valid: shares from 0 to 1, drawn in per cent; log: x axis in powers of two.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    xs, train, valid = np.asarray(xs), 100 * np.asarray(train), 100 * np.asarray(valid)
    ax.fill_between(xs, train, valid, where=train >= valid, interpolate=True, facecolor=COLOUR["limiter"], alpha=0.15)
    for ys, name, colour, dash in ((train, "training", "#222222", "--"), (valid, "validation", COLOUR["compute"], "-")):
        ax.plot(xs, ys, dash, color=colour)
        ax.annotate(name, (xs[-1], ys[-1]), xytext=(6, 0), textcoords="offset points", va="center")
    best = int(valid.argmax())
    ax.plot(xs[best], valid[best], "D", color=COLOUR["compute"], markeredgecolor="#222222", markersize=8)
    ax.annotate(f"best {valid[best]:.0f} %", (xs[best], valid[best]), xytext=(0, 10), textcoords="offset points", ha="center")
    if log:
        ax.set_xscale("log", base=2)
        ax.set_xticks(xs, [f"{x:g}" for x in xs])
    ax.set(xlabel=xlabel, ylabel="accuracy, %", title=title, ylim=(0, 108))
    return ax


def image_row(images, labels, ax=None):
    """Square grey images side by side, each with its label above. images: (n, pixels)."""
    import matplotlib.pyplot as plt

    images = np.asarray(images)
    side = round(images.shape[1] ** 0.5)
    ax = ax or plt.subplots(figsize=(7, 7 / len(images) + 0.35))[1]
    framed = np.pad(images.reshape(-1, side, side), ((0, 0), (1, 1), (1, 1)))
    ax.imshow(np.concatenate(list(framed), axis=1), cmap="gray_r", vmin=0, vmax=1)
    for i, label in enumerate(labels):
        ax.text(i * (side + 2) + side / 2 + 0.5, -0.8, str(label), ha="center", va="bottom")
    ax.set_axis_off()
    return ax
