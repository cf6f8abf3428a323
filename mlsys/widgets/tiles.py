"""The tile explorer: one matrix product cut in blocks and threads, what the cuts cost, and what holds it back.

Above: the product with its tiles, and one tile with its threads and slabs. Below: how full an SM gets, milliseconds by
resource, and the turns of the SMs with their tail. Times are estimates of `mlsys.gpu.tiles`, mostly too low: bank
conflicts, address arithmetic and throttling are left out; measured kernels reach 70 to 100 % of the speeds shown.
Lessons: tiling.
"""

from __future__ import annotations

from ..gpu.tiles import MOST_REGISTERS, WARP, Tile, TileTime, problem, tile_time
from ..specs.accelerators import A40, A100_80GB, A6000, H100_SXM
from ..specs.sm import sm
from ..units import kib, percent, si
from ..viz.picture import Picture
from ..viz.style import COLOUR
from ..viz.tiling import SHOWN, draw_gauges, draw_parts, draw_product, draw_tile, draw_turns
from .base import Explorer, choice, slider, stops

CHIPS = [(f"{chip.name} ({chip.units} SMs)", chip) for chip in (A6000, A40, A100_80GB, H100_SXM)]
HOLDS = {
    "compute": "Multiply-adds hold it back", "issue": "Issue slots hold it back", "shared": "Shared memory holds it back",
    "l2": "L2 holds it back", "memory": "The chip's memory holds it back", "latency": "Waiting for slabs holds it back",
}  # fmt: skip


class TileExplorer(Explorer):
    """Sizes of a tile on a GPU: traffic, shared memory, registers, occupancy, turns and predicted speed."""

    def __init__(self):
        self.chip = choice("GPU", CHIPS, A6000)
        self.size = slider("m = n = k", 4096, 256, 8192, 64)
        self.bm, self.bn = (stops(f"{name} (block)", powers(16, 256), 128) for name in ("bm", "bn"))
        self.bk = stops("bk (slab)", powers(4, 64), 8)
        self.tm, self.tn = (stops(f"{name} (thread)", powers(1, 16), 8) for name in ("tm", "tn"))
        super().__init__([self.chip, self.size, self.bm, self.bn, self.bk, self.tm, self.tn])

    def tile(self) -> Tile:
        return Tile(*(control.value for control in (self.bm, self.bn, self.bk, self.tm, self.tn)))

    def model(self) -> TileTime | None:
        """What the GPU makes of the tile; None if no GPU runs it."""
        size = self.size.value
        return None if problem(self.tile()) else tile_time(self.tile(), size, size, size, self.chip.value)

    def sentence(self) -> str:
        tile, size, here = self.tile(), self.size.value, self.model()
        cut = f"{size:,}³ in tiles of {tile.bm} x {tile.bn} x {tile.bk}, {tile.tm} x {tile.tn} a thread, on {self.chip.value.name}: "
        if here is None:
            return f"{cut}no GPU runs this, {problem(tile)}."
        if not here.fits:
            return f"{cut}no block fits on an SM."
        return (f"{cut}{si(here.traffic_bytes, 'B', 3)} out of the SMs, {kib(tile.smem_bytes)} KiB and {tile.threads} threads a block, "
                f"{here.resident} on an SM; {here.gflops(size, size, size):,.0f} GFLOP/s, limited by {SHOWN[here.limiter]}.")

    def draw(self) -> Picture:
        tile, size, here, chip = self.tile(), self.size.value, self.model(), self.chip.value
        picture = Picture(760, 716, f"A matrix product cut in tiles. {self.sentence()}")
        picture.text(16, 24, finding(tile, here, size, chip.peak_fp32), 16, bold=True)
        picture.text(16, 46, detail(tile, here, size), 12)
        draw_product(picture, (24, 78, 250), tile, size, size, size, chip.units)
        picture.text(78, 402, f"C = A @ B, {size:,} x {size:,}; red: one tile", 12)
        last = "dashed: beyond C" if size % tile.bm or size % tile.bn else "orange: a slab"
        picture.text(78, 418, f"blue: first turn; hatched: last turn; {last}", 11)
        draw_tile(picture, (404, 70, 250), tile)
        picture.text(430, 402, f"one tile, {tile.bm} x {tile.bn}; red: a thread's {tile.tm} x {tile.tn} sums", 12)
        picture.text(430, 418, f"orange: slabs, {tile.bk} deep; black: what it reads", 11)
        if here is None:
            picture.rect(24, 440, 712, 40, "none", COLOUR["limiter"])
            picture.text(380, 465, f"No GPU runs this: {problem(tile)}.", 13, "middle", bold=True)
            return picture
        picture.text(24, 452, f"what resident blocks take of an SM ({here.resident})", 12, bold=True)
        draw_gauges(picture, (24, 458, 330, 120), here, sm(chip.compute_capability))
        picture.text(404, 452, "time by resource", 12, bold=True)
        draw_parts(picture, (404, 456, 350, 118), here)
        if not here.fits:
            return picture
        picture.text(24, 602, f"turns (down) of {chip.units} SMs (across): {tail(here, chip.units)}", 12, bold=True)
        draw_turns(picture, (44, 608, 692, 96), here, chip.units)
        return picture


