"""nbgrader from release to grades: by command line, and with an assignment of each kind.

Three students hand in: one with the instructor's answers, one with nothing written, one with
a known mistake. Their points are exact, and the feedback names the mistake.
"""

from __future__ import annotations

import csv
import getpass
import html
import re
import sys
from pathlib import Path

import nbformat
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "browser"))

from kit.course import STAND_IN, Course, answered, solution_of, stand_in  # noqa: E402

from grading.answers import read_answers  # noqa: E402
from grading.cells import exercise_of, role_of  # noqa: E402
from mlsys.check import hint_text  # noqa: E402

pytestmark = [
    pytest.mark.nbgrader,
    pytest.mark.skipif(sys.platform == "win32", reason="nbgrader's exchange needs POSIX file permissions"),
]
# One of each kind goes through nbgrader's whole loop; test_sealed_honest.py grades every notebook.
ASSIGNMENTS = ("00_start_here", "03_gpu_architecture", "ps01_foundations")
DECIMAL = "def kibibytes(n, itemsize):\n    return n * itemsize / 1000"


def opened(folder: Path):
    """A course in a folder; this process and its kernels see our `mlsys` and nobody's settings."""
    course = Course(folder)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in course.environment(course.root).items():
            patch.setenv(name, value)
        yield course


@pytest.fixture
def empty_course(tmp_path):
    """A course without assignments."""
    yield from opened(tmp_path)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course that has released the stand-in, shared by the tests of this file."""
    for fresh in opened(tmp_path_factory.mktemp("course")):
        fresh.add_source(STAND_IN, {STAND_IN: stand_in()})
        fresh.do("generate_assignment", STAND_IN)
        fresh.do("release_assignment", STAND_IN)
        yield fresh


def right_answers(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """grade_id -> source of every answer and essay as the instructor wrote it."""
    return {cell.id: solution_of(cell) for cell in notebook.cells if role_of(cell) in ("answer", "essay")}


def points(notebooks, *roles: str) -> float:
    """Points of the cells with these roles."""
    return sum(c.metadata.nbgrader.points for nb in notebooks for c in nb.cells if role_of(c) in roles)


def grades(course: Course, assignment: str, student: str) -> dict[tuple[str, str], tuple[float, float]]:
    """(notebook, cell) -> (score, points) as the gradebook has it."""
    with course.gradebook() as book:
        submission = book.find_submission(assignment, student)
        return {(nb.name, g.name): (g.score, g.max_score) for nb in submission.notebooks for g in nb.grades}


def score(course: Course, assignment: str, student: str) -> float:
    """All points of one submission."""
    return sum(got for got, _ in grades(course, assignment, student).values())


def plain_text(page: Path) -> str:
    """What a feedback page says, without its tags."""
    body = re.sub(r"(?s)<(style|script).*?</\1>", "", page.read_text(encoding="utf-8"))
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", body)).split())


def grade_essay(course: Course, assignment: str, student: str, cell: str, given: float) -> None:
    """What the lecturer does in Formgrader's page for essays."""
    with course.gradebook() as book:
        grade = book.find_grade(cell, assignment, assignment, student)
        grade.manual_score, grade.needs_manual_grade = given, False
        book.db.commit()


@pytest.mark.slow
def test_the_loop_by_command_line(empty_course):
    """generate, release, fetch, validate, submit, collect, autograde, feedback, export as commands."""
    course = empty_course
    me = getpass.getuser()
    course.add_source(STAND_IN, {STAND_IN: stand_in()})
    course.command("generate_assignment", STAND_IN)
    course.command("release_assignment", STAND_IN)

    here = course.student(me)
    course.command("fetch_assignment", STAND_IN, person=here)
    (notebook,) = course.work_of(me, STAND_IN)
    assert "BEGIN" not in notebook.read_text(encoding="utf-8"), "a student can read solutions or hidden tests"
    said = course.command("validate", str(notebook), person=here)
    assert "VALIDATION FAILED ON 4 CELL(S)" in said and "kibibytes is not written yet." in said
    right = right_answers(stand_in())
    nbformat.write(answered(nbformat.read(notebook, as_version=4), right), notebook)
    course.command("submit", STAND_IN, person=here)
    course.hand_in("stub", STAND_IN, {})
    course.hand_in("mistaken", STAND_IN, {STAND_IN: right | {"kibibytes-answer": DECIMAL}})

    course.command("collect", STAND_IN)
    course.command("autograde", STAND_IN)
    students = (me, "stub", "mistaken")
    assert [score(course, STAND_IN, student) for student in students] == [8, 0, 5]
    grade_essay(course, STAND_IN, me, "row-means-why", 2)
    grade_essay(course, STAND_IN, "mistaken", "row-means-why", 1)
    assert [score(course, STAND_IN, student) for student in students] == [10, 0, 6]

    course.command("generate_feedback", STAND_IN)
    course.command("release_feedback", STAND_IN)
    course.command("fetch_feedback", STAND_IN, person=here)
    course.exchange_step("FetchFeedback", "mistaken", STAND_IN)
    (mine,) = notebook.parent.glob("feedback/*/*.html")
    assert "(Score: 10 / 10)" in plain_text(mine)
    (theirs,) = course.work_of("mistaken", STAND_IN)[0].parent.glob("feedback/*/*.html")
    assert "kibibytes(1024, 2) gave 2.048, expected 2." in plain_text(theirs)

    course.command("export")
    with open(course.root / "grades.csv", newline="", encoding="utf-8") as file:
        rows = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    assert rows == {me: (10, 10), "stub": (0, 10), "mistaken": (6, 10)}


