"""How long a matrix product takes: a library's kernels, tile by tile, wave by wave.

C (m, n) = A (m, k) @ B (k, n) is cut into tiles; one thread block makes one tile and steps along k. With too few tiles to
fill the chip, k is cut too (split-K), and a second kernel adds the parts. For each candidate the model asks four things:
  compute  blocks run in waves of one per SM; the last wave is rarely full; a small tile reuses less; the power limit slows
           long products down
  memory   A, B and C once each, and the parts of a split K twice
  l2       every block stages its slabs of A and B
  launch   a kernel takes microseconds to start and end
and takes the candidate of least time. Six constants a GPU are fitted to measured times (`gemm_constants.py`).
Simplified: a library picks by rules that are not always best, so its time is above the model's where the two disagree:
the model errs low there, by up to 1.8 times for 128 < m < 1024. One block an SM, whole SMs, no difference between
layouts of A and B. All measured k are multiples of 32 and all measured times are of fp16 with m up to 4,096.
Because every part grows with m, n and k, so does the time: it never falls when the product grows.
Lessons: tiling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .gemm_constants import ACCELERATOR, CONSTANTS, SHARED, GemmConstants, Shared

ITEM, PART = 2, 4  # bytes of an fp16 element, and of a partial sum


@dataclass(frozen=True)
class Plan:
    """The candidate of least time: its tile, its parts along k, and seconds by resource. Fields may be arrays."""

    tile_m: int
    tile_n: int
    split: int
    blocks: int
    waves: float  # blocks over SMs, before rounding up
    compute_s: float
    memory_s: float
    l2_s: float
    launch_s: float
    time_s: float

    @property
    def limiter(self) -> str:
        """The resource that takes longest, or "launch" if starting the kernel does. For one product.

        >>> [plan("a100", m, 4096, 4096).limiter for m in (1, 4096)], plan("a100", 1, 64, 64).limiter
        (['memory', 'compute'], 'launch')
        """
        parts = {"compute": self.compute_s, "memory": self.memory_s, "l2": self.l2_s, "launch": self.launch_s}
        return max(parts, key=parts.get)


def time_s(gpu: str, m, n, k):
    """Seconds that C (m, n) = A (m, k) @ B (k, n) takes in fp16. m, n, k are whole numbers or arrays; they broadcast.

    gpu: "a100" (80 GB SXM), "a40" or "h100" (SXM). Sixty-four rows cost hardly more than one: both stream B.

    >>> [round(time_s("a100", m, 4096, 4096) * 1e6) for m in (1, 64, 1024, 4096)]
    [27, 27, 163, 584]
    """
    return plan(gpu, m, n, k).time_s


def plan(gpu: str, m, n, k) -> Plan:
    """The tile and split that the model chooses, with seconds by resource.

    >>> best = plan("a100", 4096, 4096, 4096)
    >>> best.tile_m, best.tile_n, best.split, best.limiter
    (256, 128, 1, 'compute')
    """
    return predict(gpu, m, n, k, constants_of(gpu))


def predict(gpu: str, m, n, k, constants: GemmConstants, shared: Shared = SHARED) -> Plan:
    """`plan` with constants of your own: what a fit calls, and what "with half the launch time" asks.

    >>> from dataclasses import replace
    >>> ours = CONSTANTS["h100"]
    >>> at_once = replace(ours, launch_s=0.0)
    >>> round(predict("h100", 1, 4096, 4096, at_once).time_s / predict("h100", 1, 4096, 4096, ours).time_s, 2)
    0.74
    """
    on = ACCELERATOR[known(gpu)]
    shape = np.broadcast_shapes(*(np.shape(size) for size in (m, n, k)))
    m, n, k = (np.broadcast_to(_whole(name, size), shape).reshape(-1, 1) for name, size in (("m", m), ("n", n), ("k", k)))
    tile_m, tile_n, split = _candidates(shared)
    depth = np.ceil(k / split / shared.k_step) * shared.k_step  # of k that one block goes through
    blocks = np.ceil(m / tile_m) * np.ceil(n / tile_n) * split
    waves = blocks / on.units
    run = shared.overlap * np.maximum(waves, 1) + (1 - shared.overlap) * np.ceil(waves)
    reuse = tile_m * tile_n / (tile_m + tile_n)
    rate = on.peak("fp16") / on.units * constants.compute_share * reuse / (reuse + shared.half_intensity)
    compute = run * 2 * tile_m * tile_n * depth / rate
    compute = compute / (1 - constants.droop * compute / (compute + shared.droop_s))
    parts = np.where(split > 1, 2 * split * PART, 0) * m * n
    memory = (ITEM * (m * k + k * n + m * n) + parts) / (on.mem_bw * constants.memory_share)
    l2 = blocks * (tile_m + tile_n) * depth * ITEM / constants.l2_bw
    p = shared.sharpness
    extra = np.where(split > 1, constants.reduce_s, 0.0)
    penalty = (reuse.max() / reuse) ** shared.tile_cost * split**shared.split_cost
    total = (((compute**p + memory**p + l2**p) ** (1 / p)) + extra) * penalty
    best = total.argmin(1)[:, None]

    def chosen(values, kind=float):
        picked = np.take_along_axis(np.broadcast_to(values, total.shape), best, 1).reshape(shape).astype(kind)
        return picked if shape else picked.item()

    launch = constants.launch_s + extra
    return Plan(
        *(chosen(values, np.int64) for values in (tile_m, tile_n, split, blocks)),
        *(chosen(values) for values in (waves, compute, memory, l2, launch, total + constants.launch_s)),
    )


def roofline_s(gpu: str, m, n, k, compute_share: float, memory_share: float, launch_s: float):
    """The model to beat: the larger of arithmetic and traffic at a share of each peak, and a launch. Three constants.

    >>> round(roofline_s("a100", 4096, 4096, 4096, 0.7173, 0.7904, 10.2e-6) * 1e6)
    624
    """
    on = ACCELERATOR[known(gpu)]
    m, n, k = (_whole(name, size) for name, size in (("m", m), ("n", n), ("k", k)))
    compute = 2 * m * n * k / (on.peak("fp16") * compute_share)
    found = launch_s + np.maximum(compute, ITEM * (m * k + k * n + m * n) / (on.mem_bw * memory_share))
    return found if np.ndim(found) else float(found)


def constants_of(gpu: str) -> GemmConstants:
    """The fitted constants of a GPU.

    >>> round(constants_of("a100").launch_s * 1e6, 1)
    4.2
    """
    return CONSTANTS[known(gpu)]


def known(gpu: str) -> str:
    """The name of a GPU that was measured, or a sentence about those that were.

    >>> known("a100")
    'a100'
    """
    if gpu not in ACCELERATOR:
        raise ValueError(f"gpu={gpu!r} was not measured; there are {', '.join(ACCELERATOR)}")
    return gpu


def _candidates(shared: Shared):
    """Tiles and splits as three rows: (1, candidates) each."""
    rows = [(tile_m, tile_n, split) for tile_m, tile_n in shared.tiles for split in shared.splits]
    return (np.array(column, float)[None, :] for column in zip(*rows))


def _whole(name: str, size):
    """A size as float64, or a sentence about what is wrong with it."""
    size = np.asarray(size)
    if size.dtype.kind not in "iuf" or np.any(size != np.floor(size)):
        raise ValueError(f"{name}={size} is no whole number")
    if np.any(size < 1):
        raise ValueError(f"{name}={size.min()} is below 1")
    return size.astype(float)
