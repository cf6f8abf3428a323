"""Constants of the GEMM model: what was fitted for each GPU, what is shared, and how well it does.

Six numbers a GPU were fitted by `python -m tests.benchmarks.gemm_fit` to measured fp16 times (Vidur, see `SOURCE`); each
has a meaning and could be measured alone. The shared ones were set once for all three GPUs. They do not transfer: with
those of the A100 the times of an A40 are 8 % off, and those of an H100, whose L2 is twice as fast, 31 %. A40's droop and
reduce_s ended at the least that the fit allows: its data do not tell them from nothing.
Lessons: tiling.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..specs.accelerators import A40, A100_80GB, H100_SXM, Accelerator

SOURCE = "microsoft/vidur, data/profiling/compute (MIT licence): median times of linear layers in fp16"


@dataclass(frozen=True)
class GemmConstants:
    """What a data sheet does not say about the GEMMs of a library on one GPU."""

    compute_share: float  # of the peak, for a large tile while the clock holds; above 1 if the chip boosts past it
    droop: float  # share of the rate that the power limit takes away from long products
    memory_share: float  # of the data sheet's bandwidth that streaming reaches
    l2_bw: float  # bytes/s at which all SMs together stage tiles from L2
    launch_s: float  # of one kernel: start and end
    reduce_s: float  # second kernel that adds up the parts of a split K


@dataclass(frozen=True)
class Shared:
    """Set once for all GPUs; none was fitted on its own."""

    half_intensity: float = 4.0  # FLOP per staged element at which a tile reaches half of compute_share
    overlap: float = 0.25  # share of the last, partial wave that runs beside others
    sharpness: float = 4.0  # of the maximum: at 4, two equal parts take 19 % longer than one
    droop_s: float = 300e-6  # product of this length has lost half of the droop
    tile_cost: float = 0.05  # power of (largest / this) tile intensity by which a small tile costs more
    split_cost: float = 0.05  # power of the number of parts by which a split costs more
    k_step: int = 32  # elements of K staged at a time
    tiles: tuple[tuple[int, int], ...] = (
        (64, 32), (64, 64), (128, 64), (64, 128), (128, 128), (256, 128), (128, 256),
    )  # fmt: skip
    splits: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16)


SHARED = Shared()
ACCELERATOR: dict[str, Accelerator] = {"a100": A100_80GB, "a40": A40, "h100": H100_SXM}
CONSTANTS: dict[str, GemmConstants] = {
    "a100": GemmConstants(0.8792, 0.06889, 0.8547, 5.624e+12, 4.228e-06, 7.868e-07),
    "a40": GemmConstants(0.8637, 0.02, 0.7939, 3.454e+12, 2.277e-06, 5.066e-07),
    "h100": GemmConstants(1.005, 0.07473, 0.9234, 1.025e+13, 4.191e-06, 1.344e-06),
}
# compute share, memory share and launch of `roofline_s`, fitted to the same rows: the model to beat
ROOFLINE: dict[str, tuple[float, float, float]] = {
    "a100": (0.7239, 0.7775, 5.724e-6),
    "a40": (0.7443, 0.7415, 3.212e-6),
    "h100": (0.7039, 0.8800, 5.506e-6),
}
