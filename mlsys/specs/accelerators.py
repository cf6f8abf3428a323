"""Accelerators: peak rates and memory, from the vendors' data sheets.

Peaks are dense (no structured sparsity) and are never reached by a whole program: the best
measured bf16 matrix products come to 87 % (A100) and 80 % (H100) of them.
Lessons: tensors.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Accelerator:
    """One chip. peak_bf16 in FLOP/s, mem_bytes in bytes, mem_bw in bytes/s."""

    name: str
    peak_bf16: float
    mem_bytes: float
    mem_bw: float

    @property
    def ridge(self) -> float:
        """FLOP per byte at which compute and memory take equally long.

        >>> round(A100_80GB.ridge), round(H100_SXM.ridge)
        (153, 295)
        """
        return self.peak_bf16 / self.mem_bw


A100_80GB = Accelerator(
    name="A100 80GB SXM",
    peak_bf16=312e12,  # NVIDIA A100 data sheet, dense
    mem_bytes=80e9,
    mem_bw=2.039e12,  # same sheet
)

H100_SXM = Accelerator(
    name="H100 SXM",
    peak_bf16=989.4e12,  # NVIDIA H100 data sheet prints 1,979 with sparsity; half of it is dense
    mem_bytes=80e9,
    mem_bw=3.35e12,  # same sheet
)
