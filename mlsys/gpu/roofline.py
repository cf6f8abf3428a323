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

SHARED_BYTES_PER_CLOCK = 128  # of one SM: 32 banks of 4 bytes


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
    """Bytes per second of the chip's memory and, where SMs and clock are known, of all shared memories together.

    The second is 32 banks x 4 bytes x SMs x clock, without conflicts: an upper bound.

    >>> from mlsys.specs import A100_80GB
    >>> {name: f"{bw / 1e12:.1f} TB/s" for name, bw in bandwidths(A100_80GB).items()}
    {'memory': '2.0 TB/s', 'shared memory': '19.5 TB/s'}
    """
    found = {"memory": on.mem_bw}
    if on.compute_capability and on.units and on.clock_hz:
        found["shared memory"] = SHARED_BYTES_PER_CLOCK * on.units * on.clock_hz
    return found
