"""What the tests of sealed grading share: two small assignments, one warm grader, hostile answers as text."""

from __future__ import annotations

import atexit
import functools
import json
import re
import sys
from copy import deepcopy
from pathlib import Path

import nbformat

from grading.sealed import Grader, GraderUnavailable, Limits
from grading.sealed.rebuild import handed_out, name_of, own_role

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "browser"))

from kit.course import STAND_IN, Course, solution_of, stand_in  # noqa: E402, F401

USUAL = Limits(cell_s=10, call_s=6, wall_s=60)
TIGHT = Limits(cpu_s=3, cell_s=1, call_s=1.0, wall_s=20, memory_bytes=2 << 30)
RIGHT = "def gpus_needed(n_params, bytes_per_param, gpu_gb):\n    return -(-n_params * bytes_per_param // (gpu_gb * 10**9))\n"
WRONG = "def gpus_needed(n_params, bytes_per_param, gpu_gb):\n    return 0\n"
CHECK = "gpus-needed-check"


@functools.cache
def grader() -> Grader:
    """One warm grader at the best level of this machine, for all tests of this process."""
    made = Grader()
    made.open()
    atexit.register(made.close)
    return made


def level() -> int:
    """The level that this machine reaches; 0 for none."""
    try:
        return grader().level
    except GraderUnavailable:
        return 0


@functools.cache
def _start() -> str:
    path = REPOSITORY / "source" / "00_start_here" / "00_start_here.ipynb"
    return path.read_text(encoding="utf-8")


def start_page():
    """The instructor's start page: one exercise, one check of 2 points, nothing else that is slow."""
    notebook = nbformat.reads(_start(), as_version=4)
    notebook.cells = [cell for cell in notebook.cells if not re.match("explorer|table|environment", cell.id)]
    return notebook


def submission(master, answers: dict[str, str] | None = None):
    """What a student hands in: the printed edition with some answers (by name) in it."""
    notebook, answers = deepcopy(master), dict(answers or {})
    for cell in notebook.cells:
        role = own_role(cell)
        if role in ("answer", "essay"):
            cell.source = answers.pop(name_of(cell), handed_out(cell.source, role))
        elif role == "check":
            cell.source = cell.source.split("### BEGIN HIDDEN")[0]
    assert not answers
    return notebook


def graded(answer: str | None = None, limits: Limits = USUAL, seed: bytes | None = None, change=None):
    """The report on the start page with this answer."""
    master = start_page()
    handed = submission(master, {} if answer is None else {"gpus-needed-answer": answer})
    if change:
        handed = change(handed) or handed
    return grade(master, handed, limits, seed)


def both(kibibytes: str | None = None, row_means: str | None = None, limits: Limits = USUAL, change=None):
    """The report on the stand-in, two exercises with 3 and 4 + 1 points; None means the right answer."""
    master = stand_in()
    right = {name_of(cell): solution_of(cell) for cell in master.cells if own_role(cell) == "answer"}
    given = {"kibibytes-answer": kibibytes, "row-means-answer": row_means}
    handed = submission(master, right | {name: text for name, text in given.items() if text is not None})
    if change:
        handed = change(handed) or handed
    return grade(master, handed, limits)


def grade(master, handed, limits: Limits = USUAL, seed: bytes | None = None):
    """One grading with the shared grader, under these limits."""
    shared = grader()
    shared.limits = limits
    return shared.grade(master, handed, "ada", seed)


def points(report) -> dict[str, float | None]:
    """Points by check."""
    return {check.cell: check.points for check in report.checks}


def verdict(report, cell: str = CHECK):
    """The result of one check."""
    return next(check for check in report.checks if check.cell == cell)


def said(report) -> str:
    """All outputs of the graded notebook as text."""
    return json.dumps([cell.get("outputs") for cell in report.notebook.cells])
