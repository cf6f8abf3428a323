"""Pictures of coalescing: which sectors the lanes of one warp touch, and what bandwidth is left.

Only sectors that are touched are drawn, side by side; a gap between two of them stands for memory that nobody asks for.
Left out: caches. A sector that another request brought shortly before may cost nothing.
Lessons: coalescing and occupancy.
"""

from __future__ import annotations

import numpy as np

from ..gpu.coalescing import LINE, SECTOR
from ..units import percent
from .picture import INK, Axes, Picture
from .style import COLOUR, ink_on

FIRST, LAST = 22.0, 714.0  # pixels that lanes and sectors share out
LANE = (LAST - FIRST) / 32


def touched(addresses: np.ndarray, itemsize: int) -> np.ndarray:
    """Numbers of the sectors that hold a byte of any lane, in order.

    >>> touched(np.arange(32) * 8, 4).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    return np.unique((np.asarray(addresses)[:, None] + np.arange(itemsize)) // SECTOR)


def places(sectors: np.ndarray) -> tuple[np.ndarray, float]:
    """Left edge of each sector in pixels and the width of one: less room where memory is skipped or a line ends."""
    jump = min(10.0, 170 / len(sectors))
    steps, line_ends = np.diff(sectors), np.diff(sectors * SECTOR // LINE) > 0
    gaps = np.where(steps > 1, jump, np.where(line_ends, jump / 2, 0.0))
    width = min(118.0, (LAST - FIRST - gaps.sum()) / len(sectors))
    lefts = np.r_[0.0, np.cumsum(gaps + width)]
    return lefts + (FIRST + LAST - lefts[-1] - width) / 2, width


def draw_lanes(picture: Picture, top: float, addresses: np.ndarray, itemsize: int) -> None:
    """The 32 lanes, the sectors they touch below them, and a line from each lane to its bytes."""
    sectors = touched(addresses, itemsize)
    lefts, width = places(sectors)
    byte = width / SECTOR
    picture.text(FIRST, top - 7, "32 lanes of one warp, one load", 12)
    bottom = top + 96
    for lane, address in enumerate(np.asarray(addresses).tolist()):
        x = FIRST + lane * LANE
        middle = lefts[np.searchsorted(sectors, address // SECTOR)] + (address % SECTOR + itemsize / 2) * byte
        picture.line([(x + LANE / 2, top + 22), (middle, bottom)], INK, 0.8)
        picture.rect(x, top, LANE, 22, COLOUR["compute"], INK)
        picture.text(x + LANE / 2, top + 15, str(lane), 10, "middle", ink_on(COLOUR["compute"]))
    for left, sector in zip(lefts.tolist(), sectors.tolist()):
        draw_sector(picture, left, bottom, width, sector, addresses, itemsize)
    draw_lines(picture, bottom + 38, sectors, lefts, width)


def draw_sector(picture: Picture, left: float, top: float, width: float, sector: int, addresses, itemsize: int) -> None:
    """32 bytes: those that lanes asked for are full, the others hatched."""
    picture.rect(left, top, width, 34, COLOUR["idle"], INK, "/")
    for address in np.unique(addresses):
        start, end = max(address - sector * SECTOR, 0), min(address + itemsize - sector * SECTOR, SECTOR)
        if start < end:
            picture.rect(left + start * width / SECTOR, top, (end - start) * width / SECTOR, 34, COLOUR["memory"], INK)


def draw_lines(picture: Picture, y: float, sectors: np.ndarray, lefts: np.ndarray, width: float) -> None:
    """A bracket below the sectors of each 128-byte line, with the byte that it begins at where there is room."""
    lines = sectors * SECTOR // LINE
    free = 0.0
    for line in np.unique(lines).tolist():
        mine = lefts[lines == line]
        start, end = float(mine[0]) + 1, float(mine[-1]) + width - 1
        picture.line([(start, y), (start, y + 5), (end, y + 5), (end, y)], INK, 1)
        words = f"line at {line * LINE:,}"
        if start >= free:
            short = words if end - start > 60 or len(lefts) < 3 else f"{line * LINE:,}"
            picture.text(start, y + 19, short, 11)
            free = start + 6.4 * len(short) + 8


def draw_bytes(picture: Picture, left: float, top: float, asked: int, sectors: int) -> None:
    """Two bars to one scale: bytes asked for, and bytes of all sectors."""
    scale, moved = 440 / (32 * SECTOR), sectors * SECTOR
    for n, (words, size) in enumerate((("asked for", asked), ("moved", moved))):
        y = top + 24 * n
        picture.text(left + 62, y + 13, words, 12, "end")
        if size > asked:
            picture.rect(left + 70, y, size * scale, 18, COLOUR["idle"], INK, "/")
        picture.rect(left + 70, y, asked * scale, 18, COLOUR["memory"], INK)
        picture.text(left + 78 + size * scale, y + 13, f"{size:,} B", 12)


def draw_counts(picture: Picture, box, values, counts, least: int, now: int, words: str, first: bool = False) -> None:
    """Sectors of one request against one control; dotted: the least, if every byte moved were used."""
    axes = Axes(picture, box, (values[0], values[-1]), (0, 34), words, "sectors for one load; dotted: the least" if first else "",
                xticks=[values[0], *(v for v in (8, 16, 24, 32) if v < values[-1] - 2), values[-1]], yticks=[0, 8, 16, 24, 32])
    axes.plot([values[0], values[-1]], [least, least], INK, 1.2, ":")
    axes.plot(values, counts, COLOUR["memory"], 1.5)
    for value, count in zip(values, counts):
        axes.dot(value, count, COLOUR["memory"], 2.6, INK)
    axes.dot(now, counts[values.index(now)], COLOUR["limiter"], 5.5, INK)


def stride_bandwidth(strides, shares, title: str, ax=None):
    """Share of bandwidth that is left for useful bytes against stride, {name of the access: shares}."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    for (name, share), colour, style in zip(shares.items(), (COLOUR["memory"], COLOUR["compute"]), ("o-", "s--")):
        ax.plot(strides, 100 * np.asarray(share), style, color=colour, markeredgecolor="#222222", markersize=5, label=name)
    ax.legend()
    ax.set(xlabel="stride, elements", ylabel="bytes used, % of bytes moved", ylim=(0, 105), title=title)
    return ax


def sector_map(addresses, itemsize: int = 4, ax=None):
    """One load of a warp as a map: 32 bytes a row for each sector touched, with the lane that asked for each byte."""
    import matplotlib.pyplot as plt

    sectors = touched(addresses, itemsize)
    ax = ax or plt.subplots(figsize=(7, 0.7 + 0.22 * len(sectors)))[1]
    for row, sector in enumerate(sectors.tolist()):
        ax.barh(row, SECTOR, color="white", edgecolor="#222222", hatch="///", linewidth=0.8)
        for lane, address in enumerate(addresses):
            if address // SECTOR == sector:
                ax.barh(row, itemsize, left=address % SECTOR, color=COLOUR["memory"], edgecolor="#222222")
                ax.text(address % SECTOR + itemsize / 2, row, str(lane), ha="center", va="center", fontsize=8)
    used = len(np.unique(addresses)) * itemsize / (len(sectors) * SECTOR)
    ax.set_yticks(range(len(sectors)), [f"{s * SECTOR}" for s in sectors.tolist()])
    ax.invert_yaxis()
    ax.grid(False)
    ax.set(xlim=(0, SECTOR), xlabel="byte in the sector; numbers: lanes", ylabel="sector at byte",
           title=f"{len(sectors)} sectors move {len(sectors) * SECTOR} bytes, and {percent(used)} of them are used")
    return ax
