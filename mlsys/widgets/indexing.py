"""The index explorer: a grid of blocks over a matrix, one thread of it, its warp, and the sectors that the warp asks for.

Each thread's x and y come from its block and its place in it; a guard stops those outside the matrix.
Left out: the third axis, and caches: sectors of other warps' requests may be in the L2 already.
Lessons: CUDA programming model.
"""

from __future__ import annotations

from ..units import plural
from ..viz.indexing import Mapping, mapping
from ..viz.picture import INK, Picture
from ..viz.style import COLOUR
from .base import Explorer, choice, slider

BLOCKS = {f"{x} x {y}": (x, y) for x, y in ((32, 8), (16, 16), (8, 32), (64, 4), (128, 1), (10, 6))}
FORMS = {"x along a row": False, "x and y swapped": True}
ITEMS = {"1 byte": 1, "4 bytes": 4, "8 bytes": 8}
ROUNDED = {"up: ceil": True, "down: floor": False}
LEFT, TOP, WIDE, HIGH = 40, 58, 640, 330  # of the plot
CLOSEST = 5  # pixels between two edges of blocks that are still worth drawing


class IndexExplorer(Explorer):
    """Which element a thread works on, and what its warp moves."""

    def __init__(self):
        self.width = slider("matrix width", 40, 1, 64)
        self.height = slider("matrix height", 20, 1, 40)
        self.block = choice("block, x by y", list(BLOCKS))
        self.rounded = choice("blocks, rounded", list(ROUNDED))
        self.form = choice("kernel", list(FORMS))
        self.item = choice("element", list(ITEMS), "4 bytes")
        self.thread = slider("thread", 300, 0, 8191)  # the most that these sizes launch
        super().__init__([self.width, self.height, self.block, self.rounded, self.form, self.item, self.thread])

    def model(self) -> Mapping:
        return mapping(self.width.value, self.height.value, BLOCKS[self.block.value], FORMS[self.form.value],
                       ITEMS[self.item.value], ROUNDED[self.rounded.value])

    def chosen(self, launch: Mapping) -> int:
        """The thread that the slider names; past the end of a small launch it is the last one."""
        return min(self.thread.value, launch.threads - 1)

    def sentence(self) -> str:
        launch = self.model()
        t = self.chosen(launch)
        block, thread = launch.place(t)
        x, y = (int(v) for v in launch.xy(t))
        number = thread[1] * launch.block[0] + thread[0]
        element = f"element {y * launch.width + x}" if launch.inside(t) else "outside, so the guard stops it"
        return (f"Thread {t} of the launch is thread {thread} of block {block}: number {number} in its block, so warp {number // 32}, "
                f"lane {number % 32}. It has x = {x}, y = {y}: {element}. Grid {launch.grid[0]} x {launch.grid[1]}: "
                f"{launch.threads:,} threads, {launch.threads - launch.busy:,} of them outside.")

    def draw(self) -> Picture:
        launch = self.model()
        t = self.chosen(launch)
        picture = Picture(700, 452, f"A grid of thread blocks over a matrix. {finding(launch, t)}. {self.sentence()}")
        picture.text(16, 20, finding(launch, t), 14, bold=True)
        columns, rows = (max(a, b) for a, b in zip(launch.reach, (launch.width, launch.height)))
        side = min(WIDE / columns, HIGH / rows, 40)
        draw_matrix(picture, launch, side)
        draw_sectors(picture, launch, side, t)
        draw_blocks(picture, launch, side, t)
        draw_warp(picture, launch, side, t)
        draw_axes(picture, columns, rows, side)
        draw_legend(picture)
        return picture


def finding(launch: Mapping, thread: int) -> str:
    """The title: what is wrong or what the warp's request costs.

    >>> finding(mapping(64, 32, (32, 8), swapped=True, itemsize=1), 0)
    'One request of this warp: 32 elements, 32 sectors where 1 would do'
    >>> finding(mapping(40, 20, (32, 8), rounded_up=False), 0)
    'Rounded down, the grid leaves 288 of 800 elements without a thread'
    """
    missed = launch.width * launch.height - launch.busy
    if missed:
        return f"Rounded down, the grid leaves {missed:,} of {launch.width * launch.height:,} elements without a thread"
    lanes = launch.warp(thread)
    inside, sectors, least = int(launch.inside(lanes).sum()), len(launch.sectors(thread)), launch.least_sectors(thread)
    if not inside:
        return f"No lane of this warp is inside the matrix: the guard stops all {len(lanes)}"
    elements = f"One request of this warp: {plural(inside, 'element')}"
    if sectors == least:
        return f"{elements}, {plural(sectors, 'sector')}, the least possible"
    return f"{elements}, {sectors} sectors where {least} would do"


