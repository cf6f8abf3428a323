"""Accelerators: peak rates, memory and links, from the vendors' data sheets.

Peaks are dense (no structured sparsity) and are never reached by a whole program: the best measured bf16 matrix
products come to 51 to 97 % of them (`best_bf16`). A time computed from a peak is therefore a lower bound.
Vendors' front pages print other numbers. A sparse peak is `sparse` times the dense one; a link's "900 GB/s" counts both
directions. Numbers that could not be confirmed are left out: None. `source_of` says where a number is from.
Lessons: tensors, memory hierarchy and roofline, tensor cores and number formats, comparing accelerators.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

ML_ENGINEERING = "stas00/ml-engineering, compute/accelerator/README.md (August 2026), which links the vendor's page"
HOPPER = f"NVIDIA H100 and H200 tables; {ML_ENGINEERING}"
SCALING_BOOK = "jax-ml/scaling-book, tpus.md"
NEURON = "aws-neuron/aws-neuron-sdk, pages of the Trainium generations"
ROCM = f"{ML_ENGINEERING}; compute units and caches: ROCm documentation, gpu-arch-specs"
CATALOGUES = "several public catalogues, which agree; no vendor page was at hand"
MEASURED = "best of a search over shapes, in the same README"


@dataclass(frozen=True)
class Accelerator:
    """One chip. Peaks are dense, in FLOP/s (int8: operations/s); memory in bytes and bytes/s.

    source covers every number that `notes` does not name.
    """

    name: str
    peak_bf16: float | None
    mem_bytes: float
    mem_bw: float
    peak_fp16: float | None = None
    peak_fp8: float | None = None
    peak_fp4: float | None = None
    peak_int8: float | None = None
    peak_tf32: float | None = None
    peak_fp32: float | None = None  # vector units
    peak_fp64: float | None = None  # vector units
    peak_fp64_matrix: float | None = None
    sparse: float = 1.0  # a sparse peak over the dense one; 1: no structured sparsity, or not the same for every format
    link_bw: float | None = None  # all links to other chips of the node together, one direction, bytes/s
    l2_bytes: float | None = None
    units: int | None = None  # SMs, compute units or cores
    matrix_units: int | None = None
    fma_per_clock: int | None = None  # 16-bit multiply-adds of one matrix unit in one clock
    clock_hz: float | None = None  # at which the matrix peak is reached
    tdp_w: float | None = None
    compute_capability: str | None = None
    best_bf16: float | None = None  # measured
    source: str = ""
    notes: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def ridge(self) -> float:
        """FLOP per byte at which compute and memory take equally long, in bf16 (fp16 where there is no bf16).

        >>> round(A100_80GB.ridge), round(H100_SXM.ridge)
        (153, 295)
        """
        return (self.peak_bf16 or self.peak("fp16")) / self.mem_bw

    def peak(self, precision: str, sparse: bool = False) -> float:
        """Peak rate in a precision (bf16, fp16, fp8, fp4, int8, tf32, fp32, fp64, fp64_matrix).

        Raises ValueError where no confirmed number is known.

        >>> H100_SXM.peak("bf16"), H100_SXM.peak("bf16", sparse=True)
        (989400000000000.0, 1978800000000000.0)
        """
        rate = getattr(self, f"peak_{precision}", None)
        if rate is None:
            raise ValueError(f"{self.name} has no confirmed peak in {precision}")
        if sparse and self.sparse == 1:
            raise ValueError(f"{self.name} has no known sparse peak")
        return rate * (self.sparse if sparse else 1)

    @property
    def link_bw_both(self) -> float | None:
        """Both directions of the links together: the number that vendors print.

        >>> H100_SXM.link_bw, H100_SXM.link_bw_both
        (450000000000.0, 900000000000.0)
        """
        return None if self.link_bw is None else 2 * self.link_bw

    def source_of(self, name: str) -> str:
        """Where the number in that field is from."""
        if getattr(self, name) is None:
            raise ValueError(f"{self.name}: {name} is not known")
        return self.notes.get(name, self.source)

    def numbers(self) -> dict[str, float]:
        """Every number that is known."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, (int, float))}


