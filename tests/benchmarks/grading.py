"""How fast is grading next to stock nbgrader, and does a large mixed class come out right?

    python -m tests.benchmarks.grading speed [--submissions 100] [--pairs 3] [--jobs 2] [--assignment ps01_foundations]
    python -m tests.benchmarks.grading scale [--submissions 40] [--workers 1 2 4] [--pairs 3] [--assignment ps01_foundations]
    python -m tests.benchmarks.grading soak [--submissions 500] [--jobs 2]

`speed` grades the same submissions with `nbgrader autograde` as it comes and with `python -m grading grade`,
in turn, each in a fresh copy of the course; feedback is left out on both sides, points have to be equal. Printed
are the wall times and the median of the ratios. `scale` grades the same submissions with 1, 2 and more workers in turn, and
splits the processor time into that of the coordinator, which alone writes, and that of the workers and their sandboxes: the first
bounds what more cores can bring. `soak` grades one batch of right, wrong, hostile and malformed
submissions of the small assignment of the tests, compares each verdict with the known one, and watches the grader's memory.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "browser")]

import nbformat  # noqa: E402
from kit.course import STAND_IN, Course, solution_of, stand_in  # noqa: E402

from grading.answers import read_answers  # noqa: E402
from grading.student_edition import Printer  # noqa: E402

STOCK = """
import nbgrader.converters.autograde as stock
c.Autograde.exporter_class = "nbconvert.exporters.NotebookExporter"
c.Autograde.sanitize_preprocessors = list(stock.Autograde.sanitize_preprocessors.default_args[0])
c.Autograde.autograde_preprocessors = list(stock.Autograde.autograde_preprocessors.default_args[0])
c.Execute.shutdown_kernel = "graceful"
"""
LOOP = "def kibibytes(n, itemsize):\n    while True:\n        pass"
HOSTILE = {  # answers of the first exercise of the stand-in; all of them lose its 3 points and no others
    "exit": "import os\nos._exit(0)",
    "kill": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "memory": "x = bytearray(50 << 30)",
    "syntax": "def kibibytes(n, itemsize:",
    "equal": "class Yes(float):\n    def __eq__(self, other): return True\ndef kibibytes(n, itemsize): return Yes(0)",
    "raise": "raise SystemExit",
    "recursion": "def kibibytes(n, itemsize): return kibibytes(n, itemsize)",
    "children": "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        time.sleep(1000)",
    "patch": "import numpy as np\nnp.allclose = lambda *a, **k: True\nassert_ = 1\ndef kibibytes(n, itemsize): return 0",
    "output": "print('x' * 10_000_000)",
    "threads": "import threading, time\nfor _ in range(50): threading.Thread(target=time.sleep, args=(1000,)).start()",
    "network": "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=5)",
}
MALFORMED = {
    "empty": b"", "text": b"hello", "bytes": bytes(range(256)) * 16, "list": b"[]", "object": b"{}",
    "half": b'{"cells": [', "deep": b"[" * 100_000, "format": b'{"nbformat": 3, "worksheets": []}',
}  # fmt: skip


def course_of(folder: Path, assignment: str) -> tuple[Course, nbformat.NotebookNode, dict[str, str]]:
    """A course with an assignment; its instructor's notebook and the right answers."""
    course = Course(folder)
    if assignment == STAND_IN:
        master = stand_in()
        course.add_source(assignment, {assignment: master})
    else:
        shutil.copytree(REPOSITORY / "source" / assignment, course.root / "source" / assignment)
        master = course.source(assignment)[assignment]
    right = {cell.id: solution_of(cell) for cell in master.cells if cell.metadata.get("nbgrader", {}).get("solution")}
    return course, master, right


def printed(master: nbformat.NotebookNode, root: Path) -> nbformat.NotebookNode:
    """The student's copy of a notebook."""
    nbformat.write(master, root / "master.ipynb")
    return nbformat.reads(Printer(REPOSITORY).print(root / "master.ipynb"), as_version=4)


def hand_in(course: Course, assignment: str, student: str, notebook, answers: dict[str, str] | bytes) -> None:
    """Lay a submission into submitted/, as nbgrader's collect leaves it."""
    place = course.root / "grading" / "submitted" / student / assignment
    place.mkdir(parents=True)
    (place / "timestamp.txt").write_text("2026-01-01 10:00:00 UTC")
    if isinstance(answers, dict):
        copy = nbformat.from_dict(notebook)
        for cell in copy.cells:
            cell.source = answers.get(cell.id, cell.source)
        answers = nbformat.writes(copy).encode()
    (place / f"{assignment}.ipynb").write_bytes(answers)


