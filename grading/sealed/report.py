"""What sealed grading says about a submission: one record a check cell, and the graded notebook.

An outcome is never blank. A fault of the grader has no points at all (None, not 0), so nobody can
take it for a score.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

PASS = "pass"
WRONG = "wrong"
ERROR = "error in your code"
LIMIT = "limit reached"
NOT_ATTEMPTED = "not attempted"
FAULT = "grader fault (needs review)"
OUTCOMES = (PASS, WRONG, ERROR, LIMIT, NOT_ATTEMPTED, FAULT)


@dataclass(frozen=True)
class CheckResult:
    """One check cell."""

    cell: str  # its grade_id
    outcome: str  # one of OUTCOMES
    points: float | None  # None for a fault of the grader
    max_points: float
    message: str = ""  # what the student may read
    hidden: bool = False  # whether it failed in the part that students do not see
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """One notebook of one student. Equal submission, tests, version, seed and limits give equal points."""

    student: str
    checks: tuple[CheckResult, ...]
    repairs: tuple[str, ...]  # sentences: what was put right before grading
    level: int  # isolation: 4, 3, 2 or 1
    submission_hash: str  # SHA-256 of the file as it came
    master_hash: str  # SHA-256 of the tests' notebook
    version: str  # of this grader
    seed: str | None  # hexadecimal
    limits: dict
    seconds: float
    problem: str = ""  # why nothing could be read, as a sentence; "" if the file is a notebook
    notebook: NotebookNode | None = field(default=None, repr=False, compare=False)  # the autograded one

    @property
    def score(self) -> float:
        """Points of all checks that have some."""
        return sum(check.points or 0.0 for check in self.checks)

    @property
    def max_score(self) -> float:
        return sum(check.max_points for check in self.checks)

    @property
    def faults(self) -> tuple[str, ...]:
        """Cells that a person has to look at."""
        return tuple(check.cell for check in self.checks if check.outcome == FAULT)
