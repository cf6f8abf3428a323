"""A class with submissions for the tests of grading/records, and a grader that needs no sandbox.

The stand-in never runs student code: it compares the text of an answer with the solution. Its records have the form
of sealed grading, so what is tested is everything around it. Run as a program it is a server that forks one grading run
for each line of its input: a test can kill hundreds of runs without waiting for imports.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "browser")]

import nbformat  # noqa: E402
import nbgrader.api  # noqa: E402
from kit.course import STAND_IN, Course, solution_of, stand_in  # noqa: E402

from grading.records.batch import Wish, run_batch  # noqa: E402
from grading.records.places import places_of  # noqa: E402
from grading.sealed.report import NOT_ATTEMPTED, PASS, WRONG, CheckResult, Report  # noqa: E402

# Each new gradebook starts the program `alembic` to ask for one number; here it is asked once.
nbgrader.api.get_alembic_version = functools.cache(nbgrader.api.get_alembic_version)
WRONG_ANSWER = "def kibibytes(n, itemsize):\n    return n * itemsize / 1000"


class StandIn:
    """Right if an answer's text is the solution's. log: a file that gets a line for each grading; sleep_s: how long one takes."""

    def __init__(self, log: Path | None = None, sleep_s: float = 0.0, fail: str = ""):
        self.log, self.sleep_s, self.fail = log, sleep_s, fail

    def __enter__(self):
        return self

    def close(self):
        pass

    def grade(self, master, submission, student, seed=None):
        if student == self.fail:
            raise RuntimeError("the server is gone")
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{student}\n")
        time.sleep(self.sleep_s)
        try:
            handed = nbformat.reads(Path(submission).read_text(encoding="utf-8"), as_version=4)
            cells = {cell.get("id"): cell.source for cell in handed.cells}
            problem = ""
        except Exception as error:
            cells, problem = {}, f"not a notebook: {type(error).__name__}"
        notebook, checks = copy.deepcopy(master), []
        right = {cell.id: solution_of(cell).strip() for cell in master.cells}
        for cell in notebook.cells:
            entry = cell.metadata.get("nbgrader", {})
            if entry.get("solution"):
                cell.source = cells.get(cell.id, "")
            if entry.get("grade") and cell.cell_type == "code":
                answer = cell.id.partition("-check")[0] + "-answer"
                got = cells.get(answer, "").strip()
                outcome = (
                    PASS
                    if got == right[answer]
                    else NOT_ATTEMPTED
                    if "NotImplementedError" in got or not got
                    else WRONG
                )
                points = float(entry["points"])
                checks.append(CheckResult(cell.id, outcome, points if outcome == PASS else 0.0, points, outcome))
        return Report(
            student, tuple(checks), (), 3, "", "", "stand-in", seed.hex() if seed else None, {}, 0.01, problem, notebook
        )  # fmt: skip


def handed_in(answers: dict[str, str]) -> bytes:
    """The stand-in assignment as a student hands it in; what is not in `answers` is as printed."""
    notebook = stand_in()
    for cell in notebook.cells:
        entry = cell.metadata.get("nbgrader", {})
        if entry.get("solution"):
            stub = (
                "raise NotImplementedError()" if cell.cell_type == "code" else "*Replace this line with your answer.*"
            )
            cell.source = answers.get(cell.id, stub)
        elif entry.get("grade"):
            cell.source = cell.source.partition("### BEGIN HIDDEN")[0].strip()
    return nbformat.writes(notebook).encode()


RIGHT = {cell.id: solution_of(cell) for cell in stand_in().cells if cell.metadata.get("nbgrader", {}).get("solution")}
CLASS = {  # student -> answers, and the points of the checks
    "ana": (RIGHT, 8),
    "ben": ({}, 0),
    "cleo": (RIGHT | {"kibibytes-answer": WRONG_ANSWER}, 5),
    "dan": ({"kibibytes-answer": RIGHT["kibibytes-answer"]}, 3),
    "eve": (RIGHT, 8),
    "fay": ({"row-means-answer": RIGHT["row-means-answer"]}, 5),
}


def lecturer(folder: Path) -> Course:
    """A course whose class has handed in, in a folder `inbox` of the lecturer's."""
    course = Course(folder)
    course.add_source(STAND_IN, {STAND_IN: stand_in()})
    for student, (answers, _) in CLASS.items():
        lay(course, student, answers)
    return course


def lay(course: Course, student: str, answers: dict[str, str] | bytes) -> Path:
    """Put a submission into the inbox."""
    place = course.root / "inbox" / student
    place.mkdir(parents=True, exist_ok=True)
    content = answers if isinstance(answers, bytes) else handed_in(answers)
    (place / f"{STAND_IN}.ipynb").write_bytes(content)
    return place


def grade(root: Path, make=StandIn, after=lambda batch: None, **wish):
    """A batch over the inbox of a course; its outcome, and what was said."""
    said: list[str] = []
    options = {"jobs": 2, "source": root / "inbox", "wait_s": 5} | wish
    outcome = run_batch(places_of(root), Wish(STAND_IN, **options), make, said.append, version="1", after=after)
    return outcome, said


def main() -> None:
    """One line `ROOT`: fork a run in a process group of its own, print its process, then how it ended."""
    for line in sys.stdin:
        root = Path(line.strip())
        child = os.fork()
        if child == 0:
            os.setsid()
            os.chdir(root)
            try:
                grade(root, lambda root=root: StandIn(root / "graded.log", 0.15))
                os._exit(0)
            except BaseException as error:
                print(json.dumps(repr(error)), file=sys.stderr)
                os._exit(1)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    main()