def finding(tile: Tile, here: TileTime | None, size: int, peak: float) -> str:
    """The title: why it does not run, lanes without a thread, what the tail wastes, or what holds it back.

    >>> tile = Tile(128, 128, 8, 8, 8)
    >>> finding(tile, tile_time(tile, 4096, 4096, 4096, A6000), 4096, A6000.peak_fp32)
    'Issue slots hold it back: 23,925 GFLOP/s, 62 % of the peak'
    >>> finding(tile, tile_time(tile, 1280, 1280, 1280, A6000), 1280, A6000.peak_fp32)
    'The last turn uses 16 of 84 SMs: 40 % of the chip is idle'
    """
    if here is None:
        return "This tile does not run"
    if not here.fits:
        return f"This tile does not fit: {needs(tile)}"
    if tile.threads < WARP:
        return f"{WARP - tile.threads} of {WARP} lanes of a warp have no thread: {here.gflops(size, size, size):,.0f} GFLOP/s"
    if here.full < 0.75:
        last = here.blocks - (here.turns - 1) * sms(here)
        where = "The last turn" if here.turns > 1 else "The only turn"
        return f"{where} uses {last} of {sms(here)} SMs: {percent(1 - here.full)} of the chip is idle"
    speed = here.gflops(size, size, size)
    return f"{HOLDS[here.limiter]}: {speed:,.0f} GFLOP/s, {percent(1e9 * speed / peak)} of the peak"


def sms(here: TileTime) -> int:
    """SMs of the GPU that a time was asked for."""
    return round(here.blocks / here.full / here.turns)


def needs(tile: Tile) -> str:
    """What a block of a tile asks of an SM."""
    return f"{kib(tile.smem_bytes)} KiB and {min(tile.registers, MOST_REGISTERS) * tile.threads:,} registers for one block"


def detail(tile: Tile, here: TileTime | None, size: int) -> str:
    """The line below the title: traffic and reuse."""
    if here is None:
        return "Change one of the sizes of the tile."
    naive = 4 * (2 * size**3 + size**2)
    return (f"{si(here.traffic_bytes, 'B', 3)} leave and enter the SMs, {naive / here.traffic_bytes:.0f} times less than without tiles; "
            f"{tile.intensity:.3g} FLOP a byte.")


def tail(here: TileTime, units: int) -> str:
    """The last turn in words."""
    last = here.blocks - (here.turns - 1) * units
    return f"{here.blocks:,} blocks, the last turn has {last}" if here.turns > 1 else f"{here.blocks:,} blocks, one turn"


def powers(low: int, high: int) -> list[tuple[str, int]]:
    """Powers of two as stops of a slider.

    >>> powers(4, 16)
    [('4', 4), ('8', 8), ('16', 16)]
    """
    return [(str(2**i), 2**i) for i in range(low.bit_length() - 1, high.bit_length())]
