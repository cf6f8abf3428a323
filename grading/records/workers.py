"""Workers: they grade and hand back plain data; only the coordinator writes.

On one machine each thread owns a Grader with its servers, so the work is in processes. Past one machine the
same function runs on Dask workers; one that dies costs a retry.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import nbformat

from ..sealed.execute import GraderUnavailable
from .results import Make, fault, plain

TRIES = 2


@dataclass(frozen=True)
class Task:
    """One notebook of one submission."""

    key: str  # of the job that it belongs to
    student: str
    notebook: str
    master: str  # the instructor's notebook as text
    submission: bytes
    seed: str
    version: str


def sealed_grader(level: str | int = "auto"):
    """The Grader of this project; "auto" is the best level that holds on this machine."""
    from ..sealed.execute import Grader

    return Grader(level)


class Desk:
    """One thread's Grader, opened on first use and again after it failed."""

    def __init__(self, make: Make):
        self.make, self.grader = make, None

    def grade(self, task: Task) -> dict:
        """Grade one notebook. What a Grader cannot do twice is a fault, which a person looks at."""
        master = nbformat.reads(task.master, as_version=4)
        for attempt in range(TRIES):
            try:
                if self.grader is None:
                    self.grader = self.make()
                    self.grader.__enter__()
                with tempfile.TemporaryDirectory(prefix="grading-") as folder:
                    path = Path(folder, f"{task.notebook}.ipynb")
                    path.write_bytes(task.submission)
                    report = self.grader.grade(master, path, task.student, seed=bytes.fromhex(task.seed))
                return plain(report)
            except GraderUnavailable:
                raise
            except Exception as error:
                self.close()
                why = f"the grader failed {attempt + 1} times ({type(error).__name__})"
        return fault(master, why, task.version, task.seed)

    def close(self) -> None:
        grader, self.grader = self.grader, None
        if grader is not None:
            try:
                grader.close()
            except Exception:  # it is of no use any more
                pass


def on_this_machine(tasks: Iterable[Task], jobs: int, make: Make) -> Iterator[tuple[Task, dict]]:
    """Grade with `jobs` workers of this machine; results as they are ready."""
    desks, mine = [], threading.local()

    def work(task: Task) -> tuple[Task, dict]:
        if not hasattr(mine, "desk"):
            mine.desk = Desk(make)
            desks.append(mine.desk)
        return task, mine.desk.grade(task)

    pool = ThreadPoolExecutor(jobs, thread_name_prefix="grading")
    try:
        left, waiting = iter(tasks), set()
        while True:
            # No more in the queue than the workers need: what is not begun costs no memory.
            while len(waiting) < 2 * jobs and (task := next(left, None)) is not None:
                waiting.add(pool.submit(work, task))
            if not waiting:
                return
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ready:
                yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for desk in desks:
            desk.close()


_desks = threading.local()


def _on_a_worker(task: Task, make: Make) -> dict:
    """What runs on a Dask worker. Its Grader stays open for the next task."""
    if not hasattr(_desks, "desk"):
        _desks.desk = Desk(make)
    return _desks.desk.grade(task)


def on_a_cluster(tasks: Iterable[Task], scheduler: str, make: Make) -> Iterator[tuple[Task, dict]]:
    """Grade on the workers of a Dask scheduler. A task whose workers die again and again ends as a fault."""
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError:
        raise ValueError("--scheduler needs Dask: pip install distributed") from None
    with Client(scheduler, timeout=30) as client:
        futures = {client.submit(_on_a_worker, task, make, retries=2, pure=False): task for task in tasks}
        for future in as_completed(futures):
            task = futures.pop(future)
            try:
                yield task, future.result()
            except KilledWorker:
                master = nbformat.reads(task.master, as_version=4)
                yield task, fault(master, "each worker that tried it was lost", task.version, task.seed)
            future.release()