V100_SXM2 = Accelerator(
    "V100 SXM2", None, 16e9, 900e9, peak_fp16=125e12, peak_fp32=15.7e12, link_bw=150e9, l2_bytes=6e6, units=80,
    matrix_units=640, fma_per_clock=64, clock_hz=1530e6, tdp_w=300, compute_capability="7.0", source=CATALOGUES,
    notes={"link_bw": ML_ENGINEERING, "mem_bytes": f"{CATALOGUES}; sold with 32 GB too"},
)
T4 = Accelerator(
    "T4", None, 16e9, 300e9, peak_fp16=65e12, peak_fp32=8.1e12, l2_bytes=4e6, units=40, matrix_units=320, fma_per_clock=64,
    clock_hz=1590e6, tdp_w=70, compute_capability="7.5", source="NVIDIA T4 data sheet; its white paper prints 320 GB/s",
)
AMPERE = dict(
    peak_fp16=312e12, peak_int8=624e12, peak_tf32=156e12, peak_fp32=19.5e12, sparse=2, l2_bytes=40e6, units=108,
    matrix_units=432, fma_per_clock=256, clock_hz=1410e6, compute_capability="8.0",
)
A100_40GB = Accelerator(
    "A100 40GB SXM", 312e12, 40e9, 1.555e12, **AMPERE, link_bw=300e9, tdp_w=400, source=ML_ENGINEERING,
    notes={"mem_bw": CATALOGUES},
)
A100_80GB = Accelerator(
    name="A100 80GB SXM",
    peak_bf16=312e12,
    mem_bytes=80e9,
    mem_bw=2.039e12,
    **AMPERE, link_bw=300e9, tdp_w=400, best_bf16=271.2e12,
    source="NVIDIA A100 data sheet", notes={"best_bf16": MEASURED},
)
A100_PCIE = Accelerator(
    "A100 80GB PCIe", 312e12, 80e9, 1.935e12, **AMPERE, tdp_w=300, best_bf16=252.9e12, source=ML_ENGINEERING,
    notes={"best_bf16": MEASURED},
)
A40 = Accelerator(
    "A40", 149.7e12, 48e9, 696e9, peak_fp16=149.7e12, peak_tf32=74.8e12, peak_int8=299.3e12, peak_fp32=37.4e12, sparse=2,
    l2_bytes=6e6, units=84, matrix_units=336, fma_per_clock=128, clock_hz=1740e6, tdp_w=300, compute_capability="8.6",
    source=CATALOGUES, notes={"peak_bf16": "336 units x 128 multiply-adds x 2 x 1.74 GHz; catalogues print the same"},
)
A6000 = Accelerator(
    "RTX A6000", 154.8e12, 48e9, 768e9, peak_fp16=154.8e12, peak_fp32=38.7e12, sparse=2, l2_bytes=6e6, units=84,
    matrix_units=336, fma_per_clock=128, clock_hz=1800e6, tdp_w=300, compute_capability="8.6", source=CATALOGUES,
    notes={"peak_bf16": "NVIDIA GA102 white paper, table 3", "peak_fp16": "NVIDIA GA102 white paper, table 3"},
)
L4 = Accelerator(
    "L4", 121e12, 24e9, 300e9, peak_fp16=121e12, peak_fp8=242.5e12, peak_int8=242.5e12, peak_tf32=60e12, peak_fp32=30.3e12,
    sparse=2, tdp_w=72, compute_capability="8.9", source="NVIDIA L4 data sheet; it prints the sparse peaks 242 and 485",
)
L40S = Accelerator(
    "L40S", 362e12, 48e9, 864e9, peak_fp16=362e12, peak_fp8=733e12, peak_int8=733e12, peak_tf32=183e12, peak_fp32=91.6e12,
    sparse=2, tdp_w=350, compute_capability="8.9", source=ML_ENGINEERING,
)
RTX_4090 = Accelerator(
    "RTX 4090", 165.2e12, 24e9, 1.008e12, peak_fp16=165.2e12, peak_fp8=330.3e12, peak_int8=660.6e12, peak_tf32=82.6e12,
    peak_fp32=82.6e12, sparse=2, l2_bytes=72e6, units=128, tdp_w=450, compute_capability="8.9",
    source="NVIDIA Ada white paper 2.1, appendix A; matrix peaks with fp32 accumulation (with fp16: twice as much)",
)
RTX_5090 = Accelerator(
    "RTX 5090", 209.5e12, 32e9, 1.792e12, peak_fp16=209.5e12, sparse=2, units=170, tdp_w=575, compute_capability="12.0",
    source="NVIDIA RTX Blackwell white paper, table 3; with fp32 accumulation",
)
HOPPER_CHIP = dict(
    peak_fp16=989.4e12, peak_fp8=1978.9e12, peak_int8=1978.9e12, peak_tf32=494.7e12, peak_fp32=67e12, peak_fp64=34e12,
    peak_fp64_matrix=67e12, sparse=2, link_bw=450e9, l2_bytes=50e6, units=132, tdp_w=700, compute_capability="9.0",
    source=HOPPER,
)
HOPPER_CLOCK = dict(matrix_units=528, fma_per_clock=512, clock_hz=1830e6)
PRINTED_SPARSE = {"peak_bf16": "NVIDIA H100 data sheet prints 1,979 with sparsity; half of it is dense", "best_bf16": MEASURED}
H100_SXM = Accelerator(
    name="H100 SXM",
    peak_bf16=989.4e12,
    mem_bytes=80e9,
    mem_bw=3.35e12,
    **HOPPER_CHIP, **HOPPER_CLOCK, best_bf16=794.5e12, notes=PRINTED_SPARSE,
)
H100_PCIE = Accelerator(
    "H100 PCIe", 756e12, 80e9, 2e12, peak_fp16=756e12, peak_fp8=1513e12, peak_int8=1513e12, peak_tf32=378e12, sparse=2,
    l2_bytes=50e6, units=114, matrix_units=456, fma_per_clock=512, tdp_w=350, compute_capability="9.0", source=ML_ENGINEERING,
)
H100_NVL = Accelerator(
    "H100 NVL, one of two", 835.5e12, 94e9, 3.9e12, peak_fp16=835.5e12, peak_fp8=1670.5e12, peak_int8=1670.5e12,
    peak_tf32=417.5e12, peak_fp32=60e12, peak_fp64=30e12, peak_fp64_matrix=60e12, sparse=2, link_bw=300e9, l2_bytes=50e6,
    units=132, tdp_w=400, compute_capability="9.0", source=HOPPER,
)
H200_SXM = Accelerator("H200 SXM", 989.4e12, 141e9, 4.8e12, **HOPPER_CHIP, **HOPPER_CLOCK)
GH200 = Accelerator(
    "GH200, the GPU with 96 GB", 989.4e12, 96e9, 4e12, **{**HOPPER_CHIP, "tdp_w": None}, best_bf16=828.6e12,
    notes={"best_bf16": MEASURED},
)
BLACKWELL = dict(peak_fp32=80e12, sparse=2, link_bw=900e9, source=ML_ENGINEERING, notes={"best_bf16": MEASURED})
B200_SXM = Accelerator(
    "B200 SXM", 2250e12, 180e9, 8e12, peak_fp16=2250e12, peak_fp8=4500e12, peak_int8=4500e12, peak_fp4=9000e12,
    peak_tf32=1125e12, l2_bytes=126e6, units=148, tdp_w=1000, compute_capability="10.0", best_bf16=1745e12, **BLACKWELL,
)
GB200 = Accelerator(
    "GB200, one GPU", 2500e12, 186e9, 8e12, peak_fp16=2500e12, peak_fp8=5000e12, peak_int8=5000e12, peak_fp4=10_000e12,
    peak_tf32=1250e12, l2_bytes=126e6, units=148, tdp_w=1200, compute_capability="10.0", best_bf16=1822e12, **BLACKWELL,
)
B300_SXM = Accelerator(
    "B300 SXM", 2250e12, 288e9, 8e12, peak_fp16=2250e12, peak_fp8=4500e12, peak_int8=4500e12, peak_fp4=12_600e12,
    peak_tf32=1125e12, tdp_w=1000, compute_capability="10.3", best_bf16=1769e12, **BLACKWELL,
)
GB300 = Accelerator(
    "GB300, one GPU", 2500e12, 288e9, 8e12, peak_fp16=2500e12, peak_fp8=5000e12, peak_int8=5000e12, peak_fp4=15_000e12,
    peak_tf32=1250e12, tdp_w=1400, compute_capability="10.3", **BLACKWELL,
)
MI250X = Accelerator(
    "MI250X, two dies", 383e12, 128e9, 3.277e12, peak_fp16=383e12, peak_int8=383e12, peak_fp32=47.9e12, peak_fp64=47.9e12,
    peak_fp64_matrix=95.7e12, link_bw=350e9, l2_bytes=16e6, units=220, matrix_units=880, fma_per_clock=128, clock_hz=1700e6,
    tdp_w=560, source=ROCM, notes={"peak_bf16": f"{ML_ENGINEERING}; one matrix product runs on one die, at half of it"},
)
CDNA3 = dict(
    peak_fp16=1307.4e12, peak_fp8=2614.9e12, peak_int8=2614.9e12, peak_tf32=653.7e12, peak_fp32=163.4e12,
    peak_fp64=81.7e12, peak_fp64_matrix=163.4e12, sparse=2, link_bw=448e9, l2_bytes=32e6, units=304, matrix_units=1216,
    fma_per_clock=256, clock_hz=2100e6, source=ROCM, notes={"best_bf16": MEASURED},
)
MI300X = Accelerator("MI300X", 1307.4e12, 192e9, 5.3e12, **CDNA3, tdp_w=750, best_bf16=668.4e12)
MI325X = Accelerator("MI325X", 1307.4e12, 256e9, 6e12, **CDNA3, tdp_w=1000, best_bf16=784.9e12)
MI355X = Accelerator(
    "MI355X", 2516.6e12, 288e9, 8e12, peak_fp16=2516.6e12, peak_fp8=5000e12, peak_int8=5000e12, peak_fp4=10_100e12,
    peak_fp32=157.3e12, link_bw=535.5e9, l2_bytes=32e6, units=256, matrix_units=1024, fma_per_clock=512, clock_hz=2400e6,
    tdp_w=1400, best_bf16=1565e12, source=ML_ENGINEERING, notes={"best_bf16": MEASURED},
)
TPU_V3 = Accelerator("TPU v3", 140e12, 32e9, 900e9, peak_int8=140e12, source=SCALING_BOOK)
TPU_V4 = Accelerator("TPU v4", 275e12, 32e9, 1.2e12, peak_int8=275e12, source=SCALING_BOOK)
TPU_V5E = Accelerator("TPU v5e", 197e12, 16e9, 819e9, peak_int8=394e12, source=SCALING_BOOK)
TPU_V5P = Accelerator(
    "TPU v5p", 459e12, 95e9, 2.765e12, peak_int8=918e12, source=SCALING_BOOK,
    notes={"mem_bytes": "Google's page; the scaling book prints 96 GB"},
)
TPU_V6E = Accelerator("TPU v6e", 918e12, 32e9, 1.6e12, peak_fp8=918e12, peak_int8=1836e12, source=SCALING_BOOK)
TRAINIUM1 = Accelerator(
    "Trainium1", 190e12, 32e9, 820e9, peak_fp16=190e12, peak_fp8=190e12, peak_tf32=190e12, peak_fp32=47.5e12, source=NEURON,
)
TRAINIUM2 = Accelerator(
    "Trainium2", 667e12, 96e9, 2.9e12, peak_fp16=667e12, peak_fp8=1299e12, peak_tf32=667e12, peak_fp32=181e12,
    link_bw=640e9, source=NEURON,
)
TRAINIUM3 = Accelerator(
    "Trainium3", 671e12, 144e9, 4.9e12, peak_fp16=671e12, peak_fp8=2517e12, peak_fp4=2517e12, peak_tf32=671e12,
    peak_fp32=183e12, source=NEURON, notes={"peak_fp8": f"{NEURON}; MXFP8", "peak_fp4": f"{NEURON}; MXFP4"},
)
GAUDI2 = Accelerator(
    "Gaudi 2", 432e12, 96e9, 2.46e12, peak_fp8=865e12, link_bw=300e9, l2_bytes=48e6, units=24, matrix_units=2,
    fma_per_clock=65_536, clock_hz=1650e6, tdp_w=600, best_bf16=418.7e12, source=ML_ENGINEERING, notes={"best_bf16": MEASURED},
)
GAUDI3 = Accelerator(
    "Gaudi 3", 1677e12, 128e9, 3.7e12, peak_fp16=459e12, peak_fp8=1677e12, peak_tf32=459e12, peak_fp32=229e12, link_bw=600e9,
    l2_bytes=96e6, units=64, matrix_units=8, fma_per_clock=65_536, clock_hz=1600e6, tdp_w=900, best_bf16=1243e12,
    source=ML_ENGINEERING, notes={"best_bf16": MEASURED, "peak_bf16": f"{ML_ENGINEERING}; the white paper's 1,835 takes 1,750 MHz"},
)

ACCELERATORS: dict[str, Accelerator] = {chip.name: chip for chip in list(vars().values()) if isinstance(chip, Accelerator)}
