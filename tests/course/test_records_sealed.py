"""The command with the real sealed grader: points, level, feedback, and nothing left after a kill."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import RIGHT, STAND_IN, WRONG_ANSWER, Course, handed_in, lay, stand_in  # noqa: E402

from grading.sealed.execute import Grader, GraderUnavailable  # noqa: E402

pytestmark = pytest.mark.slow
POINTS = {"ana": 8, "ben": 0, "cleo": 5, "hostile": 5, "broken": 0, "forged": 5}


@pytest.fixture(scope="module")
def has_sandbox():
    try:
        with Grader() as grader:
            return grader.level
    except (GraderUnavailable, NotImplementedError) as error:
        pytest.skip(f"no sandbox on this machine: {error}")


@pytest.fixture
def course(has_sandbox, tmp_path):
    course = Course(tmp_path)
    course.add_source(STAND_IN, {STAND_IN: stand_in()})
    lay(course, "ana", RIGHT)
    lay(course, "ben", {})
    lay(course, "cleo", RIGHT | {"kibibytes-answer": WRONG_ANSWER})
    lay(course, "hostile", RIGHT | {"kibibytes-answer": "import os\nos._exit(0)"})
    lay(course, "broken", b"[" * 100_000)
    forged = nbformat.reads(handed_in(RIGHT | {"kibibytes-answer": WRONG_ANSWER}).decode(), as_version=4)
    next(cell for cell in forged.cells if cell.id == "kibibytes-check").source = "pass"
    lay(course, "forged", nbformat.writes(forged).encode())
    return course


def start(course) -> subprocess.Popen:
    command = [sys.executable, "-m", "grading", "grade", STAND_IN, "--from", "inbox", "--jobs", "2"]
    return subprocess.Popen(
        command, cwd=course.root, env=course.environment(course.root), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def rows(course) -> dict[str, tuple[float, int | None]]:
    """Student -> points and level of isolation, from the ledger."""
    with sqlite3.connect(course.root / "grading/gradebook.db") as book:
        found = book.execute("SELECT student, results FROM mlsys_done ORDER BY id").fetchall()
    results = {student: json.loads(text)[STAND_IN] for student, text in found}
    return {
        student: (sum(check["points"] for check in result["checks"]), result["level"])
        for student, result in results.items()
    }


def family(pid: int) -> set[int]:
    """A process and all below it."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
    found, grown = {pid}, True
    while grown:
        more = {child for child, parent in parents.items() if parent in found} - found
        found, grown = found | more, bool(more)
    return found


def test_a_class_through_the_sandbox(course, has_sandbox):
    process = start(course)
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    found = rows(course)
    assert {student: points for student, (points, _) in found.items()} == POINTS, said
    assert {level for student, (_, level) in found.items() if student != "broken"} == {has_sandbox}
    page = (course.root / f"grading/feedback/cleo/{STAND_IN}/{STAND_IN}.html").read_text(encoding="utf-8")
    assert "gave" in page and "expected 2" in page and "kibibytes(0, 8)" not in page and str(course.root) not in page
    assert "needs review" in said and "ubmit it again" not in said, "the table speaks to the lecturer"
    told = " ".join(said.split())  # however it is broken into lines
    assert "new The file" in told and "forged: Checks with other text than the assignment's: kibibytes-check" in told


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_killed_in_the_sandbox_nothing_stays_behind_and_the_next_run_ends_it(course):
    process = start(course)
    log = course.root / "grading/store/objects"
    while not (len(list(log.glob("*/*"))) > len(POINTS) or process.poll() is not None):
        time.sleep(0.02)  # the first autograded notebook is kept: the batch is in the middle
    below = family(process.pid) - {process.pid}
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    end = time.monotonic() + 20
    while (left := {pid for pid in below if Path(f"/proc/{pid}").exists()}) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left, f"processes {left} outlived the grader"
    process = start(course)
    said, _ = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert {student: points for student, (points, _) in rows(course).items()} == POINTS
