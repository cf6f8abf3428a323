"""Faults to plant in a training loop, how to take them out, and what taking them out is worth.

A planted fault is a change of fields of a `Loop`; the repair is another. So the truth about a gain is not an estimate:
it is the step time of the repaired loop, simulated again. Amdahl's arithmetic on the faulty trace is the estimate, and
it errs high where something else was hidden behind the fault: mending one bottleneck uncovers the next.
Left out: faults that come and go. Real loops have several small ones; a drawn loop has one that is large enough to see,
so it is easier to read than what you will meet.
Lessons: reading a profiler.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .simulate import Loop, simulate, step_s
from .trace import Trace

FAULTS = {  # name: what it is, in words of somebody who found it
    "input": "every batch comes late: the loader makes fewer batches than the device could take",
    "sync": "the host waits for the device in every step, so its own work is no longer hidden",
    "launch": "many short kernels: the host cannot launch as fast as the device finishes",
    "overlap": "gradients are reduced after backward instead of beside it",
    "straggler": "one rank computes more slowly, and all others wait for it in their collectives",
}
REPAIRS = {
    "input": {"workers": 16},
    "sync": {"syncs": 0},
    "launch": {"fused": True, "fused_optimizer": True},
    "overlap": {"overlap": True},
    "straggler": {"slow_factor": 1.0},
}
LEAST, MOST = 1.15, 4.0  # step time with the fault over step time without it, of what is drawn


def repaired(loop: Loop, *faults: str) -> Loop:
    """The loop without these faults. Raises ValueError for a fault that has no repair.

    >>> repaired(Loop(overlap=False, syncs=1), "overlap", "sync") == Loop()
    True
    """
    for fault in faults:
        if fault not in REPAIRS:
            raise ValueError(f"{fault!r} is none of {', '.join(REPAIRS)}")
        loop = replace(loop, **REPAIRS[fault])
    return loop


def speedup(loop: Loop, *faults: str) -> float:
    """Step time of the loop over step time without these faults, both simulated, without jitter.

    >>> loop = Loop(ranks=4, seq=1024, overlap=False)
    >>> round(speedup(loop, "overlap"), 2), round(speedup(loop, "sync"), 2)
    (1.13, 1.0)
    """
    loop = replace(loop, jitter=0.0)
    return step_s(loop) / step_s(repaired(loop, *faults))


def plant(loop: Loop, fault: str, rng: np.random.Generator) -> Loop:
    """The loop with one of `FAULTS`, of a drawn severity. Raises ValueError for an unknown fault."""
    if fault not in FAULTS:
        raise ValueError(f"{fault!r} is none of {', '.join(FAULTS)}")
    draw = {
        "input": lambda: {"load_s": step_s(replace(loop, jitter=0.0)) * rng.uniform(1.3, 2.2), "workers": 1},
        "sync": lambda: {"syncs": int(rng.choice([1, 2, 4]))},
        "launch": lambda: {"fused": False, "fused_optimizer": False},
        "overlap": lambda: {"overlap": False},
        "straggler": lambda: {"slow_rank": int(rng.integers(loop.ranks)), "slow_factor": rng.uniform(1.3, 1.8)},
    }
    return replace(loop, **draw[fault]())


def healthy(rng: np.random.Generator, ranks: int | None = None) -> Loop:
    """A loop without a fault, of drawn size and host: GPT-2 small on 2 or 4 A100, jitter 1 %."""
    batch, seq = [(4, 512), (8, 512), (2, 1024), (4, 1024)][int(rng.integers(4))]
    ranks = ranks or int(rng.choice([2, 4]))
    return Loop(batch=batch, seq=seq, ranks=ranks, steps=8, launch_s=rng.uniform(6e-6, 10e-6), delay_s=10e-6,
                python_s=rng.uniform(3e-3, 5e-3), load_s=rng.uniform(2e-3, 5e-3), jitter=0.01)


def draw_loop(rng: np.random.Generator, fault: str | None = None, ranks: int | None = None) -> Loop:
    """A loop with one planted fault (or none) that makes a step 1.15 to 4 times as long as without it.

    The same generator gives the same loop. Which fault was planted is not in the loop's name, only in its fields.

    >>> loop = draw_loop(np.random.default_rng(3), "straggler")
    >>> loop.slow_factor > 1, LEAST <= speedup(loop, "straggler") <= MOST
    (True, True)
    """
    if fault is None:
        return healthy(rng, ranks)
    for _ in range(100):
        loop = healthy(rng, ranks)
        if fault == "launch":  # little work for each kernel: and a slow host: it is over before the next launch
            loop = replace(loop, batch=2, seq=512, launch_s=loop.launch_s + 5e-6)
        loop = plant(loop, fault, rng)
        if LEAST <= speedup(loop, fault) <= MOST:
            return loop
    raise RuntimeError(f"no loop with the fault {fault!r} in 100 draws")


def draw_trace(rng: np.random.Generator, fault: str | None = None, ranks: int | None = None) -> Trace:
    """The trace of `draw_loop`: eight steps, the first two of them slow."""
    return simulate(draw_loop(rng, fault, ranks), rng)


def amdahl(share: float, factor: float = np.inf) -> float:
    """Speed-up of the whole if a share of its wall time runs `factor` times as fast.

    Holds where the parts follow one another. Where they hide behind each other it errs high.

    >>> amdahl(0.25), amdahl(0.25, 2)
    (1.3333333333333333, 1.1428571428571428)
    """
    if not 0 <= share < 1 or factor <= 0:
        raise ValueError(f"share={share} has to be from 0 to below 1 and factor={factor} above 0")
    return 1 / (1 - share + share / factor)
