"""Pictures of tokens: what the same text costs in different languages, and the best size of a vocabulary.

Lessons: tokens and embeddings.
"""

from __future__ import annotations

import numpy as np

from .style import COLOUR


def language_bars(names, series: dict[str, list[float]], title: str, ax=None):
    """Tokens relative to English, one pair of bars a language. series: name -> one number a language; two at most."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 0.38 * len(names) + 1.0))[1]
    at, high = np.arange(len(names)), 0.8 / len(series)
    looks = [(COLOUR["limiter"], "///"), (COLOUR["compute"], "")]
    for i, ((name, values), (colour, hatch)) in enumerate(zip(series.items(), looks)):
        places = at + (i - (len(series) - 1) / 2) * high
        bars = ax.barh(places, values, high, color=colour, hatch=hatch, edgecolor="#222222", linewidth=0.5, label=name)
        ax.bar_label(bars, fmt="%.1f", padding=3, fontsize=8)
    ax.axvline(1, color="#222222", linestyle=":", linewidth=1)
    ax.set(yticks=at, yticklabels=names, xlabel="tokens, English = 1", title=title)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.legend(loc="lower right", title="merges learned from")
    return ax


def cost_curves(vocabularies, costs: dict[str, list[float]], title: str, ax=None):
    """FLOPs a byte over the size of the vocabulary, each line relative to its first point; a diamond marks the least."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    for (name, values), dash in zip(costs.items(), ("-", "--", ":")):
        values = np.asarray(values) / values[0]
        best = int(values.argmin())
        ax.plot(vocabularies, values, dash, color=COLOUR["compute"])
        ax.plot(vocabularies[best], values[best], "D", color=COLOUR["compute"], markeredgecolor="#222222", markersize=8)
        ax.annotate(name, (vocabularies[-1], values[-1]), xytext=(8, 0), textcoords="offset points", va="center")
    ax.set_xscale("log", base=2)
    ax.set_xticks(vocabularies, [f"{v:,}" for v in vocabularies], rotation=30)
    ax.set(xlabel="vocabulary, tokens", ylabel="FLOPs a byte, bytes alone = 1", title=title, ylim=(0, None))
    return ax
