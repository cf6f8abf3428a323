"""A batch: exact points, nothing twice, nothing stale, nothing lowered in silence, one writer."""

from __future__ import annotations

import datetime
import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import CLASS, RIGHT, STAND_IN, WRONG_ANSWER, StandIn, grade, handed_in, lay, lecturer  # noqa: E402

from grading.records import batch as batches  # noqa: E402
from grading.records.backup import database  # noqa: E402
from grading.records.lock import only_one  # noqa: E402
from grading.records.places import places_of  # noqa: E402

POINTS = {student: points for student, (_, points) in CLASS.items()}
NOTEBOOK = f"{STAND_IN}.ipynb"


@pytest.fixture(scope="module")
def graded_once(tmp_path_factory):
    """A course that was graded once; tests get a copy."""
    course = lecturer(tmp_path_factory.mktemp("graded"))
    outcome, _ = grade(course.root)
    assert scores(course) == POINTS and outcome.graded == len(CLASS)
    return course


@pytest.fixture
def course(graded_once, tmp_path):
    import shutil

    from kit.course import Course

    shutil.copytree(graded_once.folder, tmp_path / "copy", symlinks=True)
    copy = object.__new__(Course)
    copy.folder, copy.root, copy.exchange = tmp_path / "copy", tmp_path / "copy/course", tmp_path / "copy/exchange"
    return copy


def scores(course) -> dict[str, float]:
    """Student -> points by checks, as nbgrader's own gradebook says."""
    with course.gradebook() as book:
        found = {}
        for submission in book.assignment_submissions(STAND_IN):
            grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
            found[submission.student.id] = sum(grade.auto_score or 0 for grade in grades)
        return found


def grade_rows(course, student: str) -> dict[str, tuple]:
    """Cell -> (by machine, by hand, waits)."""
    with course.gradebook() as book:
        (notebook,) = book.find_submission(STAND_IN, student).notebooks
        return {row.name: (row.auto_score, row.manual_score, row.needs_manual_grade) for row in notebook.grades}


def mark(course, student: str, cell: str, points: float) -> None:
    """What Formgrader does when a person marks a cell."""
    with course.gradebook() as book:
        row = book.find_grade(cell, STAND_IN, STAND_IN, student)
        row.manual_score, row.needs_manual_grade = points, False
        book.find_submission(STAND_IN, student).notebooks[0].comments[0].manual_comment = "Well said."
        book.db.commit()


class Without(StandIn):
    """A grader with a corrected test: nobody passes the edge check."""

    def grade(self, *args, **more):
        report = super().grade(*args, **more)
        import dataclasses

        checks = tuple(
            dataclasses.replace(check, outcome="wrong", points=0.0) if check.cell.endswith("edge") else check
            for check in report.checks
        )
        return dataclasses.replace(report, checks=checks)


def regrade(course, **wish):
    """A run with another grader version, that takes the edge check's points."""
    from grading.records.batch import Wish, run_batch

    options = {"jobs": 2, "source": course.root / "inbox", "wait_s": 5} | wish
    return run_batch(places_of(course.root), Wish(STAND_IN, **options), Without, lambda text: None, version="2")


def test_a_second_run_grades_nothing_and_changes_nothing(course):
    before = (course.root / "grading/gradebook.db").read_bytes()
    outcome, _ = grade(course.root)
    assert outcome.graded == 0 and {line.state for line in outcome.lines.values()} == {"done"}
    assert (course.root / "grading/gradebook.db").read_bytes() == before


def test_an_unanswered_essay_has_no_points_and_another_waits(course):
    assert grade_rows(course, "ben")["row-means-why"] == (0, None, False)
    assert grade_rows(course, "ana")["row-means-why"] == (None, None, True)


