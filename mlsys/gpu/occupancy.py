"""Occupancy: how many thread blocks fit on one streaming multiprocessor (SM), by the vendor's own rules.

Every resource allows some number of blocks; the scarcest one decides. What makes the count lower than the plain
division are the steps in which resources are handed out:
  warps      a block takes whole warps
  registers  a warp takes a multiple of 256, and lives in one of four partitions that cannot lend to each other
  shared     a block takes a multiple of 128 bytes (256 before 8.0), with 1 KiB on top for the system from 8.0 on
  barriers   from 9.0 on, blocks share a fixed number of barriers
Equal to the occupancy calculator of CUDA 13.0 in blocks, limits and names of limiters.
Left out: clusters, and everything that happens after the launch. A grid too small to fill the SMs, unequal blocks and
the start and end of a kernel all make the occupancy that a profiler measures lower, so this is an upper bound. It is
no measure of speed either: a kernel with enough independent work in each thread runs at full speed at low occupancy.
Lessons: coalescing and occupancy, tiling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..specs.sm import SM, sm, stacked

RESOURCES = ("warps", "registers", "shared_memory", "blocks", "barriers")
UNLIMITED = np.inf


@dataclass(frozen=True)
class Launch:
    """What a kernel asks for. Each field is a number, or an array over configurations; arrays broadcast.

    threads per block; registers per thread; shared memory and barriers per block.
    carveout_percent: how much of the SM's memory array is asked for as shared memory; None or -1 leaves it to the
        driver, which gives what a block needs. opt_in: the kernel asked for more than 48 KiB in one block.
    """

    threads: int
    regs: int
    static_smem_bytes: int = 0
    dynamic_smem_bytes: int = 0
    carveout_percent: int | None = None
    opt_in: bool = False
    barriers: int = 1


@dataclass(frozen=True)
class Occupancy:
    """What fits on one SM. For arrays of configurations every field is an array, and so is each limit.

    limits: blocks that each resource would allow on its own (infinity where it is not asked for).
    regs_per_block, smem_per_block: what a block really takes, after rounding up.
    """

    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    limits: dict[str, float]
    limiting: dict[str, bool]
    regs_per_block: int
    smem_per_block: int

    @property
    def limiters(self):
        """Names of the scarcest resources, joined by "+" (an array of them, for many configurations).

        Like the vendor's calculator this settles barriers last: where they alone decide, the resource that was
        scarcest before them is named beside them.

        >>> occupancy("8.0", 256, 33).limiters, occupancy("9.0", 32, 16).limiters
        ('registers', 'blocks')
        >>> occupancy("12.0", 1024, 64).limiters
        'warps+registers'
        """
        names = np.zeros(np.shape(self.blocks_per_sm), object)
        names[...] = ""
        for name in RESOURCES:
            names = names + np.where(self.limiting[name], f"{name}+", "").astype(object)
        if np.ndim(names) == 0:
            return str(names)[:-1]
        return np.array([text[:-1] for text in names.ravel()], object).reshape(names.shape)


def occupancy(
    compute_capability,
    threads_per_block,
    regs_per_thread,
    static_smem_bytes=0,
    dynamic_smem_bytes=0,
    *,
    carveout_percent=None,
    opt_in=False,
    barriers=1,
) -> Occupancy:
    """Occupancy of a launch on an SM of that compute capability. Every argument may be an array; they broadcast.

    33 registers for each of 256 threads are given as 40, so that 6 blocks fit and not the 7 of a plain division:

    >>> o = occupancy("8.0", 256, 33)
    >>> o.blocks_per_sm, o.warps_per_sm, o.fraction, o.limits["registers"], o.regs_per_block
    (6, 48, 0.75, 6, 10240)
    >>> occupancy("8.0", 256, np.array([32, 33, 40, 41])).blocks_per_sm.tolist()
    [8, 6, 6, 5]
    """
    launch = Launch(
        threads_per_block, regs_per_thread, static_smem_bytes, dynamic_smem_bytes, carveout_percent, opt_in, barriers
    )
    return fit(launch, sm(compute_capability) if np.ndim(compute_capability) == 0 else stacked(compute_capability))


def fit(launch: Launch, on: SM) -> Occupancy:
    """Occupancy of a launch on an SM, which may be one that was never built.

    Raises ValueError for a launch that no GPU takes: threads below 1, a negative amount, a carve-out above 100 %.
    More than a block or an SM can hold is no error: 0 blocks fit.

    >>> from dataclasses import replace
    >>> from mlsys.specs.sm import sm
    >>> double = replace(sm("8.0"), registers=131_072, block_registers=131_072)
    >>> fit(Launch(256, 64), sm("8.0")).blocks_per_sm, fit(Launch(256, 64), double).blocks_per_sm
    (4, 8)
    """
    launch = _checked(launch)
    warps = -(-launch.threads // on.warp)
    regs_warp = _up(launch.regs * on.warp, on.register_granule)
    smem = _up(launch.static_smem_bytes + launch.dynamic_smem_bytes + on.reserved_bytes, on.shared_granule)
    before = {
        "warps": np.where(launch.threads > on.max_block_threads, 0, on.max_warps // warps),
        "registers": _register_limit(launch.regs, regs_warp, warps, on),
        "shared_memory": _shared_limit(launch, smem, on),
        "blocks": np.asarray(on.max_blocks),
    }
    shape = np.broadcast_shapes(*(np.shape(limit) for limit in before.values()), np.shape(launch.barriers))
    limits = {name: np.broadcast_to(limit, shape) for name, limit in before.items()}
    barriers = np.where((on.barriers > 0) & (launch.barriers > 0), on.barriers // np.maximum(launch.barriers, 1), UNLIMITED)
    limits["barriers"] = np.broadcast_to(barriers, shape)
    without = np.minimum.reduce([limits[name] for name in before])
    blocks = np.minimum(without, limits["barriers"])
    limiting = {name: limits[name] == (blocks if name == "barriers" else without) for name in RESOURCES}
    blocks, warps = blocks.astype(np.int64), np.broadcast_to(warps, shape)
    found = (blocks, blocks * warps, blocks * warps / on.max_warps), (regs_warp * warps, np.broadcast_to(smem, shape))
    if shape:
        return Occupancy(*found[0], limits, limiting, *found[1])
    limits = {name: int(limit) if np.isfinite(limit) else UNLIMITED for name, limit in limits.items()}
    numbers = [np.asarray(value).item() for value in (*found[0], *found[1])]
    return Occupancy(*numbers[:3], limits, {name: bool(here) for name, here in limiting.items()}, *numbers[3:])


def suggest_block(launch: Launch, on: SM, smem_per_thread_bytes: int = 0) -> Launch:
    """The launch with the block size that keeps most threads resident; of several, the largest.

    launch.threads is the most to try, up to 1,024. Shared memory may grow with the block: smem_per_thread_bytes comes
    on top of dynamic_smem_bytes. Arrays broadcast. Most threads resident is not least time.

    >>> from mlsys.specs.sm import sm
    >>> suggest_block(Launch(1024, 47), sm("7.0")).threads
    640
    """
    most = np.minimum(np.asarray(launch.threads), on.max_block_threads)[..., None]
    steps = np.arange(-(-int(np.max(most)) // 32), 0, -1) * 32
    sizes = np.minimum(steps, most)
    wide = {name: _last(getattr(launch, name)) for name in ("regs", "static_smem_bytes", "carveout_percent", "opt_in", "barriers")}
    dynamic = _last(launch.dynamic_smem_bytes) + _last(smem_per_thread_bytes) * sizes
    found = fit(Launch(sizes, dynamic_smem_bytes=dynamic, **wide), _last_axis(on))
    resident = found.blocks_per_sm * sizes
    best = np.argmax(resident, -1)[..., None]
    threads = np.take_along_axis(np.broadcast_to(sizes, resident.shape), best, -1)[..., 0]
    extra = launch.dynamic_smem_bytes + smem_per_thread_bytes * threads
    if threads.ndim == 0:
        threads, extra = int(threads), int(extra)
    return replace(launch, threads=threads, dynamic_smem_bytes=extra)


def largest_dynamic_smem(launch: Launch, on: SM, blocks: int, vendor: bool = True) -> int:
    """Dynamic shared memory in bytes that each of so many blocks on one SM could have.

    vendor=True gives what CUDA 13.0 answers. From 8.0 on that forgets the 1 KiB kept back from each block: with the
    answer for two blocks or more, fewer than that fit. vendor=False leaves room for it.
    launch.opt_in decides whether one block may have more than 48 KiB; launch.dynamic_smem_bytes is not read.

    Raises ValueError if so many blocks do not fit even without dynamic shared memory.

    >>> from mlsys.specs.sm import sm
    >>> kernel = Launch(256, 32, opt_in=True)
    >>> [largest_dynamic_smem(kernel, sm("8.0"), 2, vendor) for vendor in (True, False)]
    [83968, 82944]
    """
    fitting = fit(replace(launch, dynamic_smem_bytes=0), on).blocks_per_sm
    if blocks < 1 or fitting < blocks:
        raise ValueError(f"blocks={blocks}: {fitting} blocks of {launch.threads} threads and {launch.regs} registers fit on one SM")
    most = on.block_shared_bytes_opt_in if launch.opt_in else on.block_shared_bytes
    whole = most + on.reserved_bytes if blocks == 1 else int(_capacity(launch, np.asarray(1), on))
    share = whole // blocks // on.shared_granule * on.shared_granule
    kept_back = 0 if vendor else on.reserved_bytes
    return min(share - kept_back, most) - launch.static_smem_bytes


def _checked(launch: Launch) -> Launch:
    """The launch with whole numbers for NumPy, or a sentence about what is wrong with it."""
    percent = -1 if launch.carveout_percent is None else np.asarray(launch.carveout_percent)
    if np.any(np.asarray(percent) < -1) or np.any(np.asarray(percent) > 100):
        raise ValueError(f"carveout_percent={launch.carveout_percent} is no percentage from 0 to 100")
    values = {}
    for name, least in (("threads", 1), ("regs", 0), ("static_smem_bytes", 0), ("dynamic_smem_bytes", 0), ("barriers", 0)):
        given = np.asarray(getattr(launch, name))
        if given.dtype.kind not in "iu":
            raise ValueError(f"{name}={getattr(launch, name)} is no whole number")
        if np.any(given < least):
            raise ValueError(f"{name}={given.min()} is below {least}")
        values[name] = given.astype(np.int64)
    return Launch(carveout_percent=np.asarray(percent), opt_in=np.asarray(launch.opt_in, bool), **values)


def _register_limit(regs, regs_warp, warps, on: SM):
    """Blocks by registers: whole warps in each partition; the check of one block rounds its warps up to four."""
    partition = on.registers // on.partitions
    fitting = (partition // np.maximum(regs_warp, 1) * on.partitions) // warps
    refused = (regs_warp * _up(warps, on.partitions) > on.block_registers) | (regs > on.max_registers)
    return np.where(refused, 0, np.where(regs_warp > 0, fitting, UNLIMITED))


def _shared_limit(launch: Launch, smem, on: SM):
    """Blocks by shared memory."""
    most = np.where(launch.opt_in, np.maximum(on.block_shared_bytes_opt_in, on.block_shared_bytes), on.block_shared_bytes)
    capacity = _capacity(launch, smem, on)
    fitting = np.where(smem > 0, capacity // np.maximum(smem, 1), UNLIMITED)
    return np.where(smem > most + on.reserved_bytes, 0, fitting)


def _capacity(launch: Launch, smem, on: SM):
    """Bytes of shared memory that the SM is set to: the carve-out rounded up to a size; more if a block needs it."""
    percent = np.asarray(-1 if launch.carveout_percent is None else launch.carveout_percent)
    asked = _size(np.where(percent < 0, on.shared_bytes, percent * on.shared_bytes // 100), on)
    return np.where(asked >= smem, asked, _size(smem, on))


def _size(wanted, on: SM):
    """The smallest size the SM can be set to that holds so many bytes, or its largest."""
    sizes = np.asarray(on.shared_sizes)
    largest = sizes[..., -1]
    return np.where(sizes >= np.asarray(wanted)[..., None], sizes, largest[..., None]).min(-1)


def _up(value, step):
    return -(-value // step) * step


def _last(value):
    """A field with an axis more at the end, so that it broadcasts against candidates."""
    return None if value is None else np.asarray(value)[..., None]


def _last_axis(on: SM) -> SM:
    if np.ndim(on.max_threads) == 0:
        return on
    return SM(**{name: value[..., None, :] if name == "shared_sizes" else value[..., None] for name, value in vars(on).items()})
