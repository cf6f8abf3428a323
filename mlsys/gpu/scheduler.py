"""Warp scheduler: one instruction a cycle, from whichever resident warp has its operands ready.

A warp issues in order. Its instruction i uses the result of instruction i - ilp, so `ilp` chains of dependent
instructions run side by side in it; a result can be used `latency` cycles after its instruction was issued. In steady
state W warps therefore issue min(1, W * ilp / latency) instructions a cycle: Little's law with instructions for bytes.
An SM has four such schedulers, each with warps of its own.
Left out: queues in front of the units and of memory, lanes fewer than 32 (an instruction that takes the unit for two
cycles), barriers, instruction fetch. All of these cost further cycles, so the true rate is lower, never higher.
Divergent sides of a branch wait for each other here, which hardware from Volta on can avoid; there it errs to slow.
Lessons: SMs and warps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

DONE, WAITING, READY, ISSUED = range(4)  # states of a warp in a cycle; READY: could issue, another warp was chosen
NOBODY = -1


@dataclass(frozen=True)
class Program:
    """The instructions of one warp.

    latencies: cycles until an instruction's result can be used, one number each.
    ilp: instruction i uses the result of instruction i - ilp.
    """

    latencies: tuple[int, ...]
    ilp: int = 1


@dataclass(frozen=True)
class Schedule:
    """What the scheduler did, cycle by cycle.

    warp, instruction: (cycles,), number of the warp that issued and which of its instructions; -1: empty slot.
    state: (warps, cycles), one of DONE, WAITING (for an operand), READY (not chosen), ISSUED.
    """

    warp: np.ndarray
    instruction: np.ndarray
    state: np.ndarray

    @property
    def cycles(self) -> int:
        return len(self.warp)

    @property
    def issued(self) -> int:
        """Instructions issued, of all warps."""
        return int(np.count_nonzero(self.warp != NOBODY))

    @property
    def empty(self) -> int:
        """Issue slots in which no warp was ready."""
        return self.cycles - self.issued

    @property
    def ipc(self) -> float:
        """Instructions a cycle."""
        return self.issued / self.cycles

    @property
    def stalls(self) -> np.ndarray:
        """(warps,) cycles in which each warp waited for an operand."""
        return np.count_nonzero(self.state == WAITING, axis=1)

    def text(self, first: int = 0, last: int | None = None) -> str:
        """The states as letters, a row for each warp: # issued, + ready but not chosen, . waiting.

        >>> print(simulate([chain(3, latency=4)] * 2).text())
        warp 0  #...#...#...
        warp 1  +#...#...#...
        """
        letters = np.array([" ", ".", "+", "#"])[self.state[:, first:last]]
        return "\n".join(f"warp {number:<2d} {''.join(row)}".rstrip() for number, row in enumerate(letters))


def chain(instructions: int, latency: int, ilp: int = 1) -> Program:
    """So many instructions of one latency; with ilp=1 each needs the one before.

    >>> chain(3, latency=4)
    Program(latencies=(4, 4, 4), ilp=1)
    """
    return Program((latency,) * instructions, ilp)


def ipc_bound(warps: int, latency: float, ilp: int = 1) -> float:
    """Instructions a cycle that so many equal warps can issue on one scheduler, at most.

    >>> [ipc_bound(warps, latency=4) for warps in (1, 2, 4, 16)]
    [0.25, 0.5, 1.0, 1.0]
    """
    return min(1.0, warps * ilp / latency)


def simulate(programs: Sequence[Program], policy: str = "round robin", cycles: int | None = None) -> Schedule:
    """Run one warp for each program on one scheduler, until the last result is there or for so many cycles.

    policy: "round robin" looks for a ready warp from the one behind the last; "greedy then oldest" stays with the last
    warp as long as that is ready and then takes the first ready one, warp 0 being the oldest.

    >>> for warps in (1, 2, 4, 8):
    ...     print(warps, simulate([chain(100, latency=4)] * warps, cycles=80).ipc)
    1 0.25
    2 0.5
    4 1.0
    8 1.0
    """
    _check(programs, policy, cycles)
    choose, last = POLICIES[policy], NOBODY
    issue_times: list[list[int]] = [[] for _ in programs]
    ready_times: list[list[int]] = [[] for _ in programs]  # from when each instruction could have been issued
    earliest = [0] * len(programs)  # of the next instruction of each warp
    left = sum(len(program.latencies) for program in programs)
    order: list[tuple[int, int]] = []
    cycle = 0
    while left and (cycles is None or cycle < cycles):
        ready = [w for w, p in enumerate(programs) if earliest[w] <= cycle and len(issue_times[w]) < len(p.latencies)]
        if ready:
            last = choose(ready, last)
            order.append((last, len(issue_times[last])))
            ready_times[last].append(earliest[last])
            issue_times[last].append(cycle)
            earliest[last] = _next_ready(programs[last], issue_times[last])
            left -= 1
        else:
            order.append((NOBODY, NOBODY))
        cycle += 1
    end = cycles if cycles is not None else max(_finish(p, times) for p, times in zip(programs, issue_times))
    order += [(NOBODY, NOBODY)] * (end - len(order))
    warp, instruction = np.array(order, int).reshape(-1, 2).T
    rows = [_states(p, *times, earliest[w], end) for w, (p, *times) in enumerate(zip(programs, issue_times, ready_times))]
    return Schedule(warp, instruction, np.stack(rows))


def _round_robin(ready: list[int], last: int) -> int:
    return next((w for w in ready if w > last), ready[0])


def _greedy_then_oldest(ready: list[int], last: int) -> int:
    return last if last in ready else ready[0]


POLICIES: dict[str, Callable[[list[int], int], int]] = {
    "round robin": _round_robin,
    "greedy then oldest": _greedy_then_oldest,
}


def _next_ready(program: Program, issued: list[int]) -> int:
    """When the next instruction can be issued: in order, and after the result it uses is there."""
    source = len(issued) - program.ilp
    in_order = issued[-1] + 1
    return max(in_order, issued[source] + program.latencies[source]) if source >= 0 else in_order


def _finish(program: Program, issued: list[int]) -> int:
    """The cycle in which the last result is there."""
    return max((time + latency for time, latency in zip(issued, program.latencies)), default=0)


def _states(program: Program, issued: list[int], ready: list[int], next_ready: int, cycles: int) -> np.ndarray:
    """(cycles,) states of one warp."""
    state = np.full(cycles, DONE, np.int8)
    behind = 0
    for could, did in zip(ready, issued):
        state[behind:could] = WAITING
        state[could:did] = READY
        state[did] = ISSUED
        behind = did + 1
    if len(issued) < len(program.latencies):  # cut off
        state[behind:next_ready] = WAITING
        state[max(behind, next_ready) :] = READY
    else:
        state[behind : _finish(program, issued)] = WAITING
    return state


def _check(programs: Sequence[Program], policy: str, cycles: int | None) -> None:
    if policy not in POLICIES:
        raise ValueError(f"policy={policy!r} is none of {', '.join(POLICIES)}")
    if not programs:
        raise ValueError("programs is empty: a scheduler needs a warp")
    if cycles is not None and cycles < 1:
        raise ValueError(f"cycles={cycles} is below 1")
    for number, program in enumerate(programs):
        if program.ilp < 1:
            raise ValueError(f"warp {number}: ilp={program.ilp} is below 1")
        if not program.latencies or min(program.latencies) < 1:
            raise ValueError(f"warp {number}: latencies={program.latencies[:8]} should be cycles, each at least 1")
