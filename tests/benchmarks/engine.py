"""How fast is a training step, next to other frameworks?

    python -m tests.benchmarks.engine [moons] [mlp] [--rounds 15] [--only PyTorch mlsys ...]

Each framework runs in a process of its own, pinned to one core with one BLAS thread, and is
asked for a slice of steps in turn. Counted is the processor time of its process. The ratio of
two frameworks is taken inside each round, so that a busy machine slows both; printed are its
median and the quarter and three-quarter marks. Above 1: faster than the first one.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

from tests.benchmarks.peers import PEERS, SIZES

CHECK_STEPS = 20


def serve(name: str, task: str) -> None:
    """Worker: reads a number of steps, answers with processor seconds and the last loss."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a framework prints goes to stderr
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    try:
        step = PEERS[name](task)
        step(0)
    except Exception as reason:  # the peer is missing, or its compiler
        answers.write(f"absent {type(reason).__name__}: {str(reason).splitlines()[0] if str(reason) else ''}\n")
        return
    answers.write("ready\n")
    i = 1
    for line in sys.stdin:
        begin = time.process_time()
        for _ in range(int(line)):
            loss = step(i)
            i += 1
        answers.write(f"{time.process_time() - begin!r} {float(loss)!r}\n")


class Worker:
    """A framework in its own process."""

    def __init__(self, name: str, task: str):
        threads = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
        command = [sys.executable, "-m", "tests.benchmarks.engine", "--serve", name, task]
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | dict.fromkeys(threads, "1"),
        )
        first = self.process.stdout.readline().strip()
        self.absent = None if first == "ready" else first.removeprefix("absent ") or "failed to start"

    def run(self, steps: int) -> tuple[float, float]:
        """(processor seconds a step, last loss)."""
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        seconds, loss = map(float, self.process.stdout.readline().split())
        return seconds / steps, loss

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(task: str, names: list[str], rounds: int, slice_s: float):
    """({name: seconds a step in each round}, {name: loss after CHECK_STEPS}, {name: why absent})."""
    workers = [Worker(name, task) for name in names]
    absent = {w.name: w.absent for w in workers if w.absent}
    workers = [w for w in workers if not w.absent]
    losses = {w.name: w.run(CHECK_STEPS - 1)[1] for w in workers}  # one is done already
    steps = {w: max(1, round(slice_s / max(w.run(10)[0], 1e-6))) for w in workers}
    times: dict[str, list[float]] = {w.name: [] for w in workers}
    for r in range(rounds):
        for w in workers if r % 2 == 0 else workers[::-1]:
            times[w.name].append(w.run(steps[w])[0])
    for w in workers:
        w.close()
    return times, losses, absent


def table(task: str, times, losses, absent) -> str:
    """One row a framework, ratios against the first that is present."""
    reference = next(iter(times))
    rows = [f"{task}: {'-'.join(map(str, SIZES[task]))}, 1 thread, ratio against {reference}"]
    rows.append(f"{'':16} {'us/step':>9} {'ratio':>9} {'quartiles':>18}  loss after {CHECK_STEPS} steps")
    for name, own in times.items():
        ratios = [theirs / mine for theirs, mine in zip(times[reference], own, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        us = statistics.median(own) * 1e6
        rows.append(f"{name:16} {us:9.1f} {middle:9.3g} {low:9.3g}-{high:8.3g}  {losses[name]:.6f}")
    rows += [f"{name:16} not measured: {reason}" for name, reason in absent.items()]
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(SIZES)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--slice-ms", type=float, default=100)
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), metavar="PEER")
    parser.add_argument("--serve", nargs=2, metavar=("PEER", "TASK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return
    for task in options.tasks or SIZES:
        print(table(task, *measure(task, options.only, options.rounds, options.slice_ms / 1e3)), end="\n\n")


if __name__ == "__main__":
    main()