def test_no_stale_score_and_no_orphan_after_a_resubmission(course):
    """Stock nbgrader keeps 8 of 8 in each of these; here the new version alone counts."""
    for content in (b"not json", handed_in({}), b""):
        lay(course, "ana", content)
        outcome, _ = grade(course.root)
        assert scores(course)["ana"] == 0 and outcome.graded == 1
    line = outcome.lines["ana"]
    assert "not a notebook" in "; ".join(line.review)
    lay(course, "ana", RIGHT)
    assert grade(course.root)[0].lines["ana"].state == "kept"  # its results are known from the first run
    assert scores(course) == POINTS


def test_a_regrade_waits_for_yes_and_manual_marks_stay(course):
    """C10 of the table of cases."""
    mark(course, "ana", "row-means-why", 2)
    mark(course, "cleo", "kibibytes-check", 1)
    outcome = regrade(course)
    held = {line.student: (line.before, line.got, line.changes) for line in outcome.held}
    assert held["ana"] == (8, 7, [("row-means-check-edge", 1, 0)]) and set(held) == {"ana", "cleo", "eve", "fay"}
    assert scores(course) == POINTS
    outcome = regrade(course, yes=True)
    assert outcome.graded == 0, "what was staged is not graded a second time"
    assert scores(course) == POINTS | {"ana": 7, "cleo": 4, "eve": 7, "fay": 4}
    assert grade_rows(course, "ana")["row-means-why"] == (None, 2, False)
    assert grade_rows(course, "cleo")["kibibytes-check"] == (0, 1, False)
    with course.gradebook() as book:
        assert book.find_submission(STAND_IN, "ana").notebooks[0].comments[0].manual_comment == "Well said."
    again = regrade(course, yes=True)
    assert not again.held and again.graded == 0


def test_a_fault_of_the_grader_is_no_score_and_has_no_time(course):
    place = lay(course, "gus", RIGHT)
    (place / "timestamp.txt").write_text("2026-02-01 10:00:00 UTC")
    outcome, _ = grade(course.root, lambda: StandIn(fail="gus"))
    assert "the grader could not decide" in outcome.lines["gus"].review[0]
    rows = grade_rows(course, "gus")
    assert rows["kibibytes-check"] == (None, None, True)
    with course.gradebook() as book:
        assert book.find_submission(STAND_IN, "gus").timestamp is None
    outcome, _ = grade(course.root)  # a fault is tried again
    assert outcome.graded == 1 and scores(course)["gus"] == 8
    with course.gradebook() as book:
        assert str(book.find_submission(STAND_IN, "gus").timestamp) == "2026-02-01 10:00:00"


def late_by_share(course, share: float) -> None:
    """Have nbgrader's configuration name a plug-in that takes a share of the score."""
    name = f"Share{round(100 * share)}"
    (course.root / f"{name.lower()}.py").write_text(
        f"from nbgrader.plugins import BasePlugin\n\nclass {name}(BasePlugin):\n"
        f"    def late_submission_penalty(self, student_id, score, total_seconds_late):\n        return score * {share}\n"
    )
    with open(course.root / "nbgrader_config.py", "a") as config:
        config.write(f"\nsys.path.insert(0, here)\nc.AssignLatePenalties.plugin_class = '{name.lower()}.{name}'\n")


def due(course, day: int) -> None:
    with course.gradebook() as book:
        book.update_or_create_assignment(STAND_IN, duedate=datetime.datetime(2026, 1, day))


def penalty(course, student: str) -> float | None:
    with course.gradebook() as book:
        return book.find_submission(STAND_IN, student).notebooks[0].late_submission_penalty


def hand_in_late(course, student: str, answers: dict = RIGHT) -> None:
    (lay(course, student, answers) / "timestamp.txt").write_text("2026-01-02 10:00:00 UTC")


def test_late_penalties_are_nbgraders(course):
    due(course, 1)
    late_by_share(course, 0.5)
    hand_in_late(course, "gus")
    grade(course.root)
    assert penalty(course, "gus") == 4 and scores(course)["gus"] == 8
    assert penalty(course, "ana") is None


