"""Pictures of attention: masks and weights as maps, one row a query and one column a key.

Lessons: attention and masks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .style import COLOUR, blend


def maps(panels: dict[str, np.ndarray], title: str, tokens: Sequence[str] | None = None, axes=None):
    """Square maps side by side, white for 0 and dark for 1; returns their axes.

    panels: name -> (queries, keys), booleans or weights from 0 to 1; tokens: a label for each row and
    column, without which the cells have outlines. The title, the finding, stands above the first map.
    """
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    if axes is None:
        width = min(3.2 * len(panels), 9.6)
        axes = plt.subplots(1, len(panels), figsize=(width, width / len(panels) + 0.7), squeeze=False)[1][0]
    colours = LinearSegmentedColormap.from_list("weights", [blend(COLOUR["activations"], s) for s in (0.0, 0.5, 1.0)])
    for n, (ax, (name, weights)) in enumerate(zip(axes, panels.items(), strict=True)):
        ax.imshow(np.asarray(weights, float), cmap=colours, vmin=0, vmax=1)
        ax.set_title(f"{title}\n{name}" if n == 0 else name)
        ax.set_xlabel("key")
        ax.set_ylabel("query" if n == 0 else "")
        ax.grid(False)
        if tokens is None:
            edges = np.arange(len(weights) + 1) - 0.5
            ax.set_xticks(edges, [])
            ax.set_yticks(edges, [])
            ax.tick_params(length=0)
            ax.grid(True, color="0.75", linewidth=0.8, alpha=1)
        else:
            ax.set_xticks(range(len(tokens)), tokens, family="monospace")
            ax.set_yticks(range(len(tokens)), tokens, family="monospace")
    return axes