def points(root: Path) -> dict[str, float]:
    """Student -> points by checks, from the gradebook's file."""
    with sqlite3.connect(root / "grading" / "gradebook.db") as book:
        found = book.execute(
            "SELECT s.student_id, sum(coalesce(g.auto_score, 0)) FROM submitted_assignment s"
            " JOIN submitted_notebook n ON n.assignment_id = s.id JOIN grade g ON g.notebook_id = n.id GROUP BY s.student_id"
        )
        return dict(found)


def class_of(course: Course, assignment: str, master, right: dict[str, str], number: int) -> None:
    """Hand in `number` submissions: right, unanswered, and each right alternative, in turn."""
    notebook = printed(master, course.folder)
    answers = REPOSITORY / "tests" / "answers" / f"{assignment}.py"
    versions = [version for version in read_answers(answers) if version.kind == "right"] if answers.is_file() else []
    kinds: list[dict[str, str]] = [right, {}, *(right | {f"{v.exercise}-answer": v.source} for v in versions)]
    for index in range(number):
        hand_in(course, assignment, f"s{index:03}", notebook, kinds[index % len(kinds)])
    course.command("generate_assignment", assignment)


def timed(course: Course, root: Path, *words: str, run: str = "-m") -> float:
    """Run a command in a copy of the course; its wall time."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, run, *words], cwd=root, env=course.environment(root), capture_output=True, text=True
    )
    elapsed = time.monotonic() - started
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)} ended with status {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return elapsed


def speed(assignment: str, number: int, pairs: int, jobs: int) -> None:
    """Stock and ours in turn, the same submissions, fresh copies."""
    with tempfile.TemporaryDirectory() as folder:
        course, master, right = course_of(Path(folder), assignment)
        class_of(course, assignment, master, right, number)
        ratios = []
        for pair in range(pairs):
            roots = {}
            for name in ("stock", "ours"):
                roots[name] = Path(folder) / f"{name}{pair}"
                shutil.copytree(course.root, roots[name])
            with open(roots["stock"] / "nbgrader_config.py", "a") as config:
                config.write(STOCK)
            stock_s = timed(course, roots["stock"], "nbgrader", "autograde", assignment)
            ours_s = timed(course, roots["ours"], "grading", "grade", assignment, "--no-feedback", "--jobs", str(jobs))
            same = points(roots["stock"]) == points(roots["ours"])
            ratios.append(stock_s / ours_s)
            print(
                f"pair {pair + 1}: stock {stock_s:.1f} s ({60 * number / stock_s:.0f} a minute), ours {ours_s:.1f} s "
                f"({60 * number / ours_s:.0f} a minute), {ratios[-1]:.1f} times; points {'equal' if same else 'DIFFER'}",
                flush=True,
            )
            if not same:
                ours, stock = points(roots["ours"]), points(roots["stock"])
                print({s: (stock.get(s), ours.get(s)) for s in ours if stock.get(s) != ours.get(s)})
        print(f"median of {pairs} pairs: {statistics.median(ratios):.1f} times as many submissions, {jobs} workers")


def seconds_of(course: Course, root: Path, assignment: str, jobs: int) -> tuple[float, float, float]:
    """One run of `grade`: wall time, processor time of the coordinator, and of all else on this (quiet) machine."""
    program = (
        "import atexit, os, sys\natexit.register(lambda: open('coordinator', 'w').write(str(sum(os.times()[:2]))))\n"
        "sys.argv[0] = 'grading'\nimport runpy\nrunpy.run_module('grading', run_name='__main__', alter_sys=True)"
    )
    before = busy_s()
    wall = timed(course, root, program, "grade", assignment, "--no-feedback", "--jobs", str(jobs), run="-c")
    coordinator = float((root / "coordinator").read_text())
    return wall, coordinator, busy_s() - before - coordinator


def busy_s() -> float:
    """Processor seconds of the whole machine since its start: those of a sandbox are reported to no parent."""
    user, nice, system = Path("/proc/stat").read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def scale(assignment: str, number: int, workers: list[int], rounds: int) -> None:
    """The same class with so many workers in turn; medians over the rounds."""
    with tempfile.TemporaryDirectory() as folder:
        course, master, right = course_of(Path(folder), assignment)
        class_of(course, assignment, master, right, number)
        runs: dict[int, list[tuple[float, float, float]]] = {jobs: [] for jobs in workers}
        for turn in range(rounds):
            for jobs in workers:
                root = Path(folder) / f"jobs{jobs}-{turn}"
                shutil.copytree(course.root, root)
                runs[jobs].append(seconds_of(course, root, assignment, jobs))
        print(f"{number} submissions of {assignment}, {os.cpu_count()} cores, medians of {rounds} runs")
        first = statistics.median(wall for wall, *_ in runs[workers[0]])
        for jobs, seen in runs.items():
            wall, coordinator, rest = (statistics.median(column) for column in zip(*seen))
            print(
                f"{jobs} workers: {wall:5.1f} s, {60 * number / wall:5.0f} a minute, {first / wall:.2f} times the first; "
                f"processor time: coordinator {coordinator:.1f} s, workers {rest:.1f} s, {(coordinator + rest) / wall:.2f} cores busy"
            )


def soak(number: int, jobs: int, seed: int) -> int:
    """One batch of everything; 0 if every verdict is right and memory did not grow."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        course, master, right = course_of(Path(folder), STAND_IN)
        notebook, expected = printed(master, Path(folder)), {}
        for index in range(number):
            kind = chance.choices(["right", "wrong", "stub", "hostile", "malformed", "loop"], [40, 20, 10, 19, 10, 1])[
                0
            ]
            student, content, want = f"{kind}-{index:03}", right, 8.0
            if kind == "wrong":
                content, want = (
                    right | {"kibibytes-answer": "def kibibytes(n, itemsize):\n    return n * itemsize / 1000"},
                    5.0,
                )
            elif kind == "stub":
                content, want = {}, 0.0
            elif kind == "hostile":
                name = chance.choice(list(HOSTILE))
                student, content, want = f"{name}-{index:03}", right | {"kibibytes-answer": HOSTILE[name]}, 5.0
            elif kind == "malformed":
                name = chance.choice(list(MALFORMED))
                student, content, want = f"malformed-{name}-{index:03}", MALFORMED[name], 0.0
            elif kind == "loop":
                content, want = right | {"kibibytes-answer": LOOP}, 5.0
            hand_in(course, STAND_IN, student, notebook, content)
            expected[student] = want
        course.command("generate_assignment", STAND_IN)
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "grading", "grade", STAND_IN, "--jobs", str(jobs)],
            cwd=course.root, env=course.environment(course.root), stdout=subprocess.DEVNULL,
        )  # fmt: skip
        memory: list[float] = []
        watcher = threading.Thread(target=watch, args=(process, memory))
        watcher.start()
        process.wait()
        watcher.join()
        elapsed, got = time.monotonic() - started, points(course.root)
    wrong = {student: (want, got.get(student)) for student, want in expected.items() if got.get(student) != want}
    quarter = max(len(memory) // 4, 1)
    early, late = statistics.median(memory[quarter : 2 * quarter] or [0]), statistics.median(memory[-quarter:] or [0])
    print(f"{number} submissions in {elapsed:.0f} s, {60 * number / elapsed:.0f} a minute, {jobs} workers")
    print(
        f"verdicts: {number - len(wrong)} right, {len(wrong)} wrong {dict(list(wrong.items())[:10]) if wrong else ''}"
    )
    print(f"memory of the grader: {early:.0f} MB in the second quarter of the time, {late:.0f} MB in the last")
    verdict = process.returncode == 0 and not wrong and late < 1.2 * early + 20
    print("PASSED" if verdict else f"FAILED (status {process.returncode})")
    return 0 if verdict else 1


def watch(process: subprocess.Popen, memory: list[float]) -> None:
    """Resident memory of the coordinator in MB, twice a second."""
    while process.poll() is None:
        try:
            pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            memory.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
        except (OSError, IndexError):
            pass
        time.sleep(0.5)


def main() -> int:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("what", choices=["speed", "scale", "soak"])
    top.add_argument("--submissions", type=int)
    top.add_argument("--pairs", type=int, default=3)
    top.add_argument("--jobs", type=int, default=2)
    top.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    top.add_argument("--assignment", default=STAND_IN)
    top.add_argument("--seed", type=int, default=1)
    args = top.parse_args()
    if args.what == "speed":
        speed(args.assignment, args.submissions or 100, args.pairs, args.jobs)
        return 0
    if args.what == "scale":
        scale(args.assignment, args.submissions or 40, args.workers, args.pairs)
        return 0
    return soak(args.submissions or 500, args.jobs, args.seed)


if __name__ == "__main__":
    sys.exit(main())