def test_a_changed_due_date_extension_rule_or_mark_changes_the_penalty_and_runs_nothing(course):
    due(course, 1)
    late_by_share(course, 0.5)
    hand_in_late(course, "gus")
    hand_in_late(course, "hal", {})
    grade(course.root)

    def extend() -> None:
        with course.gradebook() as book:
            book.grant_extension(STAND_IN, "gus", days=5)

    steps = (
        (lambda: due(course, 3), None),
        (lambda: due(course, 1), 4),
        (lambda: late_by_share(course, 0.25), 2),
        (lambda: mark(course, "gus", "row-means-why", 2), 2.5),
        (extend, None),
    )
    for change, expected in steps:
        change()
        outcome, _ = grade(course.root)
        assert outcome.graded == 0 and outcome.penalties == ["gus"] and not outcome.held
        assert penalty(course, "gus") == expected
        before = (course.root / "grading/gradebook.db").read_bytes()
        assert grade(course.root)[0].penalties == []
        assert (course.root / "grading/gradebook.db").read_bytes() == before


def test_the_penalty_of_a_score_that_waits_is_that_of_the_score_that_is_there(course):
    late_by_share(course, 0.5)
    hand_in_late(course, "gus")
    grade(course.root)
    due(course, 1)
    outcome = regrade(course)
    assert "gus" in {line.student for line in outcome.held} and outcome.penalties == ["gus"]
    assert (scores(course)["gus"], penalty(course, "gus")) == (8, 4)
    regrade(course, yes=True)
    assert (scores(course)["gus"], penalty(course, "gus")) == (7, 3.5)


def test_a_notebook_under_another_name_and_none_at_all(course):
    """M11, M12: the released name wins, and the other notebook is named."""
    place = lay(course, "gus", RIGHT)
    (place / NOTEBOOK).rename(place / f"{STAND_IN} (1).ipynb")
    (lay(course, "hal", RIGHT) / NOTEBOOK).unlink()
    (course.root / "inbox/hal/notes.txt").write_text("sorry")
    (lay(course, "ida", RIGHT) / "draft.ipynb").write_bytes(handed_in({}))
    outcome, _ = grade(course.root)
    assert scores(course)["ida"] == 8 and "not graded: draft.ipynb" in outcome.lines["ida"].told[0]
    assert scores(course)["gus"] == 8 and "was taken for" in outcome.lines["gus"].told[0]
    assert (
        scores(course)["hal"] == 0 and "is not in the submission, which has notes.txt" in outcome.lines["hal"].review[0]
    )
    shown = nbformat.read(course.root / "grading/autograded/hal" / STAND_IN / NOTEBOOK, as_version=4)
    assert "Not graded" in shown.cells[0].source


def test_checks_that_were_changed_are_named_and_ours_ran(course):
    """Only where the text is neither the one in source/ nor the one that the gradebook has, which was handed out."""
    assert all(not line.told for line in grade(course.root)[0].lines.values())
    forged = nbformat.reads(handed_in(RIGHT | {"kibibytes-answer": WRONG_ANSWER}).decode(), as_version=4)
    corrected = nbformat.reads(handed_in(RIGHT).decode(), as_version=4)
    spaced = nbformat.reads(handed_in(RIGHT).decode(), as_version=4)
    master = course.source(STAND_IN)[STAND_IN]
    texts = ((forged, "pass"), (corrected, "assert True"), (master, "assert True"), (spaced, None))
    for notebook, text in texts:
        for cell in notebook.cells:
            if cell.id == "kibibytes-check":
                cell.source = text or cell.source + "  \n\n"
    nbformat.write(master, course.root / "source" / STAND_IN / NOTEBOOK)
    for student, notebook in (("gus", forged), ("hal", corrected), ("ida", spaced)):
        lay(course, student, nbformat.writes(notebook).encode())
    outcome, _ = grade(course.root)
    told = ["Checks with other text than the assignment's: kibibytes-check. The assignment's own ran."]
    assert [outcome.lines[name].told for name in ("gus", "hal", "ida")] == [told, [], []]
    assert scores(course)["gus"] == 5


