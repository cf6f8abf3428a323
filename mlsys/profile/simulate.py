"""A training loop on simulated clocks: host threads that launch, streams that run in order, ranks that wait for each other.

One host thread a rank hands out work and runs ahead of its GPU: a launch returns at once, and the kernel runs when its
stream is free. The host stops where it has to: for a batch, for a full queue, for a value that it wants to read. Each
rank has three streams (compute, copy, comm); a collective ends on all ranks at once, so the first rank to arrive waits
longest. Everything is worked out step by step from these rules, there is no clock to poll and no event to lose.
Sources of the constants stand beside them; those called an assumption are the size of the thing, not a measurement.
Left out: kernels that share the GPU (a collective takes SMs from compute, so real overlap costs something and ours is
free), clocks that fall when the chip is hot, the caching allocator, Python's own work between launches except
`python_s`, jitter unless asked for. So step times err low, and what overlapping communication saves errs high.
Lessons: reading a profiler.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from ..specs.accelerators import A100_80GB, Accelerator
from ..specs.architecture import Architecture
from ..specs.models import GPT2_SMALL
from ..units import MIB
from .trace import Event, Trace
from .workload import GRADIENT_BYTES, Kernel, gpt_step, kernel_s

QUEUE = 1024  # launches that may wait for a device before the host is held up: an assumption
GAP_S = 1e-6  # between two kernels of one stream: an assumption
PCIE_BW = 31e9  # bytes/s to the device, PCIe 4 x16; stas00/ml-engineering, network/README.md
WARMUP = (8.0, 2.0)  # what launches cost in the first steps, over what they cost later: an assumption
BUCKET_BYTES = 25 * MIB  # of gradients in one all-reduce: the default of PyTorch's DistributedDataParallel
ALL_REDUCE = {  # ranks on one A100 node: latency in s, bus bandwidth in bytes/s
    2: (42.5e-6, 192e9), 4: (48.6e-6, 219e9), 8: (77.3e-6, 230e9),
}  # fitted to nccl-tests in VIA-Research/vTrain (trace/a100), 1 MiB to 1 GiB; mean error 2 to 3 %


@dataclass(frozen=True)
class Loop:
    """A training loop and the machine that it runs on.

    batch: sequences for each rank and step, of seq tokens. fused, fused_optimizer: see `workload.gpt_step`.
    load_s: a loader worker's time for one batch; workers: of each rank, 0 lets the host load; prefetch: batches a
        worker may have ready.
    syncs: how often in a step the host waits for the device, as loss.item() does; python_s: what the host computes in
        each step without launching (logging, schedules).
    launch_s: host time of one launch; delay_s: from its return to the start on an idle stream. Their sum is the
        20 us that NVIDIA shows for PyTorch on a V100 (blog "Understanding the visualization of overhead and latency
        in Nsight Systems"); how it splits is an assumption.
    overlap: all-reduce gradients while backward runs, in buckets; else all of them after it.
    slow_rank, slow_factor: a rank whose kernels take so much longer. jitter: relative standard deviation of kernel times.
    """

    model: Architecture = GPT2_SMALL
    chip: Accelerator = A100_80GB
    batch: int = 4
    seq: int = 512
    ranks: int = 1
    steps: int = 6
    fused: bool = True
    fused_optimizer: bool = True
    load_s: float = 4e-3
    workers: int = 2
    prefetch: int = 2
    syncs: int = 0
    python_s: float = 4e-3
    launch_s: float = 10e-6
    delay_s: float = 10e-6
    overlap: bool = True
    slow_rank: int = 0
    slow_factor: float = 1.0
    jitter: float = 0.0

    def __post_init__(self):
        for name in ("batch", "seq", "ranks", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} is below 1")
        if self.ranks > 1 and self.ranks not in ALL_REDUCE:
            raise ValueError(f"ranks={self.ranks}: all-reduce times are known for {', '.join(map(str, ALL_REDUCE))} ranks")
        if not 0 <= self.slow_rank < self.ranks:
            raise ValueError(f"slow_rank={self.slow_rank} is none of {self.ranks} ranks")
        if min(self.load_s, self.python_s, self.launch_s, self.delay_s, self.workers, self.syncs, self.jitter) < 0:
            raise ValueError("times and counts cannot be negative")
        if self.prefetch < 1 or self.slow_factor <= 0:
            raise ValueError(f"prefetch={self.prefetch} has to be at least 1 and slow_factor={self.slow_factor} above 0")


def all_reduce_s(size_bytes: float, ranks: int) -> float:
    """Seconds of one all-reduce on a node of A100s, once every rank has arrived.

    >>> f"{all_reduce_s(25 * 2**20, 8) * 1e6:.0f} us"
    '277 us'
    """
    latency, bus = ALL_REDUCE[ranks]
    return latency + 2 * (ranks - 1) / ranks * size_bytes / bus


def buckets(kernels: list[Kernel], bucket_bytes: float = BUCKET_BYTES) -> list[tuple[int, float]]:
    """(index of the kernel after which it is complete, bytes) of each bucket of gradients, in the order of backward.

    A bucket closes as soon as it is full; gradients are kept whole, so a bucket may be larger.
    """
    found, size, last = [], 0.0, 0
    for i, kernel in enumerate(kernels):
        if kernel.gradients:
            size, last = size + GRADIENT_BYTES * kernel.gradients, i
            if size >= bucket_bytes:
                found, size = [*found, (last, size)], 0.0
    return [*found, (last, size)] if size else found


def simulate(loop: Loop, rng: np.random.Generator | None = None) -> Trace:
    """The trace of a loop. rng: for jitter; without jitter every run is the same.

    >>> trace = simulate(Loop(steps=4))
    >>> [f"{t * 1e3:.1f} ms" for t in trace.step_times()]
    ['29.1 ms', '12.6 ms', '10.4 ms', '10.4 ms']
    """
    ranks, rows = _run(loop, rng, True), []
    for number in range(loop.ranks):
        slow = loop.slow_factor != 1 and number == loop.slow_rank
        twin = next((rank for rank in ranks if rank.number == number), None) or next(rank for rank in ranks if rank.slow == slow)
        rows += twin.rows if twin.number == number else [(*row[:5], number, *row[6:]) for row in twin.rows]
    rows.sort(key=lambda row: row[3])
    return Trace(tuple(_event(row) for row in rows))


FIELDS = tuple(field.name for field in fields(Event))


def _event(row: tuple) -> Event:
    """Event(*row), filled at once: a frozen dataclass sets its fields one by one, which takes four times as long."""
    event = object.__new__(Event)
    event.__dict__.update(zip(FIELDS, row))
    return event


def step_s(loop: Loop, rng: np.random.Generator | None = None) -> float:
    """Seconds of a step in the long run: the mean of eight after the first four (or a few more: whole rounds of workers).

    Simulated without slow first steps: during these a loader makes batches in store, and uses them up long after.

    >>> f"{step_s(Loop(load_s=0.05, workers=1)) * 1e3:.1f} ms"  # every batch takes 50 ms, and there is one worker
    '50.0 ms'
    """
    counted = loop.workers * -(-8 // loop.workers) if 1 < loop.workers <= 8 else 8
    ends = np.max([rank.ends for rank in _run(replace(loop, steps=4 + counted), rng, False)], axis=0)
    return float(ends[-1] - ends[3]) / counted


def _run(loop: Loop, rng: np.random.Generator | None, record: bool) -> list[_Rank]:
    """Let the loop run; each rank keeps when its device ended each step and, where asked to record, has a warm-up and keeps its rows."""
    kernels = gpt_step(loop.model, loop.batch, loop.seq, loop.fused, loop.fused_optimizer)
    split = next(i for i, kernel in enumerate(kernels) if kernel.phase == "optimizer")
    times = np.array([kernel_s(kernel, loop.chip) for kernel in kernels])
    rng = rng or np.random.default_rng(0)
    shown = range(loop.ranks)
    if not loop.jitter:  # ranks that are alike behave alike: one of them and the slow one will do
        shown = sorted({loop.slow_rank, (loop.slow_rank + 1) % loop.ranks} if loop.slow_factor != 1 else {0})
    ranks = [_Rank(loop, number, kernels, times, record) for number in shown]
    parts = buckets(kernels[:split]) if loop.ranks > 1 else []
    for step in range(loop.steps):
        for rank in ranks:
            rank.begin(step, rng)
            rank.run(range(split), {last for last, _ in parts} if loop.overlap else set())
        for last, size in parts:
            _all_reduce(ranks, last if loop.overlap else split - 1, all_reduce_s(size, loop.ranks))
        for rank in ranks:
            rank.after = rank.free["comm"]
            rank.run(range(split, len(kernels)), set())
            rank.finish()
    return ranks


def _all_reduce(ranks: list[_Rank], last: int, time: float) -> None:
    """One collective: it begins on each rank when that rank is ready and ends on all when the last one is done."""
    arrivals = [rank.arrival(last) for rank in ranks]
    end = max(begin for begin, _ in arrivals) + time
    for rank, (begin, flow) in zip(ranks, arrivals):
        rank.add("all-reduce", "nccl", "comm", begin, end, flow)
        rank.free["comm"] = end


class _Rank:
    """One process: its host thread's clock, its streams, its loader."""

    def __init__(self, loop: Loop, number: int, kernels: list[Kernel], times: np.ndarray, record: bool):
        self.loop, self.number, self.kernels, self.record = loop, number, kernels, record
        self.slow = loop.slow_factor != 1 and number == loop.slow_rank
        self.times = times * (loop.slow_factor if self.slow else 1.0)
        self.now, self.step, self.flow, self.after = 0.0, 0, -1, 0.0
        self.free = {"compute": 0.0, "copy": 0.0, "comm": 0.0}
        self.starts: list[float] = []  # of everything launched, in order of launching
        self.worker_free, self.taken = [0.0] * loop.workers, []
        self.rows: list[tuple] = []  # the fields of events
        self.ends: list[float] = []  # of each step, on the device

    def add(self, name: str, kind: str, track: str, start: float, end: float, flow: int = -1) -> None:
        if self.record:
            self.rows.append((name, kind, track, start, end - start, self.number, self.step, flow))

    def host(self, name: str, kind: str, end: float, flow: int = -1) -> None:
        """The host does something until `end`; nothing is written if that is no later than now."""
        if end > self.now:
            self.add(name, kind, "host", self.now, end, flow)
            self.now = end

    def begin(self, step: int, rng: np.random.Generator) -> None:
        """Take the next batch and copy it to the device."""
        self.step, self.after = step, 0.0
        self.scale = WARMUP[step] if self.record and step < len(WARMUP) else 1.0
        jitter = self.loop.jitter * rng.standard_normal(len(self.times)) if self.loop.jitter else np.zeros(len(self.times))
        self.now_times = (self.times * np.exp(jitter)).tolist()
        self.done: dict[int, float] = {}  # kernel: when it ends
        self.called: dict[int, tuple[float, int]] = {}  # last kernel of a bucket: earliest start of its all-reduce, flow
        self.host("wait for batch" if self.loop.workers else "load batch", "cpu", self.batch_ready())
        self.taken.append(self.now)
        copied = 2 * self.loop.batch * self.loop.seq * 8  # tokens and targets, 8 bytes each
        self.after = self.launch("Memcpy HtoD", "memcpy", "copy", copied / PCIE_BW + GAP_S, call="cudaMemcpyAsync")

    def batch_ready(self) -> float:
        """When the next batch is there. Worker i makes batches i, i + workers, ... and waits while its shelf is full."""
        loop, number = self.loop, len(self.taken)
        if not loop.workers:
            return self.now + loop.load_s
        worker, room = number % loop.workers, number - loop.workers * loop.prefetch
        start = max(self.worker_free[worker], self.taken[room] if room >= 0 else 0.0)
        self.worker_free[worker] = start + loop.load_s
        self.add("load batch", "cpu", f"loader {worker}", start, self.worker_free[worker])
        return self.worker_free[worker]

    def queue(self, call: str) -> float:
        """The host launches something: when it can begin at the earliest."""
        self.flow = len(self.starts)
        room = self.starts[self.flow - QUEUE] if self.flow >= QUEUE else 0.0
        self.host(call, "launch", max(self.now + self.scale * self.loop.launch_s, room), self.flow)
        return self.now + self.loop.delay_s

    def launch(self, name: str, kind: str, stream: str, time: float, call: str = "cudaLaunchKernel") -> float:
        """Queue something on a stream, behind what is there and not before `after`; returns when it ends."""
        begin = max(self.queue(call), self.free[stream] + GAP_S, self.after)
        self.starts.append(begin)
        self.free[stream] = begin + time
        self.add(name, kind, stream, begin, begin + time, self.flow)
        return begin + time

    def run(self, which: range, closing: set[int]) -> None:
        """Launch kernels; where a bucket is complete its all-reduce is launched too, to be placed later."""
        pauses = set(np.linspace(0, len(self.kernels), self.loop.syncs + 1)[1:-1].astype(int).tolist())
        for i in which:
            kernel = self.kernels[i]
            self.done[i] = self.launch(kernel.name, "kernel", "compute", self.now_times[i])
            if i in closing:
                self.call_all_reduce(i)
            if i in pauses:
                self.wait()

    def call_all_reduce(self, last: int) -> None:
        self.called[last] = max(self.queue("ncclAllReduce"), self.done[last]), self.flow
        self.starts.append(self.called[last][0])

    def arrival(self, last: int) -> tuple[float, int]:
        """When the next collective begins on this rank, and its flow; it waits for kernel `last`."""
        if last not in self.called:
            self.call_all_reduce(last)
        ready, flow = self.called.pop(last)
        return max(ready, self.free["comm"] + GAP_S), flow

    def wait(self) -> None:
        """Read one number: copy it to the host and wait for everything that the compute stream was given before."""
        end = self.launch("Memcpy DtoH", "memcpy", "compute", GAP_S, call="cudaMemcpyAsync")
        self.host("cudaStreamSynchronize", "sync", end + self.loop.delay_s)

    def finish(self) -> None:
        if self.loop.syncs:
            self.wait()
        self.ends.append(max(self.free.values()))
        self.host("python", "cpu", self.now + self.loop.python_s)
