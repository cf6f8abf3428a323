"""The SGEMM ladder: nine published kernels for one product, and what holds each of them back.

S. Boehm wrote fp32 matrix products of 4,096 x 4,096 for an RTX A6000, from one thread for each element to 94 % of the vendor's
library, and published every speed (https://siboehm.com/articles/22/CUDA-MMM; numbers in `PUBLISHED`). Here each step is
described by what a warp does while a block walks one slab along k: multiply-adds, and memory requests with the
addresses of their lanes. Four resources of an SM are added up in clocks:
  issue        a warp instruction takes one of four slots a clock
  load/store   a request takes a clock for each pass through the banks or each line of the cache, and two at least, as an SM
               of this chip has 16 load/store units for 32 lanes
  latency      a slab is waited for, unless other resident blocks have work meanwhile
  l2           slabs come from L2, at the rate that was fitted to another card with the same chip (A40, `gemm_constants.py`)
They overlap, but not fully: the time is their norm of order 3. Nothing is fitted to the published speeds.
How far off: 0.8 to 1.3 times the published speeds, in the right order. Simplified: L1 and L2 hold what blocks share; address
arithmetic and the write of C are free. The clock is the data sheet's 1.8 GHz; a chip at its power limit runs slower, and
the last steps come out too fast. Lanes that read one word of 16 bytes are counted apart (see `banks.py`), so "1D tiles"
comes out too slow. The two clocks for a request are read off NVIDIA's drawing of the SM (4 load/store units in each of 4
partitions) and not documented; with one clock step 2 comes out at 2.4 and step 3 at 1.5 times the published speed. That
"tuned" comes out above "vector loads" is a matter of 0.1 %. How the compiler joins loads is taken from the article. The library's
kernel is not public: that step is a guess, warp tiles whose loads are hidden. Left out are the three published kernels that
were slower than "vector loads" before them (two against bank conflicts, one with double buffers).
Lessons: tiling.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..specs.accelerators import A6000, Accelerator
from .banks import passes_per_request
from .coalescing import LINE, SECTOR, units_per_request
from .gemm_constants import CONSTANTS
from .occupancy import occupancy
from .tiles import ITEM, SCHEDULERS, WARP, Tile, traffic_bytes

SIZE = 4096
LEAST_CLOCKS = 2  # a request of 32 lanes through 16 load/store units
LATENCY_CLOCKS = 500  # from the request for a slab until it has arrived, about
SHARPNESS = 3.0
PUBLISHED = {  # GFLOP/s at 4,096: README of siboehm/SGEMM_CUDA (MIT licence), RTX A6000, fp32
    "naive": 309.0, "coalesced": 1986.5, "shared memory": 2980.3, "1D tiles": 8474.7, "2D tiles": 15971.7, "vector loads": 18237.3,
    "tuned": 19721.0, "warp tiles": 21779.3, "library": 23249.6,
}  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A memory instruction of a warp: bytes a lane, addresses (warps, 32) in bytes for all warps of a block, times a slab."""

    what: str
    shared: bool
    width: int
    addresses: np.ndarray
    times: float

    @property
    def clocks(self) -> float:
        """Clocks of the SM's load/store path that the warps of a block take with it, for one slab."""
        if self.shared:
            passes = passes_per_request(self.addresses, self.width).astype(int)
        else:
            lines = units_per_request(self.addresses, self.width, None, LINE).astype(int)
            passes = np.maximum(lines, -(-units_per_request(self.addresses, self.width, None, SECTOR).astype(int) // 4))
        return float(np.maximum(passes, LEAST_CLOCKS).sum() * self.times)

    @property
    def slots(self) -> float:
        """Issue slots that the warps of a block take with it, for one slab."""
        return len(self.addresses) * self.times


@dataclass(frozen=True)
class Step:
    """One kernel of the ladder: its tile, registers of a thread, requests for one slab. hidden: loads run ahead of their use."""

    name: str
    idea: str
    tile: Tile
    registers: int
    requests: tuple[Request, ...]
    staged: bool = True
    hidden: bool = False


@dataclass(frozen=True)
class Prediction:
    """What a step gets: milliseconds by resource, resident blocks on an SM, and speed."""

    step: Step
    resident: int
    ms: dict[str, float]
    gflops: float
    published: float

    @property
    def limiter(self) -> str:
        """Name of the resource that takes longest."""
        return max(self.ms, key=self.ms.get)

    @property
    def worst_request(self) -> str:
        """The request that keeps the load/store path busy longest.

        >>> ladder()[0].worst_request
        'A'
        """
        return max(self.step.requests, key=lambda request: request.clocks).what


def predict(step: Step, on: Accelerator = A6000) -> Prediction:
    """Time of one step by resource, and its speed.

    >>> found = predict(steps()[0])
    >>> found.limiter, found.step.idea
    ('load/store', 'a thread for each element of C; neighbours in a warp are a row apart')
    """
    tile, warps = step.tile, step.tile.threads // WARP
    smem = tile.smem_bytes if step.staged else 0
    resident = occupancy(on.compute_capability, tile.threads, step.registers, smem).blocks_per_sm
    blocks = -(-SIZE // tile.bm) * -(-SIZE // tile.bn)
    turns = -(-blocks // on.units) * (SIZE // tile.bk)  # slabs that the busiest SM goes through
    sums = tile.tm * tile.tn * tile.bk * warps
    clocks = {
        "issue": (sums + sum(request.slots for request in step.requests)) / SCHEDULERS,
        "load/store": sum(request.clocks for request in step.requests),
        "latency": 0.0 if step.hidden or not step.staged else LATENCY_CLOCKS / resident,
    }
    ms = {name: 1e3 * turns * value / on.clock_hz for name, value in clocks.items()}
    ms["l2"] = 1e3 * traffic_bytes(tile, SIZE, SIZE, SIZE) / CONSTANTS["a40"].l2_bw
    total = sum(value**SHARPNESS for value in ms.values()) ** (1 / SHARPNESS)
    return Prediction(step, resident, ms, 2e-6 * SIZE**3 / total, PUBLISHED[step.name])


def ladder(on: Accelerator = A6000) -> list[Prediction]:
    """All nine steps, in the order of the article.

    >>> speeds = [found.gflops for found in ladder()]
    >>> speeds == sorted(speeds)
    True
    """
    return [predict(step, on) for step in steps()]


def steps() -> tuple[Step, ...]:
    """The nine kernels, each with the addresses of its requests.

    >>> [step.name for step in steps()][:3]
    ['naive', 'coalesced', 'shared memory']
    """
    return (_naive(), _coalesced(), _shared(), _columns(), _squares(), _vectors(), _tuned(), _warp_tiles(), _library())


def _threads(count: int) -> np.ndarray:
    """Numbers of a block's threads, one row a warp."""
    return np.arange(count).reshape(-1, WARP)


def _request(what: str, shared: bool, width: int, elements, times: float) -> Request:
    return Request(what, shared, width, np.asarray(elements) * ITEM, times)


def _naive() -> Step:
    t = _threads(1024)
    row, column = t % 32, t // 32
    requests = _request("A", False, 4, row * SIZE, 1), _request("B", False, 4, column, 1)
    return Step("naive", "a thread for each element of C; neighbours in a warp are a row apart", Tile(32, 32, 1, 1, 1), 36, requests, False)


def _coalesced() -> Step:
    t = _threads(1024)
    requests = _request("A", False, 4, t // 32 * SIZE, 1), _request("B", False, 4, t % 32, 1)
    return Step("coalesced", "the same, neighbours in a warp are a column apart", Tile(32, 32, 1, 1, 1), 40, requests, False)


def _shared() -> Step:
    t = _threads(1024)
    requests = (
        _request("fetch", False, 4, t // 32 * SIZE + t % 32, 2),
        _request("stage", True, 4, t, 2),
        _request("A, four of k at once", True, 16, t // 32 * 32, 8),
        _request("B", True, 4, t % 32, 32),
    )
    return Step("shared memory", "slabs of 32 x 32 in shared memory", Tile(32, 32, 32, 1, 1), 37, requests)


def _columns() -> Step:
    t = _threads(512)
    requests = (
        _request("fetch A", False, 4, t // 8 * SIZE + t % 8, 1),
        _request("fetch B", False, 4, t // 64 * SIZE + t % 64, 1),
        _request("stage", True, 4, t, 2),
        _request("A, four of k at once", True, 16, t // 64 * 64, 8 * 8 / 4),
        _request("B", True, 4, t % 64, 8),
    )
    return Step("1D tiles", "each thread makes a column of 8 and keeps B's element in a register", Tile(64, 64, 8, 8, 1), 56, requests)


def _squares() -> Step:
    t = _threads(256)
    requests = (
        _request("fetch A", False, 4, t // 8 * SIZE + t % 8, 4),
        _request("fetch B", False, 4, t // 128 * SIZE + t % 128, 4),
        _request("stage", True, 4, t, 8),
        _request("A", True, 4, t // 16 * 64, 8 * 8),
        _request("B, four columns at once", True, 16, t % 16 * 8, 8 * 2),
    )
    return Step("2D tiles", "each thread makes 8 x 8", Tile(128, 128, 8, 8, 8), 126, requests)


def _vector_requests(threads: int, bk: int, a_reads, b_reads) -> tuple[Request, ...]:
    """A tile of 128 x 128 fetched in fours, A turned while it is staged; reads as given, each (addresses, times of k)."""
    t = _threads(threads)
    loads = 128 * bk // (4 * threads)
    row, part = t // (bk // 4), t % (bk // 4) * 4
    return (
        _request("fetch A in fours", False, 16, row * SIZE + part, loads),
        _request("fetch B in fours", False, 16, t // 32 * SIZE + t % 32 * 4, loads),
        _request("stage A, turned", True, 4, part * 128 + row, 4 * loads),
        _request("stage B in fours", True, 16, t * 4, loads),
        _request("A in fours", True, 16, a_reads[0], bk * a_reads[1]),
        _request("B in fours", True, 16, b_reads[0], bk * b_reads[1]),
    )


def _vectors() -> Step:
    t = _threads(256)
    requests = _vector_requests(256, 8, (t // 16 * 8, 2), (t % 16 * 8, 2))
    return Step("vector loads", "four elements a request, A turned in shared memory", Tile(128, 128, 8, 8, 8), 102, requests)


def _tuned() -> Step:
    t = _threads(256)
    requests = _vector_requests(256, 16, (t // 16 * 8, 2), (t % 16 * 8, 2))
    return Step("tuned", "the best of many sizes: slabs twice as deep", Tile(128, 128, 16, 8, 8), 128, requests)


def _warp_tiles(name: str = "warp tiles", idea: str = "a warp makes 64 x 64, a thread 8 x 16 of it", hidden: bool = False) -> Step:
    t = _threads(128)
    warp, lane = t // 32, t % 32
    requests = _vector_requests(128, 16, (warp // 2 * 64 + lane // 4 * 8, 2), (warp % 2 * 64 + lane % 4 * 4, 4))
    if hidden:
        requests = tuple(request for request in requests if not request.what.startswith("stage"))
    return Step(name, idea, Tile(128, 128, 16, 8, 16), 176, requests, hidden=hidden)


def _library() -> Step:
    return _warp_tiles("library", "a guess: warp tiles, the next slab is copied past the registers meanwhile", True)


def errors(found: Iterable[Prediction]) -> dict[str, float]:
    """Predicted over published speed, by step.

    >>> 0.5 < min(errors(ladder()).values()) and max(errors(ladder()).values()) < 2
    True
    """
    return {step.step.name: step.gflops / step.published for step in found}
