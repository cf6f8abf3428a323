"""Kill a run at any moment: no half state, and the next run finishes it without grading anything twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import CLASS, STAND_IN, StandIn, grade, lecturer  # noqa: E402

KILLS = int(os.environ.get("MLSYS_KILLS", "15"))
POINTS = {student: points for student, (_, points) in CLASS.items()}
pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="needs process groups"), pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A process that has imported everything and forks a run for each line."""
    command = [sys.executable, str(Path(__file__).parent / "records_kit.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    yield process
    process.stdin.close()
    process.wait(timeout=30)


def run(server, root: Path, kill_at: tuple[int, float] | None) -> bool:
    """One grading run; whether it was killed.

    kill_at: kill its whole group when so many gradings have begun and some seconds have passed since.
    """
    server.stdin.write(f"{root}\n")
    server.stdin.flush()
    child = int(server.stdout.readline())
    if kill_at and not ended(server, kill_at, root / "graded.log"):
        with contextlib.suppress(ProcessLookupError):
            try:
                os.killpg(child, signal.SIGKILL)
            except ProcessLookupError:  # not yet a group of its own
                os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(int(server.stdout.readline()))


def ended(server, kill_at: tuple[int, float], log: Path) -> bool:
    """Wait for the moment to kill; whether the run came to its end before."""
    begun, more_s = kill_at
    before = log.read_text().count("\n") if log.exists() else 0
    while (log.read_text().count("\n") if log.exists() else 0) < before + begun:
        if select.select([server.stdout], [], [], 0.002)[0]:
            return True
    return bool(select.select([server.stdout], [], [], more_s)[0])


def state(root: Path) -> tuple[dict[str, float], list[tuple[str, str]]]:
    """Student -> points in the gradebook, and (student, key) of each row; nothing if there is no gradebook yet."""
    with sqlite3.connect(root / "grading/gradebook.db") as book:
        assert book.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        tables = {name for (name,) in book.execute("SELECT name FROM sqlite_master")}
        if "mlsys_done" not in tables:
            return {}, []
        rows = book.execute("SELECT student, key, again, results FROM mlsys_done ORDER BY id").fetchall()
        points = dict(
            book.execute(
                "SELECT s.student_id, sum(coalesce(g.auto_score, 0)) FROM submitted_assignment s"
                " LEFT JOIN submitted_notebook n ON n.assignment_id = s.id LEFT JOIN grade g ON g.notebook_id = n.id"
                " GROUP BY s.student_id"
            )
        )
    assert set(points) == {student for student, *_ in rows}, "scores without a row, or a row without scores"
    for student, _, _, results in rows:
        said = sum(check["points"] for result in json.loads(results).values() for check in result["checks"])
        assert points[student] == said == POINTS[student]
    return points, [(student, key) for student, key, again, _ in rows if again is None]


def published(root: Path) -> set[str]:
    """Students with an autograded notebook; each one can be read."""
    paths = list((root / "grading/autograded").glob(f"*/{STAND_IN}/*.ipynb"))
    for path in paths:
        assert nbformat.read(path, as_version=4).cells
    return {path.parent.parent.name for path in paths}


def with_gradebook(folder: Path):
    """A course whose gradebook is there and empty: making one takes longer than all that is tested here."""
    course = lecturer(folder)
    shutil.move(course.root / "inbox", folder / "inbox")
    (course.root / "inbox").mkdir()
    grade(course.root)
    shutil.rmtree(course.root / "inbox")
    shutil.move(folder / "inbox", course.root / "inbox")
    return course


def test_killed_at_random_moments(server, tmp_path):
    """C01, C06 of the table of cases."""
    course = with_gradebook(tmp_path / "first")
    shutil.copytree(course.root, tmp_path / "timing")
    assert not run(server, tmp_path / "timing", None) and state(tmp_path / "timing")[0] == POINTS
    chance, interrupted, early = random.Random(20260201), 0, Counter()
    for number in range(KILLS):
        root = tmp_path / f"run{number}" / "course"
        shutil.copytree(course.root, root)
        interrupted += run(server, root, (chance.randint(0, len(CLASS)), chance.uniform(0, 0.4)))
        before = state(root)[1] if (root / "grading/gradebook.db").is_file() else []
        assert published(root) <= {student for student, _ in before}, "published before it was written"
        early[len(before)] += 1
        log = root / "graded.log"
        outcome, _ = grade(root, lambda log=log: StandIn(log))
        points, keys = state(root)
        assert points == POINTS and published(root) == set(POINTS)
        assert len(keys) == len(set(keys)) == len(CLASS), "a submission was graded and written twice"
        assert sum(line.state == "done" for line in outcome.lines.values()) == len(before), (
            "a written one was done again"
        )
        assert outcome.graded <= len(CLASS) - len(before)
        again, _ = grade(root)
        assert again.graded == 0 and {line.state for line in again.lines.values()} == {"done"}
        left = [
            path for path in (root / "grading/staging").iterdir() if path.name not in (".gitignore", f"{STAND_IN}.lock")
        ]
        assert [path.name for path in left] == ["results"] and not list(left[0].rglob("*.json"))
        shutil.rmtree(root.parent)
    assert interrupted >= KILLS // 3, f"only {interrupted} of {KILLS} kills came before the end"
    by_then = ", ".join(f"{number} written: {times}" for number, times in sorted(early.items()))
    print(f"{interrupted} of {KILLS} kills hit a running batch ({by_then})")


def test_killed_again_and_again_it_still_comes_to_its_end(server, tmp_path):
    """One course, killed over and over: each run goes on from what is there."""
    course = with_gradebook(tmp_path)
    chance, written = random.Random(7), 0
    for _ in range(40):
        killed = run(server, course.root, (1, chance.uniform(0, 0.1)))
        if (course.root / "grading/gradebook.db").is_file():
            now = len(state(course.root)[1])
            assert now >= written, "a row was lost"
            written = now
        if not killed:
            break
    grade(course.root)
    assert state(course.root)[0] == POINTS
