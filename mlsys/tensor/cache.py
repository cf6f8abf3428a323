"""Cache lines: memory is fetched in lines of 64 bytes, whatever you asked for.

The cache here keeps the last few lines that were used (fully associative, least recently used
goes first). Left out: prefetching, which hides the time of a regular walk but not its traffic, and
sets, which make real caches drop lines a little earlier. So the count is a lower bound on traffic.
Lessons: tensors.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from .layout import Layout, offsets


def lines_touched(layout: Layout, line_bytes: int = 64) -> int:
    """Distinct lines that hold at least one byte of the elements. The buffer starts on a line.

    >>> from mlsys.tensor import layout_of
    >>> base = np.zeros((64, 64), np.float32)
    >>> lines_touched(layout_of(base[:, 0], base)), lines_touched(layout_of(base[0], base))
    (64, 4)
    """
    first = offsets(layout).ravel()
    last = first + layout.itemsize - 1
    return len(np.union1d(first // line_bytes, last // line_bytes))


def fetches(layout: Layout, line_bytes: int = 64, cache_lines: int = 1) -> int:
    """Lines fetched while the elements are read in order, with a cache of so many lines.

    Elements are taken to lie inside one line, which holds when itemsize divides line_bytes.
    Raises ValueError if it does not, or if cache_lines is below 1.

    >>> from mlsys.tensor import layout_of
    >>> base = np.zeros((64, 64), np.float32)
    >>> fetches(layout_of(base, base)), fetches(layout_of(base.T, base))
    (256, 4096)
    """
    if line_bytes % layout.itemsize:
        raise ValueError(f"itemsize={layout.itemsize} does not divide line_bytes={line_bytes}")
    if cache_lines < 1:
        raise ValueError(f"cache_lines={cache_lines}: a cache holds at least one line")
    lines = offsets(layout).ravel() // line_bytes
    new = np.flatnonzero(np.diff(lines, prepend=lines[0] - 1))  # a repeat of the last line is never a fetch
    if cache_lines == 1:
        return len(new)
    kept: OrderedDict[int, None] = OrderedDict()
    count = 0
    for line in lines[new].tolist():
        if line in kept:
            kept.move_to_end(line)
            continue
        count += 1
        kept[line] = None
        if len(kept) > cache_lines:
            kept.popitem(last=False)
    return count
