"""Pictures of tiles: a product cut in blocks, one block cut in threads, what fills an SM, and whose time it takes.

Lessons: tiling.
"""

from __future__ import annotations

import numpy as np

from ..gpu.tiles import RESOURCES, Tile, TileTime
from ..specs.sm import SM
from ..units import kib, percent, si
from .picture import INK, Picture
from .runs import rectangles
from .style import COLOUR, blend

DARK = "#222222"
SHOWN = {
    "compute": "multiply-adds", "issue": "issue slots", "shared": "shared memory", "l2": "L2", "memory": "chip's memory",
    "latency": "waiting", "load/store": "load/store path",
}  # fmt: skip
FILL = {
    "compute": COLOUR["compute"], "issue": blend(COLOUR["compute"], 0.5), "shared": COLOUR["memory"], "l2": blend(COLOUR["memory"], 0.6),
    "memory": blend(COLOUR["memory"], 0.3), "latency": COLOUR["idle"],
}  # fmt: skip
MOST_LINES = 32  # of a grid; a finer one is drawn as a tint
CLOSEST = 3.5  # pixels between the lines of threads
LEAST = 2.0  # pixels that a row of blocks is drawn high, however many there are


def draw_product(picture: Picture, box, tile: Tile, m: int, n: int, k: int, units: int) -> None:
    """A on the left, B above, C cut in tiles: first turn blue, last turn hatched, what reaches over the edge dashed.

    box: left, top, side in pixels; the largest of m, n, k takes the side of C. units: SMs.
    """
    left, top, side = box
    down, across = -(-m // tile.bm), -(-n // tile.bn)
    scale = side / max(down * tile.bm, across * tile.bn, 1)
    gap, thin = 8, 46
    x, y, width, height = left + thin + gap, top + thin + gap, n * scale, m * scale
    step_x, step_y = tile.bn * scale, tile.bm * scale
    picture.rect(x, y, width, height, blend(COLOUR["compute"], 0.12), INK)
    _blocks(picture, (x, y, step_x, step_y), across, 0, min(units, down * across), COLOUR["compute"], "", (x + width, y + height))
    last = (down * across - 1) // units * units
    if last:
        _blocks(picture, (x, y, step_x, step_y), across, last, down * across, COLOUR["idle"], "/", (x + width, y + height))
    if across <= MOST_LINES:
        for i in range(1, across):
            picture.line([(x + i * step_x, y), (x + i * step_x, y + height)], DARK, 0.5)
    if down <= MOST_LINES:
        for i in range(1, down):
            picture.line([(x, y + i * step_y), (x + width, y + i * step_y)], DARK, 0.5)
    if across * tile.bn > n or down * tile.bm > m:
        picture.line(_outline(x, y, across * step_x, down * step_y), COLOUR["limiter"], 1.2, "--")
    row, column = down // 2, across // 2
    band_y, band_x = y + row * step_y, x + column * step_x
    band_h, band_w = min(step_y, y + height - band_y), min(step_x, x + width - band_x)
    deep = max(2.0, thin * min(tile.bk / k, 1))
    slabs = (left + 0.4 * thin, band_y, deep, band_h), (band_x, top + 0.4 * thin, band_w, deep)
    for rect, slab in zip(((left, y, thin, height), (x, top, width, thin)), slabs):
        picture.rect(*rect, "none", INK)
        strip = (rect[0], band_y, thin, band_h) if rect[2] == thin else (band_x, rect[1], band_w, thin)
        picture.rect(*strip, blend(COLOUR["memory"], 0.35), INK)
        picture.rect(*slab, COLOUR["memory"], INK)
    picture.rect(band_x, band_y, max(band_w, 2.0), max(band_h, 2.0), COLOUR["limiter"], INK)
    picture.text(left + thin / 2, y - 5, "A", 13, "middle", bold=True)
    picture.text(x - 5, top + thin / 2 + 4, "B", 13, "end", bold=True)


def _blocks(picture: Picture, grid, across: int, first: int, end: int, fill: str, hatch: str, edge) -> None:
    """Blocks first to end - 1 of a grid, numbered row by row, cut off at C's edge."""
    x, y, step_x, step_y = grid
    for column, row, wide, high in rectangles(first, end, across):
        right, bottom = min(x + (column + wide) * step_x, edge[0]), min(y + (row + high) * step_y, edge[1])
        left, height = x + column * step_x, max(bottom - y - row * step_y, LEAST)
        picture.rect(left, min(y + row * step_y, edge[1] - height), right - left, height, fill, "none", hatch, 0.75 if not hatch else 1.0)


def _outline(x, y, width, height):
    return [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]


def draw_tile(picture: Picture, box, tile: Tile) -> None:
    """One tile with its threads, the staged slabs, and what one thread reads and keeps."""
    left, top, side = box
    scale = side / max(tile.bm, tile.bn)
    depth = min(max(tile.bk * scale, 7.0), 52.0)
    x, y, width, height = left + 62, top + 62, tile.bn * scale, tile.bm * scale
    picture.rect(x, y, width, height, blend(COLOUR["compute"], 0.18), INK)
    across, down = tile.bn // tile.tn, tile.bm // tile.tm
    dx, dy = width / across, height / down
    for count, step, vertical in ((across, dx, True), (down, dy, False)):
        for i in range(1, count) if step >= CLOSEST else ():
            ends = [(x + i * step, y), (x + i * step, y + height)] if vertical else [(x, y + i * step), (x + width, y + i * step)]
            picture.line(ends, DARK, 0.4)
    row, column = (2 * down) // 3, (2 * across) // 3
    my_x, my_y = x + column * dx, y + row * dy
    picture.rect(x - 8 - depth, y, depth, height, COLOUR["memory"], INK)
    picture.rect(x, y - 8 - depth, width, depth, COLOUR["memory"], INK)
    picture.rect(x - 8 - depth, my_y, depth, max(dy, 2.0), DARK, INK)
    picture.rect(my_x, y - 8 - depth, max(dx, 2.0), depth, DARK, INK)
    for ends in ([(x - 8, my_y + dy / 2), (my_x, my_y + dy / 2)], [(my_x + dx / 2, y - 8), (my_x + dx / 2, my_y)]):
        picture.line(ends, DARK, 1, ":")
    picture.rect(my_x, my_y, max(dx, 2.0), max(dy, 2.0), COLOUR["limiter"], INK)


def draw_gauges(picture: Picture, box, here: TileTime, on: SM) -> None:
    """How full resident blocks make an SM: threads, registers and shared memory, one cell a block."""
    left, top, width, height = box
    tile, blocks = here.tile, int(here.resident)
    warp_regs = -(-min(tile.registers, 255) * 32 // 256) * 256
    rows = (
        ("threads", tile.warps * 32, on.max_threads, f"{tile.threads} a block"),
        ("registers", warp_regs * tile.warps, on.registers, f"{tile.registers} a thread"),
        ("shared memory", tile.smem_bytes + on.reserved_bytes, on.shared_bytes, f"{kib(tile.smem_bytes)} KiB a block"),
    )
    step, start, long = height / len(rows), left + 104, width - 104
    for i, (name, each, most, text) in enumerate(rows):
        y = top + i * step
        picture.text(left, y + 15, name, 12)
        picture.text(left, y + 29, text, 10)
        share = each / most
        shown = blocks if blocks else 1
        for j in range(shown if shown <= 16 else 1):
            cell = share * long if shown <= 16 else share * shown * long
            fill = COLOUR["limiter"] if share > 1 else blend(COLOUR["compute"], 1.0 if j % 2 == 0 else 0.55)
            picture.rect(start + j * cell, y + 2, min(cell, long - j * cell), 19, fill, INK, "x" if share > 1 else "")
        picture.rect(start, y + 2, long, 19, "none", INK)
        used = share * shown
        over = f"{share:.1f} times what an SM has" if share > 1 else percent(used) + ("" if blocks else " for one block")
        picture.text(start + long, y + 33, over, 10, "end")


def draw_parts(picture: Picture, box, here: TileTime) -> None:
    """Time by resource; the one that takes longest in red, hatched and named."""
    left, top, width, height = box
    if not here.fits:
        picture.rect(left, top + 8, width - 18, height - 16, "none", COLOUR["limiter"])
        picture.text(left + width / 2 - 9, top + height / 2 + 4, "no block fits on an SM", 13, "middle", bold=True)
        return
    most = max(here.seconds.values())
    step = height / len(RESOURCES)
    for i, name in enumerate(RESOURCES):
        value, y = float(here.seconds[name]), top + i * step
        limits = name == here.limiter
        length = max((width - 240) * value / most, 1.0)
        picture.text(left, y + step * 0.66, SHOWN[name], 12, bold=limits)
        fill = COLOUR["limiter"] if limits else FILL[name]
        picture.rect(left + 116, y + step * 0.18, length, step * 0.64, fill, INK, "/" if limits else "")
        text = si(value, "s", 3) + (", limiter" if limits else "")
        picture.text(left + 122 + length, y + step * 0.66, text, 12, bold=limits)


def draw_turns(picture: Picture, box, here: TileTime, units: int) -> None:
    """SMs from left to right, turns downward: full ones blue, the last one as far as there are blocks."""
    left, top, width, height = box
    turns, blocks = int(here.turns), int(here.blocks)
    rows = list(range(turns)) if turns <= 6 else [0, 1, None, turns - 2, turns - 1]
    step = min(height / len(rows), 24)
    for i, turn in enumerate(rows):
        y = top + i * step
        if turn is None:
            picture.text(left + width / 2, y + step * 0.7, f"… {turns - 4:,} more", 11, "middle")
            continue
        busy = min(blocks - turn * units, units)
        picture.text(left - 6, y + step * 0.66, f"{turn + 1:,}", 10, "end")
        picture.rect(left, y + 2, width, step - 4, blend(COLOUR["idle"], 0.35), INK, "\\")
        picture.rect(left, y + 2, width * busy / units, step - 4, COLOUR["compute"], INK)


def ladder_figure(steps, title: str, ax=None):
    """Predicted beside published speed of each kernel, with what holds it back.

    steps: `Prediction`s of `mlsys.gpu.sgemm_ladder`.
    """
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7.6, 4.6))[1]
    place = np.arange(len(steps))
    ax.barh(place - 0.2, [step.published for step in steps], 0.38, color=COLOUR["idle"], edgecolor=DARK, label="published")
    ax.barh(place + 0.2, [step.gflops for step in steps], 0.38, color=COLOUR["compute"], edgecolor=DARK, hatch="//", label="model")
    for y, step in zip(place, steps):
        ax.annotate(SHOWN[step.limiter], (max(step.gflops, step.published), y), (5, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(place, [step.step.name for step in steps])
    ax.set(xscale="log", xlim=(200, 150_000), xlabel="GFLOP/s at 4,096 (log)", ylabel="kernel", title=title)
    ax.invert_yaxis()
    ax.legend(loc="upper right")
    return ax


def parts_figure(times: dict[str, TileTime], title: str, ax=None):
    """Milliseconds by resource for a few tiles; a word above the one that takes longest."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7.4, 3.8))[1]
    wide, most = 0.8 / len(RESOURCES), max(float(max(found.seconds.values())) for found in times.values()) * 1e3
    hatches = ("", "..", "", "..", "//", "")
    for i, (name, hatch) in enumerate(zip(RESOURCES, hatches)):
        values = [float(found.seconds[name]) * 1e3 for found in times.values()]
        place = np.arange(len(times)) + (i - 2.5) * wide
        ax.bar(place, values, wide, color=FILL[name], edgecolor=DARK, hatch=hatch, label=SHOWN[name])
        for x, value, found in zip(place, values, times.values()):
            if found.limiter == name:
                ax.annotate(f"limiter\n{value:.3g} ms", (x, value), (0, 3), textcoords="offset points", ha="center", fontsize=9)
                ax.bar(x, value, wide, fill=False, edgecolor=COLOUR["limiter"], linewidth=2.2)
    ax.set_xticks(np.arange(len(times)), list(times))
    ax.set(yscale="log", ylim=(most / 100, most * 2), ylabel="milliseconds (log)", xlabel="bm x bn x bk, tm x tn", title=title)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
    return ax


def dips_figure(m, tflops, points, peak: float, title: str, ax=None):
    """Useful speed against rows of C: the model as a line, measured (rows, TFLOP/s) as points, the peak above."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    ax.plot(m, tflops, color=COLOUR["compute"], linewidth=1.6, label="model")
    ax.plot(*points, "o", color=COLOUR["memory"], markeredgecolor=DARK, markersize=6, label="measured, held out")
    ax.axhline(peak, color=DARK, linewidth=1, linestyle=":")
    ax.annotate(f"peak {peak:g}", (m[-1], peak), (-2, 4), textcoords="offset points", fontsize=9, ha="right")
    ax.set(xlabel="rows m", ylabel="TFLOP/s", title=title, xlim=(0, m[-1]), ylim=(0, peak * 1.12))
    ax.legend(loc="lower right")
    return ax


def measured_figure(measured: dict[str, np.ndarray], predict, title: str, ax=None):
    """Predicted over measured time of each held-out product, against its rows. predict(gpu, m, n, k) gives seconds."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7.2, 3.8))[1]
    for (gpu, rows), colour, mark in zip(measured.items(), (COLOUR["compute"], COLOUR["memory"], COLOUR["activations"]), "os^"):
        ratio = predict(gpu, *rows[:, :3].T) / rows[:, 3]
        ax.plot(rows[:, 0], ratio, mark, color=colour, markersize=3.5, markeredgecolor=DARK, markeredgewidth=0.3, label=gpu)
    ax.axhline(1, color=DARK, linewidth=1)
    ax.set(xscale="log", ylim=(0.5, 1.5), xlabel="rows m (log)", ylabel="predicted / measured", title=title)
    ax.legend(loc="lower left", ncols=3)
    return ax
