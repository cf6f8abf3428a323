"""Profiles: traces of a training loop, whose faults are known, and counters of a kernel, whose limiter is known.

`trace` and `intervals` are what one reads with, `simulate` and `faults` make something to read, `account` says where
the wall time went, `counters` what a kernel profiler prints, `chrome` writes files that Perfetto opens.
"""

from .account import device_account, host_account, kernel_table
from .chrome import from_chrome, to_chrome
from .counters import Counted, counters, from_report, limiter
from .faults import FAULTS, REPAIRS, amdahl, draw_loop, draw_trace, healthy, plant, repaired, speedup
from .intervals import clip, difference, exposed_s, gaps, intersection, length, overlap_s, union
from .simulate import Loop, simulate, step_s
from .trace import Event, Trace, merged
from .workload import Kernel, gpt_step, kernel_s

__all__ = [
    "Counted", "Event", "FAULTS", "Kernel", "Loop", "REPAIRS", "Trace", "amdahl", "clip", "counters", "device_account", "difference",
    "draw_loop", "draw_trace", "exposed_s", "from_chrome", "from_report", "gaps", "gpt_step", "healthy", "host_account", "intersection",
    "kernel_s", "kernel_table", "length", "limiter", "merged", "overlap_s", "plant", "repaired", "simulate", "speedup", "step_s",
    "to_chrome", "union",
]  # fmt: skip