def known_mistake(notebooks: dict) -> tuple[str, str, str, str] | None:
    """Notebook, answer cell, wrong source and hint name of the first wrong version beside an assignment."""
    for name in notebooks:
        path = REPOSITORY / "tests" / "answers" / f"{name}.py"
        for version in read_answers(path) if path.is_file() else ():
            if version.kind == "wrong":
                return name, f"{version.exercise}-answer", version.source, version.name
    return None


@pytest.mark.slow
@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_an_assignment_grades_exactly(course, assignment):
    """Full points for the instructor's answers, 0 for the stub, and the mistake's own points lost."""
    sources = {p.stem: nbformat.read(p, as_version=4) for p in (REPOSITORY / "source" / assignment).glob("*.ipynb")}
    if not points(sources.values(), "check", "essay"):
        pytest.fail(f"source/{assignment} has no points to give")
    course.add_source(assignment, sources)
    course.do("generate_assignment", assignment)
    course.do("release_assignment", assignment)
    right = {name: right_answers(notebook) for name, notebook in sources.items()}
    course.hand_in("right", assignment, right)
    course.hand_in("stub", assignment, {})
    students = ["right", "stub"]
    mistake = known_mistake(sources)
    if mistake:
        name, cell, source, hint = mistake
        course.hand_in("mistaken", assignment, right | {name: right[name] | {cell: source}})
        students.append("mistaken")
    course.do("collect", assignment)
    for student in students:
        course.do("autograde", assignment, student)

    assert score(course, assignment, "right") == points(sources.values(), "check"), grades(course, assignment, "right")
    assert score(course, assignment, "stub") == 0, grades(course, assignment, "stub")
    if mistake:
        full, got = grades(course, assignment, "right"), grades(course, assignment, "mistaken")
        lost = {key for key in full if got[key] != full[key]}
        assert lost and {(nb, exercise_of(check)) for nb, check in lost} == {(name, exercise_of(cell))}, lost
        course.do("generate_feedback", assignment, "mistaken")
        page = course.path_of("feedback", "mistaken", assignment) / f"{name}.html"
        assert " ".join(hint_text(hint).split()) in plain_text(page)


def without(*names: str):
    """A change that deletes the cells with these names."""

    def change(notebook):
        notebook.cells = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") not in names]

    return change


def unmarked(notebook) -> None:
    """A change that loses nbgrader's marks and nothing else, as some editors do."""
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)


@pytest.mark.parametrize(
    "student, change, left, lost",
    [
        ("check", without("row-means-check"), 8, "row-means-check"),
        ("answer", without("kibibytes-answer"), 5, "kibibytes-answer"),
        ("exercise", without("row-means-answer", "row-means-check", "row-means-check-edge"), 3, "row-means-answer"),
        ("given", without("kibibytes-task", "kibibytes-given"), 8, "kibibytes-given"),
        ("marks", unmarked, 8, "kibibytes-check"),
    ],
    ids=["check", "answer", "exercise", "given", "marks"],
)
def test_lost_cells_come_back_with_a_sentence(course, student, change, left, lost):
    """A submission without some cells is graded on what it has; log and feedback say what to do."""
    course.exchange_step("FetchAssignment", student, STAND_IN)
    (path,) = course.work_of(student, STAND_IN)
    notebook = answered(nbformat.read(path, as_version=4), right_answers(stand_in()))
    change(notebook)
    nbformat.write(notebook, path)
    before = path.read_bytes()
    course.exchange_step("Submit", student, STAND_IN)
    course.do("collect", STAND_IN)
    log = course.do("autograde", STAND_IN, student)

    assert path.read_bytes() == before, "the student's own file was changed"
    assert (course.path_of("submitted", student, STAND_IN) / path.name).read_bytes() == before
    assert score(course, STAND_IN, student) == left
    course.do("generate_feedback", STAND_IN, student)
    for text in (log, plain_text(course.path_of("feedback", student, STAND_IN) / f"{STAND_IN}.html")):
        assert "came without" in text and lost in text and "get the assignment afresh" in text