def test_a_course_that_stock_nbgrader_left_half_graded(tmp_path):
    """Rows without scores, scores that are too high, autograded folders without a row: one run puts all right."""
    course = lecturer(tmp_path)
    places = places_of(course.root)
    from grading.records.register import save

    save(places, STAND_IN, course.source(STAND_IN))
    with course.gradebook() as book:
        for student in ("ana", "ben", "zoe"):
            book.add_student(student)
            book.add_submission(STAND_IN, student, timestamp="2026-01-01 10:00:00 UTC")
        for row in book.find_submission(STAND_IN, "ben").notebooks[0].grades:
            row.auto_score, row.needs_manual_grade = row.max_score, False
        book.db.commit()
    half = course.root / "grading/autograded/cleo" / STAND_IN
    half.mkdir(parents=True)
    (half / NOTEBOOK).write_text("{")
    outcome, _ = grade(course.root)
    assert [line.student for line in outcome.held] == ["ben"] and "no submission was found" in outcome.lines[
        "zoe"
    ].review[0]
    outcome, _ = grade(course.root, yes=True)
    assert {student: points for student, points in scores(course).items() if student != "zoe"} == POINTS
    assert nbformat.read(half / NOTEBOOK, as_version=4).cells and not outcome.held


def test_the_gradebook_has_other_cells_than_the_source(course):
    notebook = course.source(STAND_IN)[STAND_IN]
    for cell in notebook.cells:
        if cell.id == "kibibytes-check":
            cell.metadata.nbgrader.points = 5
    nbformat.write(notebook, course.root / "source" / STAND_IN / NOTEBOOK)
    with pytest.raises(ValueError, match="other cells or points than source/ .kibibytes-check."):
        grade(course.root)
    with pytest.raises(ValueError, match="assignments are ps00_stand_in"):
        places_of(course.root).masters("ps99")


def hold_lock(course, seconds: float) -> threading.Thread:
    """Another program that has the database for some time."""
    ready = threading.Event()

    def hold():
        connection = sqlite3.connect(database(places_of(course.root)))
        connection.execute("BEGIN EXCLUSIVE")
        ready.set()
        time.sleep(seconds)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    return thread


def test_a_locked_gradebook_is_waited_for(course, monkeypatch):
    """C03 of the table of cases."""
    lay(course, "gus", RIGHT)
    monkeypatch.setattr(batches, "back_up", lambda places: None)  # the copy would wait too
    thread = hold_lock(course, 4)  # longer than SQLite itself waits
    outcome, said = grade(course.root, wait_s=60)
    thread.join()
    assert any("locked by another program" in text for text in said)
    assert scores(course)["gus"] == 8 and not outcome.failed


def test_a_gradebook_that_stays_locked_costs_no_result(course, monkeypatch):
    lay(course, "gus", RIGHT)
    real = batches.Ledger.patiently
    monkeypatch.setattr(batches.Ledger, "patiently", lambda self, work: refuse(self, work, real))
    outcome, _ = grade(course.root)
    assert [line.student for line in outcome.failed] == ["gus"] and "gus" not in scores(course)
    monkeypatch.setattr(batches.Ledger, "patiently", real)
    outcome, _ = grade(course.root)
    assert outcome.graded == 0 and scores(course)["gus"] == 8, "it was staged, so it is not graded again"


def refuse(ledger, work, real):
    import sqlalchemy.exc

    if work.__qualname__.startswith("Ledger.write"):
        raise sqlalchemy.exc.OperationalError("", {}, sqlite3.OperationalError("database is locked"))
    return real(ledger, work)


