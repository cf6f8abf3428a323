"""Roofline: a kernel takes at least as long as its arithmetic, and at least as long as its traffic.

Below `ridge` FLOP per byte the memory decides, above it the arithmetic. The roof is a bound, never a prediction: if
both overlap fully the time is the larger of the two, if not at all their sum, and the peaks themselves are not
reached (a matrix product gets 51 to 97 % of them). Start-up, waves that are not full, and latency come on top: for short
kernels they are most of the time. So `bounds_s` errs low on both ends when its bytes are counted right.
Lessons: memory hierarchy and roofline, fusion and IO-aware kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..specs.accelerators import Accelerator
from ..specs.sm import SMS

SHARED_BYTES_PER_CLOCK = 128  # of one SM: 32 banks of 4 bytes
L2_READ_PER_CLOCK = {"7.0": 2048, "8.0": 5120}  # bytes, of the whole L2; NVIDIA A100 white paper. No such number for later chips
READ_PER_FLOP = 6  # bytes: a float32 multiply-add reads three operands of 4 bytes and counts as 2 FLOPs


@dataclass(frozen=True)
class Work:
    """What a kernel does: floating point operations, and bytes that pass between the chip and its memory.

    >>> Work(flops=2 * 4096**3, bytes_moved=3 * 4096**2 * 2).intensity
    1365.3333333333333
    """

    flops: float
    bytes_moved: float

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.bytes_moved

    def __add__(self, other: Work) -> Work:
        """Both, one after the other."""
        return Work(self.flops + other.flops, self.bytes_moved + other.bytes_moved)


def attainable_flops(on: Accelerator, intensity: np.ndarray, precision: str = "bf16", bw: float | None = None) -> np.ndarray:
    """The roof: the most FLOP/s at an intensity in FLOP per byte, with bw in bytes/s (the chip's memory if None).

    >>> from mlsys.specs import H100_SXM
    >>> (attainable_flops(H100_SXM, np.array([1.0, 100.0, 1000.0])) / 1e12).round(1).tolist()
    [3.4, 335.0, 989.4]
    """
    return np.minimum(on.peak(precision), np.asarray(intensity) * (bw or on.mem_bw))


def parts_s(work: Work, on: Accelerator, precision: str = "bf16") -> dict[str, float]:
    """Seconds of the arithmetic and of the traffic, each at its peak."""
    return {"compute": work.flops / on.peak(precision), "memory": work.bytes_moved / on.mem_bw}


def bounds_s(work: Work, on: Accelerator, precision: str = "bf16") -> tuple[float, float]:
    """Seconds at peak rates: with compute and memory fully overlapped, and one after the other.

    >>> from mlsys.specs import A100_80GB
    >>> low, high = bounds_s(Work(flops=1e12, bytes_moved=10e9), A100_80GB)
    >>> round(low * 1e3, 2), round(high * 1e3, 2)
    (4.9, 8.11)
    """
    parts = parts_s(work, on, precision).values()
    return max(parts), sum(parts)


def limiter(work: Work, on: Accelerator, precision: str = "bf16") -> str:
    """Which part takes longer: "compute" or "memory".

    >>> from mlsys.specs import H100_SXM
    >>> limiter(Work(2 * 4096**3, 3 * 4096**2 * 2), H100_SXM), limiter(Work(4096, 3 * 4096 * 2), H100_SXM)
    ('compute', 'memory')
    """
    parts = parts_s(work, on, precision)
    return max(parts, key=parts.get)


def bandwidths(on: Accelerator) -> dict[str, float]:
    """Bytes per second of the chip's memory and, where they are known, of its L2 cache and of all shared memories together.

    Both are bytes per clock x clock, for shared memory 32 banks x 4 bytes x SMs without conflicts: upper bounds.

    >>> from mlsys.specs import A100_80GB
    >>> {name: f"{bw / 1e12:.1f} TB/s" for name, bw in bandwidths(A100_80GB).items()}
    {'memory': '2.0 TB/s', 'L2': '7.2 TB/s', 'shared memory': '19.5 TB/s'}
    """
    found = {"memory": on.mem_bw}
    if on.compute_capability and on.clock_hz:
        if on.compute_capability in L2_READ_PER_CLOCK:
            found["L2"] = L2_READ_PER_CLOCK[on.compute_capability] * on.clock_hz
        if on.units:
            found["shared memory"] = SHARED_BYTES_PER_CLOCK * on.units * on.clock_hz
    return found


@dataclass(frozen=True)
class Level:
    """One level of the hierarchy, all SMs together: what it holds, and bytes/s (None where no number is known)."""

    name: str
    size_bytes: float
    bw: float | None


def levels(on: Accelerator) -> list[Level]:
    """Memory, L2, shared memory, registers. For the registers bw is what the float32 peak reads: they give at least that.

    Raises ValueError for a chip whose SMs are not known.

    >>> from mlsys.specs import H100_SXM
    >>> [(level.name, f"{level.size_bytes / 1e6:.1f} MB") for level in levels(H100_SXM)[1:]]
    [('L2', '50.0 MB'), ('shared memory', '30.8 MB'), ('registers', '34.6 MB')]
    """
    if on.compute_capability not in SMS or not (on.units and on.l2_bytes):
        raise ValueError(f"the SMs or the L2 cache of {on.name} are not known")
    unit, bw = SMS[on.compute_capability], bandwidths(on)
    return [
        Level("memory", on.mem_bytes, on.mem_bw),
        Level("L2", on.l2_bytes, bw.get("L2")),
        Level("shared memory", unit.shared_bytes * on.units, bw.get("shared memory")),
        Level("registers", unit.registers * 4 * on.units, on.peak_fp32 and on.peak_fp32 * READ_PER_FLOP),
    ]


def product(m: int, n: int, k: int, itemsize: float = 2) -> Work:
    """(m x k) times (k x n), each matrix crossing the memory bus once: the least traffic.

    >>> round(product(128, 8192, 8192).intensity), round(product(4096, 8192, 8192).intensity)
    (124, 2048)
    """
    return Work(2 * m * n * k, itemsize * (m * k + k * n + m * n))


def ceilings(on: Accelerator, intensities: dict[str, float], precision: str = "bf16") -> dict[str, float]:
    """Most FLOP/s that compute allows, and each level at the kernel's FLOP per byte *from that level*. The least one binds.

    >>> from mlsys.specs import A100_80GB
    >>> limits = ceilings(A100_80GB, {"memory": 2048, "shared memory": 8 / 4}, "fp32")
    >>> {name: f"{limit / 1e12:.1f}" for name, limit in limits.items()}, min(limits, key=limits.get)
    ({'compute': '19.5', 'memory': '4175.9', 'shared memory': '39.0'}, 'compute')
    """
    bw = bandwidths(on)
    missing = intensities.keys() - bw
    if missing:
        raise ValueError(f"{on.name}: no bandwidth is known for {', '.join(sorted(missing))}")
    return {"compute": on.peak(precision), **{level: intensity * bw[level] for level, intensity in intensities.items()}}