def draw_matrix(picture: Picture, launch: Mapping, side: float) -> None:
    """The threads outside, hatched; the elements on top; those that no thread has, crossed."""
    across, down = launch.reach
    w, h = launch.width, launch.height
    if across > w:
        picture.rect(LEFT + w * side, TOP, (across - w) * side, down * side, COLOUR["idle"], "none", "/", 0.25)
    if down > h:
        picture.rect(LEFT, TOP + h * side, min(across, w) * side, (down - h) * side, COLOUR["idle"], "none", "/", 0.25)
    if across < w:
        picture.rect(LEFT + across * side, TOP, (w - across) * side, h * side, COLOUR["limiter"], INK, "x", 0.5)
    if down < h:
        picture.rect(LEFT, TOP + down * side, min(across, w) * side, (h - down) * side, COLOUR["limiter"], INK, "x", 0.5)


def draw_sectors(picture: Picture, launch: Mapping, side: float, thread: int) -> None:
    for column, row, wide, high in launch.sector_boxes(thread):
        picture.rect(LEFT + column * side, TOP + row * side, wide * side, high * side, COLOUR["memory"], INK)


def draw_blocks(picture: Picture, launch: Mapping, side: float, thread: int) -> None:
    """Edges of the matrix (thick), of all blocks (thin, dashed) and of the thread's own (solid)."""
    bx, by = launch.block[::-1] if launch.swapped else launch.block
    across, down = launch.reach
    for k in range(across // bx + 1) if bx * side >= CLOSEST else ():
        picture.line([(LEFT + k * bx * side, TOP), (LEFT + k * bx * side, TOP + down * side)], INK, 0.8, ":")
    for k in range(down // by + 1) if by * side >= CLOSEST else ():
        picture.line([(LEFT, TOP + k * by * side), (LEFT + across * side, TOP + k * by * side)], INK, 0.8, ":")
    frame(picture, 0, 0, launch.width, launch.height, side, 2.2)
    block = launch.place(thread)[0]
    column, row = block[::-1] if launch.swapped else block
    frame(picture, column * bx, row * by, bx, by, side, 1.4)


def frame(picture: Picture, x: float, y: float, w: float, h: float, side: float, width: float) -> None:
    corners = ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))
    picture.line([(LEFT + a * side, TOP + b * side) for a, b in corners], INK, width)


def draw_warp(picture: Picture, launch: Mapping, side: float, thread: int) -> None:
    """The warp's lanes, filled where inside; the chosen thread with a dot."""
    lanes = launch.warp(thread)
    x, y = launch.xy(lanes)
    gap = side * 0.16
    for a, b, inside in zip(x.tolist(), y.tolist(), launch.inside(lanes).tolist()):
        fill = COLOUR["compute"] if inside else "none"
        picture.rect(LEFT + a * side + gap, TOP + b * side + gap, side - 2 * gap, side - 2 * gap, fill, INK)
    a, b = (int(v) for v in launch.xy(thread))
    picture.circle(LEFT + (a + 0.5) * side, TOP + (b + 0.5) * side, max(side * 0.3, 4.0), COLOUR["limiter"], INK)


def draw_axes(picture: Picture, columns: int, rows: int, side: float) -> None:
    step = next(s for s in (1, 2, 4, 8, 16, 32, 64) if s * side >= 24)
    for k in range(0, columns + 1, step):
        picture.text(LEFT + k * side, TOP - 6, str(k), 10, "middle")
    for k in range(step, rows + 1, step):
        picture.text(LEFT - 6, TOP + k * side + 4, str(k), 10, "end")
    picture.text(LEFT, TOP - 20, "x, elements (y downward)", 11)


def draw_legend(picture: Picture) -> None:
    y = 416
    items = (("compute", "", "lane of the warp"), ("memory", "", "sector, 32 bytes"),
             ("idle", "/", "threads outside"), ("limiter", "x", "no thread"))
    for k, (colour, hatch, name) in enumerate(items):
        picture.rect(LEFT + k * 140, y, 14, 14, COLOUR[colour], INK, hatch, 0.5 if hatch else 1.0)
        picture.text(LEFT + k * 140 + 20, y + 12, name, 11)
    picture.circle(LEFT + 4 * 140 + 7, y + 7, 6, COLOUR["limiter"], INK)
    picture.text(LEFT + 4 * 140 + 20, y + 12, "the thread", 11)
    lines = "thick: the matrix; dotted: blocks; thin: the block of the thread; open boxes: lanes that the guard stops"
    picture.text(LEFT, y + 32, lines, 11)