def test_two_graders_at_once(course):
    """The second one says who is at work and touches nothing."""
    lock = course.root / "grading/staging" / f"{STAND_IN}.lock"
    program = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path; from records_kit import grade\n"
        "try:\n    grade(Path(sys.argv[1]))\nexcept ValueError as error:\n    print(error); sys.exit(7)"
    )
    with only_one(lock, STAND_IN):
        done = subprocess.run(
            [sys.executable, "-c", program, str(course.root), str(Path(__file__).parent)],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 7, done.stderr
    assert f"{STAND_IN} is being graded by process {os.getpid()} on " in done.stdout
    grade(course.root)  # the lock went with its holder


def test_a_clock_that_jumps_back(course, monkeypatch):
    """C13: Order is kept by numbers: an hour back in the middle changes neither the newest version nor the newest row."""
    lay(course, "ana", RIGHT | {"kibibytes-answer": WRONG_ANSWER})
    real_time, real_gmtime = time.time, time.gmtime
    monkeypatch.setattr(time, "time", lambda: real_time() - 3600)
    monkeypatch.setattr(time, "gmtime", lambda seconds=None: real_gmtime(real_time() - 3600))
    monkeypatch.setattr("grading.records.collect.now", lambda: "2001-01-01T00:00:00+00:00")
    outcome, _ = grade(course.root)
    assert outcome.lines["ana"].state == "graded" and scores(course)["ana"] == 5
    names = [path.name for path in sorted((course.root / "grading/backups").glob("*.db"))]
    monkeypatch.undo()
    grade(course.root)
    assert scores(course)["ana"] == 5
    assert [path.name for path in sorted((course.root / "grading/backups").glob("*.db"))][: len(names)] == names


def test_a_newer_version_while_an_older_one_is_graded(course):
    """C05: What is graded is the version that was collected; the newer one is for the next run."""
    lay(course, "ana", {})

    class Meanwhile(StandIn):
        def grade(self, *args, **more):
            lay(course, "ana", RIGHT | {"row-means-answer": "pass"})
            return super().grade(*args, **more)

    grade(course.root, Meanwhile)
    assert scores(course)["ana"] == 0
    grade(course.root)
    assert scores(course)["ana"] == 3


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk(course, tmp_path):
    """C07: The run ends with the system's sentence, publishes nothing that is half, and goes on when there is room."""
    grading, disk = course.root / "grading", tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this system does not let root mount a tmpfs")
    import shutil

    try:
        shutil.copytree(grading, disk / "grading", symlinks=True)
        shutil.rmtree(grading)
        grading.symlink_to(disk / "grading", target_is_directory=True)
        for number in range(40):
            lay(course, f"student{number}", RIGHT | {"kibibytes-answer": f"# {number}\n" + "#" * 20_000})
        try:
            outcome, _ = grade(course.root)
            assert outcome.failed
        except OSError as error:
            assert "No space left" in str(error)
        whole(course)
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        outcome, _ = grade(course.root)
        assert len(outcome.lines) == 46 and not outcome.failed
        whole(course)
        assert scores(course) == POINTS | {f"student{number}": 5 for number in range(40)}
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def whole(course) -> None:
    """Each row of the ledger has its scores, and each folder that is published is one of a row."""
    import json

    with sqlite3.connect(course.root / "grading/gradebook.db") as book:
        assert book.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = book.execute("SELECT student, results FROM mlsys_done ORDER BY id").fetchall()
        submissions = {name for (name,) in book.execute("SELECT student_id FROM submitted_assignment")}
    last = {student: json.loads(results) for student, results in rows}
    assert set(last) == submissions, "a submission without its row, or a row without its submission"
    for student, points in scores(course).items():
        assert points == sum(check["points"] for result in last[student].values() for check in result["checks"])
    for path in (course.root / "grading/autograded").glob(f"*/{STAND_IN}/*.ipynb"):
        nbformat.read(path, as_version=4)
        assert path.parent.parent.name in last
