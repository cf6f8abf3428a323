"""Counters: what a kernel profiler prints about one launch, under the vendor's names, and what they mean.

A launch is described by what it issues and moves; three times follow, and the longest is its duration:
  compute  instructions through four schedulers an SM, or FLOPs through the tensor cores
  memory   32-byte sectors at the bandwidth of the data sheet
  latency  round trips to memory, one after the other, of the warps that fit at once, for each wave of blocks
Percentages of peak follow from these. Which of them is in the way is found by asking what would shorten the launch
(`limiter`), so a rule that reads counters can be wrong and be seen to be.
Left out: caches (every sector comes from memory: errs high), pipes other than these, start-up, and parts that do not
overlap; so durations err low and percentages high. The names are those of NVIDIA's Nsight Compute; its "latency" is
more than ours (barriers, dependent arithmetic, an empty instruction cache), and its bank conflicts are of loads alone.
Lessons: reading a profiler.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..gpu.coalescing import SECTOR
from ..gpu.occupancy import Launch, Occupancy, fit
from ..gpu.simt.report import Report
from ..specs.accelerators import Accelerator
from ..specs.sm import sm

SCHEDULERS = 4  # of an SM, one warp instruction a clock each
LATENCY_S = 500e-9  # of a load from device memory: an assumption
INSTRUCTIONS = 5  # machine instructions of one statement of a simulated kernel: an assumption
HELPS = 0.85  # a change helps if the launch then takes less than this share of its time

SM_BUSY = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_BUSY = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
TENSOR_BUSY = "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"
WARPS_ACTIVE = "sm__warps_active.avg.pct_of_peak_sustained_active"
SECTORS_PER_REQUEST = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
USEFUL_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
BANK_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
DURATION = "gpu__time_duration.sum"  # nanoseconds
WAVES = "launch__waves_per_multiprocessor"
LIMITS = {name: f"launch__occupancy_limit_{short}" for name, short in
          (("blocks", "blocks"), ("registers", "registers"), ("shared_memory", "shared_mem"), ("warps", "warps"))}  # fmt: skip


@dataclass(frozen=True)
class Counted:
    """One launch and what it does in all.

    blocks: of the grid; launch: what each block asks for; instructions: issued by warps; loads: requests of warps to
    global memory for which they wait; load_sectors, store_sectors: of 32 bytes that loads and stores touch; load_bytes:
    asked for by active lanes; tensor_flops: on tensor cores; conflicts: passes over shared memory beyond the first;
    in_flight: loads that a warp has under way at once.
    """

    name: str
    blocks: int
    launch: Launch
    instructions: float
    loads: float
    load_sectors: float
    load_bytes: float
    store_sectors: float = 0.0
    tensor_flops: float = 0.0
    conflicts: float = 0.0
    in_flight: float = 1.0

    @property
    def sectors(self) -> float:
        return self.load_sectors + self.store_sectors


def from_report(report: Report, regs: int, in_flight: float = 1.0, blocks: int | None = None) -> Counted:
    """A launch of `mlsys.gpu.simt` as a profiler would count it. Raises ValueError for a launch that was not traced.

    regs: registers per thread, which a simulated kernel does not have. blocks: the same kernel on a grid of so many
    blocks, for which every count grows in proportion; the traced one if None.

    >>> from mlsys.gpu.simt import Report
    >>> from mlsys.gpu.coalescing import Traffic
    >>> from mlsys.gpu.banks import SharedTraffic
    >>> report = Report("copy", (2, 1, 1), (64, 1, 1), 128, 4, 0, 8, 256, Traffic(4, 16, 4, 512), Traffic(4, 16, 4, 512),
    ...                 Traffic(0, 0, 0, 0), SharedTraffic(0, 0, 0, 0), 0, 0)
    >>> counted = from_report(report, regs=16, blocks=200)
    >>> counted.loads, counted.load_sectors, counted.sectors, counted.instructions
    (400.0, 1600.0, 3200.0, 4000.0)
    """
    if not report.traced:
        raise ValueError(f"{report.kernel} was launched without trace=True")
    x, y, z = report.grid
    scale = 1.0 if blocks is None else blocks / (x * y * z)
    width, height, depth = report.block
    launch = Launch(width * height * depth, regs, report.shared_bytes)
    waits = report.loads, report.atomics  # a store is sent off and forgotten, an atomic is read back
    return Counted(
        report.kernel, blocks or x * y * z, launch, INSTRUCTIONS * report.issue_slots * scale,
        *(scale * sum(getattr(part, name) for part in waits) for name in ("requests", "sectors", "bytes_asked")),
        store_sectors=report.stores.sectors * scale, conflicts=(report.shared.passes - report.shared.requests) * scale, in_flight=in_flight,
    )  # fmt: skip


def residency(counted: Counted, chip: Accelerator) -> Occupancy:
    """What fits on one SM of the chip. Raises ValueError where a block does not fit at all."""
    found = fit(counted.launch, sm(chip.compute_capability))
    if found.blocks_per_sm == 0:
        raise ValueError(f"{counted.name}: a block of {counted.launch.threads} threads does not fit on {chip.name}")
    return found


def times_s(counted: Counted, chip: Accelerator, full: bool = False) -> dict[str, float]:
    """Seconds of compute, memory and latency, each on its own. full: as if resident warps were limited by nothing else.

    >>> from mlsys.specs import A100_80GB
    >>> add = Counted("add", 100_000, Launch(256, 16), 1.2e7, 1.6e6, 6.4e6, 2e8, 3.2e6, in_flight=2)
    >>> {name: f"{t * 1e6:.0f} us" for name, t in times_s(add, A100_80GB).items()}
    {'compute': '20 us', 'memory': '151 us', 'latency': '58 us'}
    """
    found, on = residency(counted, chip), sm(chip.compute_capability)
    warps = -(-counted.launch.threads // on.warp)
    per_sm = on.max_warps // warps if full else found.blocks_per_sm
    waves = -(-counted.blocks // (per_sm * chip.units))
    trips = counted.loads / (counted.blocks * warps) / counted.in_flight
    issue = counted.instructions / (SCHEDULERS * chip.units * chip.clock_hz)
    tensor = counted.tensor_flops / (chip.peak_bf16 or chip.peak("fp16"))
    return {"compute": max(issue, tensor), "memory": counted.sectors * SECTOR / chip.mem_bw, "latency": waves * trips * LATENCY_S}


def duration_s(counted: Counted, chip: Accelerator) -> float:
    """Seconds of the launch: the longest of `times_s`."""
    return max(times_s(counted, chip).values())


def counters(counted: Counted, chip: Accelerator) -> dict[str, float]:
    """Counters by the vendor's names: percentages of peak, ratios, sums; the duration is in nanoseconds.

    >>> from mlsys.specs import A100_80GB
    >>> add = Counted("add", 100_000, Launch(256, 16), 1.2e7, 1.6e6, 6.4e6, 2e8, 3.2e6, in_flight=2)
    >>> seen = counters(add, A100_80GB)
    >>> round(seen[SM_BUSY]), round(seen[DRAM_BUSY]), round(seen[WARPS_ACTIVE]), seen[SECTORS_PER_REQUEST]
    (13, 100, 100, 4.0)
    """
    times, found, on = times_s(counted, chip), residency(counted, chip), sm(chip.compute_capability)
    duration = max(times.values())
    waves = counted.blocks / (found.blocks_per_sm * chip.units)
    active = found.warps_per_sm * waves / -(-waves // 1) / on.max_warps
    tensor = counted.tensor_flops / (chip.peak_bf16 or chip.peak("fp16"))
    return {
        DURATION: duration * 1e9,
        SM_BUSY: 100 * times["compute"] / duration,
        DRAM_BUSY: 100 * times["memory"] / duration,
        TENSOR_BUSY: 100 * tensor / duration,
        WARPS_ACTIVE: 100 * active,
        WAVES: waves,
        SECTORS_PER_REQUEST: counted.load_sectors / counted.loads if counted.loads else 0.0,
        USEFUL_BYTES: 100 * counted.load_bytes / (SECTOR * counted.load_sectors) if counted.loads else 0.0,
        BANK_CONFLICTS: counted.conflicts,
        **{metric: found.limits[name] for name, metric in LIMITS.items()},
    }


def limiter(counted: Counted, chip: Accelerator) -> str:
    """What is in the way, found by changing it: "compute", "memory", "occupancy" or "latency".

    If neither arithmetic nor traffic fills the time, more resident warps are tried: where they help, registers, shared
    memory or the block size kept warps out ("occupancy"); where they do not, the warps wait too long for too little
    ("latency": a small grid, or one request at a time).

    >>> from mlsys.specs import A100_80GB
    >>> add = Counted("add", 100_000, Launch(256, 16), 1.2e7, 1.6e6, 6.4e6, 2e8, 3.2e6, in_flight=2)
    >>> from dataclasses import replace
    >>> heavy = replace(add, launch=Launch(256, 128), in_flight=1)
    >>> chain = replace(heavy, launch=Launch(256, 16), in_flight=0.5)
    >>> limiter(add, A100_80GB), limiter(heavy, A100_80GB), limiter(chain, A100_80GB)
    ('memory', 'occupancy', 'latency')
    """
    times = times_s(counted, chip)
    longest = max(times, key=times.get)
    if longest != "latency":
        return longest
    more = max(times_s(counted, chip, full=True).values())
    return "occupancy" if more < HELPS * times["latency"] else "latency"

