"""A tile of a matrix product: what it moves, what it needs, and what holds it back.

C (m, n) = A (m, k) @ B (k, n), cut three times. A block of threads makes a tile of bm x bn elements of C. It walks along k in
steps of bk and stages a slab of A (bm x bk) and one of B (bk x bn) in shared memory. Each of its threads keeps tm x tn sums
in registers. Every cut is reuse: of the chip's memory by bm and bn, of shared memory by tm and tn.
`Tile(1, 1, 1, 1, 1)` has the traffic of a product without tiles: each thread fetches a row and a column.
Exact: bytes, shared memory, occupancy, blocks per SM. Estimated: registers (the compiler decides) and the time. It is put
together from six parts that overlap, but not fully: their norm of order 3. Compute, issue and shared are at peak rates and
err low (bank conflicts, address arithmetic and a clock below the data sheet's are left out); memory errs low too, as blocks
that run at once are taken to share slabs in L2; the L2 rate is a fitted one; latency is an estimate. For the published
ladder (`sgemm_ladder.py`) the tiles of steps 3 to 10 come out 0.95 to 1.4 times as fast as measured. No matrix units: this is
fp32 on plain threads.
Lessons: tiling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..specs.accelerators import Accelerator
from .gemm_constants import CONSTANTS
from .occupancy import Occupancy, occupancy
from .roofline import SHARED_BYTES_PER_CLOCK

ITEM = 4  # bytes: fp32
WARP, SCHEDULERS = 32, 4  # lanes of a warp; instructions that one SM can issue in a clock
LANES = {"8.0": 64}  # fp32 multiply-adds of one SM in a clock; 128 on 8.6 and later
OTHER_REGISTERS = 24  # addresses, counters, values on their way
MOST_REGISTERS = 255  # of a thread, for a compiler
SLAB_CLOCKS, SHARED_CLOCKS = 500, 30  # from asking to having: a slab, a word of shared memory; about
RESOURCES = ("compute", "issue", "shared", "l2", "memory", "latency")
SHARPNESS = 3.0  # order of the norm that puts the parts together; endless: the largest alone
L2 = {"8.0": "a100", "8.6": "a40", "9.0": "h100"}  # whose fitted L2 rate a chip gets
CHOICES = {
    "bm": (16, 32, 64, 128, 256), "bn": (16, 32, 64, 128, 256), "bk": (4, 8, 16, 32, 64), "tm": (1, 2, 4, 8, 16), "tn": (1, 2, 4, 8, 16),
}  # fmt: skip


@dataclass(frozen=True)
class Tile:
    """Sizes of the three cuts, in elements. Fields are numbers, or arrays over many tiles.

    >>> tile = Tile(128, 128, 8, 8, 8)
    >>> tile.threads, tile.smem_bytes, tile.registers
    (256, 8192, 104)
    """

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int

    @property
    def threads(self):
        """Threads of a block."""
        return (self.bm // self.tm) * (self.bn // self.tn)

    @property
    def warps(self):
        """Warps of a block."""
        return _up(self.threads, WARP)

    @property
    def smem_bytes(self):
        """Shared memory of a block: both slabs."""
        return (self.bm + self.bn) * self.bk * ITEM

    @property
    def registers(self):
        """Of a thread, estimated: its sums, a column of A's slab, a row of B's, and the rest."""
        return self.tm * self.tn + self.tm + self.tn + OTHER_REGISTERS

    @property
    def intensity(self):
        """FLOP for each byte that a block fetches from outside of its SM.

        >>> Tile(32, 32, 32, 1, 1).intensity, Tile(128, 128, 8, 8, 8).intensity
        (8.0, 32.0)
        """
        return 2 * self.bm * self.bn / ((self.bm + self.bn) * ITEM)


@dataclass(frozen=True)
class TileTime:
    """What a tile gets from a GPU. seconds: by resource. Every field is a number, or an array over tiles."""

    tile: Tile
    blocks: int  # of the whole grid
    resident: int  # blocks on one SM at once
    turns: int  # blocks that the busiest SM makes, one after the other or side by side
    full: float  # share of all turns of all SMs that has a block in it
    traffic_bytes: float
    seconds: dict[str, float]
    fits: bool

    @property
    def time_s(self):
        """All parts, overlapping imperfectly; infinite where no block fits on an SM."""
        total = sum(part**SHARPNESS for part in self.seconds.values()) ** (1 / SHARPNESS)
        return np.where(self.fits, total, np.inf)[()]

    @property
    def limiter(self):
        """Name of the resource that takes longest; "nothing fits" where no block does."""
        worst = np.argmax(np.array(list(np.broadcast_arrays(*self.seconds.values()))), 0)
        names = np.where(self.fits, np.array(list(self.seconds), object)[worst], "nothing fits")
        return names if names.ndim else str(names)

    def gflops(self, m: int, n: int, k: int):
        """Useful speed for the product that the time was asked for."""
        return 2e-9 * m * n * k / self.time_s


def traffic_bytes(tile: Tile, m, n, k):
    """Bytes between SMs and the rest of the chip: all of A for each column of tiles, all of B for each row of tiles, C once.

    >>> sizes = Tile(1, 1, 1, 1, 1), Tile(32, 32, 32, 1, 1), Tile(128, 128, 8, 8, 8)
    >>> [f"{traffic_bytes(tile, 4096, 4096, 4096) / 1e9:.1f} GB" for tile in sizes]
    ['549.8 GB', '17.2 GB', '4.4 GB']
    """
    return ITEM * (m * k * _up(n, tile.bn) + k * n * _up(m, tile.bm) + m * n)


def memory_bytes(tile: Tile, m, n, k, at_once):
    """Bytes from the chip's memory when the blocks that run at once share their slabs in L2. Between A, B and C once, and
    `traffic_bytes`.

    at_once: blocks, taken row by row from the grid.

    >>> [f"{memory_bytes(Tile(128, 128, 8, 8, 8), 4096, 4096, 4096, blocks) / 1e9:.2f} GB" for blocks in (1, 168, 1024)]
    ['4.36 GB', '0.54 GB', '0.20 GB']
    """
    down, across = _up(m, tile.bm), _up(n, tile.bn)
    at_once = np.minimum(at_once, down * across)
    rows = np.minimum(np.maximum(at_once / across, 1), down) * tile.bm
    columns = np.minimum(at_once, across) * tile.bn
    fetched = ITEM * (down * across / at_once) * (rows + columns) * k
    return np.clip(fetched + ITEM * m * n, ITEM * (m * k + k * n + m * n), traffic_bytes(tile, m, n, k))[()]


def shared_traffic_bytes(tile: Tile, m, n, k):
    """Bytes that lanes write into shared memory and read from it, edges filled up to whole tiles.

    Reuse in registers divides the reads, as reuse in shared memory divides the traffic to memory:

    >>> sizes = Tile(32, 32, 32, 1, 1), Tile(64, 64, 8, 8, 1), Tile(128, 128, 8, 8, 8)
    >>> [f"{shared_traffic_bytes(tile, 4096, 4096, 4096) / 1e9:.0f} GB" for tile in sizes]
    ['567 GB', '318 GB', '73 GB']
    """
    blocks = _up(m, tile.bm) * _up(n, tile.bn)
    return ITEM * blocks * _up(k, tile.bk) * tile.bk * (tile.threads * (tile.tm + tile.tn) + tile.bm + tile.bn)


def tile_occupancy(tile: Tile, gpu: Accelerator) -> Occupancy:
    """Blocks of a tile that one SM holds, by threads, registers and shared memory.

    >>> from mlsys.specs.accelerators import A6000
    >>> found = tile_occupancy(Tile(128, 128, 8, 8, 8), A6000)
    >>> found.blocks_per_sm, found.limiters
    (2, 'registers')
    """
    regs, smem = np.minimum(tile.registers, MOST_REGISTERS), np.asarray(tile.smem_bytes, np.int64)
    return occupancy(gpu.compute_capability, tile.threads, regs, 0, smem, opt_in=True)


def problem(tile: Tile) -> str:
    """Why no GPU runs a tile, in a sentence; "" if one might.

    >>> problem(Tile(64, 64, 8, 5, 8)), problem(Tile(64, 64, 8, 4, 4))
    ('tm=5 does not divide bm=64', '')
    """
    for name, value in vars(tile).items():
        if not isinstance(value, (int, np.integer)) or value < 1:
            return f"{name}={value} is no whole number above 0"
    for part, whole in (("tm", "bm"), ("tn", "bn")):
        if getattr(tile, whole) % getattr(tile, part):
            return f"{part}={getattr(tile, part)} does not divide {whole}={getattr(tile, whole)}"
    if tile.threads > 1024:
        return f"{tile.threads:,} threads, but a block has at most 1,024"
    if tile.registers > MOST_REGISTERS:
        return f"a thread needs about {tile.registers} registers, but has at most {MOST_REGISTERS}"
    return ""


def tile_time(tile: Tile, m, n, k, gpu: Accelerator) -> TileTime:
    """Time of C = A @ B in fp32 on the threads of a GPU, by resource of the busiest SM.

    compute  multiply-adds of whole tiles, those beyond an edge too
    issue    a slot for each multiply-add, and for each load from shared memory of up to four elements
    shared   `shared_traffic_bytes` through 32 banks
    l2       `traffic_bytes` at the rate of L2
    memory   `memory_bytes` at the chip's bandwidth
    latency  each slab, and each word of it, is waited for; resident blocks wait side by side

    Raises ValueError for a tile that no GPU runs. Where it is too large for this one, fits is False.

    >>> from mlsys.specs.accelerators import A6000
    >>> for tile in (Tile(32, 32, 32, 1, 1), Tile(128, 128, 8, 8, 8)):
    ...     found = tile_time(tile, 4096, 4096, 4096, A6000)
    ...     print(found.limiter, round(found.gflops(4096, 4096, 4096)))
    shared 4131
    issue 23925
    """
    if np.ndim(tile.bm) == 0 and (wrong := problem(tile)):
        raise ValueError(f"{tile}: {wrong}")
    if gpu.compute_capability not in L2 or not (gpu.units and gpu.peak_fp32):
        raise ValueError(f"{gpu.name}: its L2 rate, number of SMs or fp32 peak is not known")
    resident = np.asarray(tile_occupancy(tile, gpu).blocks_per_sm)
    fits = (resident > 0) & (tile.registers <= MOST_REGISTERS)
    lanes = LANES.get(gpu.compute_capability, 128)
    clock = gpu.peak_fp32 / (2 * gpu.units * lanes)
    blocks = _up(m, tile.bm) * _up(n, tile.bn)
    turns = _up(blocks, gpu.units)
    depth = _up(k, tile.bk) * tile.bk
    sums, loads = tile.tm * tile.tn, _up(tile.tm, 4) + _up(tile.tn, 4)
    rounds = turns / np.minimum(np.maximum(resident, 1), turns)  # one after the other
    traffic, at_once = traffic_bytes(tile, m, n, k), gpu.units * np.maximum(resident, 1)
    seconds = {
        "compute": turns * depth * tile.warps * WARP * sums / lanes / clock,
        "issue": turns * depth * tile.warps * (sums + loads) / SCHEDULERS / clock,
        "shared": turns * shared_traffic_bytes(tile, tile.bm, tile.bn, k) / SHARED_BYTES_PER_CLOCK / clock,
        "l2": traffic / CONSTANTS[L2[gpu.compute_capability]].l2_bw,
        "memory": memory_bytes(tile, m, n, k, at_once) / gpu.mem_bw,
        "latency": rounds * (depth // tile.bk * SLAB_CLOCKS + depth * SHARED_CLOCKS) / clock,
    }
    return TileTime(tile, blocks, resident[()], turns, blocks / (turns * gpu.units), traffic, seconds, fits[()])


def search(m: int, n: int, k: int, gpu: Accelerator, choices: dict[str, tuple[int, ...]] = CHOICES) -> TileTime:
    """Every tile of the choices that fits, best first; of equal times the one with less shared memory first.

    The fields of what comes back are arrays, its tile is a `Tile` of arrays. It takes 5 ms.

    >>> from mlsys.specs.accelerators import A6000
    >>> found = search(4096, 4096, 4096, A6000)
    >>> [int(size[0]) for size in vars(found.tile).values()], found.limiter[0], round(found.gflops(4096, 4096, 4096)[0])
    ([64, 128, 32, 8, 16], 'issue', 26467)
    """
    grid = np.meshgrid(*(np.asarray(choices[name], np.int64) for name in ("bm", "bn", "bk", "tm", "tn")), indexing="ij")
    bm, bn, bk, tm, tn = (axis.ravel() for axis in grid)
    runs = (bm % tm == 0) & (bn % tn == 0) & (bm * bn <= 1024 * tm * tn) & (bm * bn >= WARP * tm * tn)
    tiles = Tile(*(axis[runs] for axis in (bm, bn, bk, tm, tn)))
    found = tile_time(tiles, m, n, k, gpu)
    order = np.lexsort((tiles.smem_bytes, found.time_s))[: int(found.fits.sum())]
    return tile_time(Tile(*(axis[order] for axis in vars(tiles).values())), m, n, k, gpu)


def _up(value, step):
    """Whole steps that a value takes."""
    return -(-value // step)
