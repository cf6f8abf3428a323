"""A GPU for kernels written in Python: one function for one thread, run lane by lane for a whole grid.

>>> import numpy as np
>>> @kernel
... def add(a, b, out, n):
...     i = block_idx.x * block_dim.x + thread_idx.x
...     if i < n:
...         out[i] = a[i] + b[i]
>>> a = np.arange(1000, dtype=np.float32)
>>> out = np.zeros_like(a)
>>> report = add.launch(grid=4, block=256, args=(a, a, out, 1000), trace=True)
>>> print(report)
add: grid (4, 1, 1), block (256, 1, 1): 1024 threads, warps: 32
  issue slots     96, 99.2% of their lanes active
  global loads    64 requests, 250 sectors (3.91 each), 8000 bytes asked, 8000 moved
  global stores   32 requests, 125 sectors (3.91 each), 4000 bytes asked, 4000 moved

Left out: time, caches, the order in which warps run, the memory model. All lanes of the grid go through the kernel in
step, so a kernel that needs luck on a GPU may come out right here; `report.races` says so. Counts are per statement,
not per machine instruction, and every sector counts that a request asks for: true traffic can be lower, never higher.
Sizes of registers and of the chip play no part; see `mlsys.gpu.occupancy`.
Lessons: SMs and warps, CUDA programming model, coalescing, tiling.
"""

from numpy import bool_, float16, float32, float64, int8, int32, int64, uint8, uint32

from mlsys.gpu.simt.errors import (
    BarrierError,
    EndlessLoop,
    KernelError,
    KernelSyntaxError,
    LaneError,
    OutOfBounds,
    UnsetRead,
)
from mlsys.gpu.simt.language import (
    atomic_add,
    atomic_cas,
    atomic_exch,
    atomic_max,
    atomic_min,
    ballot,
    block_dim,
    block_idx,
    grid_dim,
    local,
    shared,
    shfl,
    shfl_down,
    shfl_up,
    shfl_xor,
    sync_threads,
    thread_idx,
    vote_all,
    vote_any,
)
from mlsys.gpu.simt.launch import device, kernel, show
from mlsys.gpu.simt.races import Race
from mlsys.gpu.simt.report import Report

__all__ = [
    "BarrierError", "EndlessLoop", "KernelError", "KernelSyntaxError", "LaneError", "OutOfBounds", "Race", "Report",
    "UnsetRead", "atomic_add", "atomic_cas", "atomic_exch", "atomic_max", "atomic_min", "ballot", "block_dim",
    "block_idx", "bool_", "device", "float16", "float32", "float64", "grid_dim", "int32", "int64", "int8", "kernel",
    "local", "shared", "shfl", "shfl_down", "shfl_up", "shfl_xor", "show", "sync_threads", "thread_idx", "uint32",
    "uint8", "vote_all", "vote_any",
]  # fmt: skip
