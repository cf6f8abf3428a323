"""Streaming multiprocessors: what one SM has to share out, for each compute capability from 7.0 to 12.1.

Sources: CUDA C++ Programming Guide 13, table of technical specifications per compute capability (all but 7.0 and
10.3); `arch_traits.h` of NVIDIA/cccl at 571f2fc (all, and the reserve); granules, sub-partitions and barriers as the
occupancy calculator of CUDA 13.0 uses them. 12.1 stands in the guide's column 12.x.
Lessons: SMs and warps, coalescing and occupancy, tiling.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ..units import KIB


@dataclass(frozen=True)
class SM:
    """Limits of one SM. In `stacked` limits every field is an array over configurations."""

    compute_capability: str
    example: str
    max_threads: int
    max_blocks: int
    shared_bytes: int  # the most that can be set aside for shared memory
    block_shared_bytes_opt_in: int  # the most for one block, for a kernel that asks for it
    reserved_bytes: int  # taken by the system from each block's shared memory
    shared_granule: int  # shared memory of a block is rounded up to this
    shared_sizes: tuple[int, ...]  # bytes that can be set aside; the rest of the array is L1 cache
    barriers: int  # named barriers of all blocks together; 0: the calculator does not count them
    block_shared_bytes: int = 48 * KIB  # the most for one block that did not ask
    registers: int = 65_536  # 32 bit each
    block_registers: int = 65_536
    max_registers: int = 256  # per thread; the calculator refuses more, compilers stop at 255
    register_granule: int = 256  # registers of a warp are rounded up to this
    partitions: int = 4  # each has a quarter of the registers, and a warp lives in one
    max_block_threads: int = 1024
    warp: int = 32

    @property
    def max_warps(self) -> int:
        """Warps resident at once, at most."""
        return self.max_threads // self.warp


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(kib) * KIB for kib in text.split())


SMALL = _sizes("0 8 16 32 64 100")
LARGE = _sizes("0 8 16 32 64 100 132 164")
LARGEST = _sizes("0 8 16 32 64 100 132 164 196 228")

# capability, example, threads, blocks, shared memory, of it one block at most, reserve, granule, sizes, barriers
SMS: dict[str, SM] = {
    row[0]: SM(*row)
    for row in (
        ("7.0", "V100", 2048, 32, 96 * KIB, 96 * KIB, 0, 256, _sizes("0 8 16 32 64 96"), 0),
        ("7.5", "T4", 1024, 16, 64 * KIB, 64 * KIB, 0, 256, _sizes("32 64"), 0),
        ("8.0", "A100", 2048, 32, 164 * KIB, 163 * KIB, KIB, 128, LARGE, 0),
        ("8.6", "A40", 1536, 16, 100 * KIB, 99 * KIB, KIB, 128, SMALL, 0),
        ("8.7", "Orin", 1536, 16, 164 * KIB, 163 * KIB, KIB, 128, LARGE, 0),
        ("8.9", "L40S", 1536, 24, 100 * KIB, 99 * KIB, KIB, 128, SMALL, 0),
        ("9.0", "H100", 2048, 32, 228 * KIB, 227 * KIB, KIB, 128, LARGEST, 64),
        ("10.0", "B200", 2048, 32, 228 * KIB, 227 * KIB, KIB, 128, LARGEST, 64),
        ("10.3", "B300", 2048, 32, 228 * KIB, 227 * KIB, KIB, 128, LARGEST, 64),
        ("11.0", "Thor", 1536, 24, 228 * KIB, 227 * KIB, KIB, 128, LARGEST, 24),
        ("12.0", "RTX 5090", 1536, 24, 100 * KIB, 99 * KIB, KIB, 128, SMALL, 24),
        ("12.1", "GB10", 1536, 24, 100 * KIB, 99 * KIB, KIB, 128, SMALL, 24),
    )
}


def sm(compute_capability: str | float) -> SM:
    """The SM of a compute capability, given as "8.0" or 8.0.

    >>> sm("9.0").example, sm(8.6).max_warps, sm("7.5").shared_bytes
    ('H100', 48, 65536)
    """
    name = str(compute_capability)
    if name not in SMS:
        raise ValueError(f"compute capability {name} is not in the table; it has {', '.join(SMS)}")
    return SMS[name]


def stacked(compute_capabilities) -> SM:
    """One SM whose fields are arrays, for rules that are applied to many capabilities at once.

    `shared_sizes` gets one axis more at the end, filled up with its largest size.

    >>> stacked(["7.0", "8.6"]).max_blocks.tolist()
    [32, 16]
    """
    names = np.asarray(compute_capabilities).astype(str)
    each, place = np.unique(names, return_inverse=True)
    rows = [sm(name) for name in each.tolist()]
    longest = max(len(row.shared_sizes) for row in rows)
    columns = {}
    for field in fields(SM):
        values = [getattr(row, field.name) for row in rows]
        if field.name == "shared_sizes":
            values = [sizes + sizes[-1:] * (longest - len(sizes)) for sizes in values]
        columns[field.name] = np.asarray(values)[place.reshape(names.shape)]
    return SM(**columns)
