"""Sealed execution inside nbgrader: scores, feedback and manual marks as ever, and nothing stale or silent."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sealed_kit import STAND_IN, Course, level, solution_of, stand_in, submission  # noqa: E402

from grading.cells import role_of  # noqa: E402
from grading.records.feedback import hidden_lines  # noqa: E402
from grading.records.store import Store  # noqa: E402
from grading.sealed.execute import Grader  # noqa: E402

pytestmark = [
    pytest.mark.nbgrader,
    pytest.mark.slow,
    pytest.mark.skipif(level() < 2, reason="no isolation level holds on this machine"),
]
RIGHT = {cell.id: solution_of(cell) for cell in stand_in().cells if role_of(cell) in ("answer", "essay")}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A released stand-in, graded by the course's own settings."""
    course = Course(tmp_path_factory.mktemp("course"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in course.environment(course.root).items():
            patch.setenv(name, value)
        course.add_source(STAND_IN, {STAND_IN: stand_in()})
        course.do("generate_assignment", STAND_IN)
        course.do("release_assignment", STAND_IN)
        yield course


def submit(course, student: str, data: bytes | None = None) -> Path:
    """Lay a submission where collect would; the right answers unless `data` is the file."""
    folder = course.path_of("submitted", student, STAND_IN)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{STAND_IN}.ipynb"
    if data is None:
        notebook = submission(stand_in(), RIGHT)
        data = nbformat.writes(notebook).encode()
    path.write_bytes(data)
    return path


def grades(course, student: str) -> dict:
    """Cell -> (automatic score, manual score, whether somebody has to look)."""
    with course.gradebook() as book:
        (notebook,) = book.find_submission(STAND_IN, student).notebooks
        return {g.name: (g.auto_score, g.manual_score, g.needs_manual_grade) for g in notebook.grades}


def autograde(course, student: str) -> str:
    """`nbgrader autograde --force` for one student; its log."""
    from nbgrader.apps.api import NbGraderAPI

    result = NbGraderAPI(config=course.config()).autograde(STAND_IN, student, force=True)
    return f"{result.get('log')}{result.get('error')}"


def test_a_resubmission_leaves_no_old_score(course):
    """A broken or emptied resubmission gets its own points and a reason, and manual marks stay."""
    submit(course, "ada")
    autograde(course, "ada")
    assert grades(course, "ada")["kibibytes-check"] == (3, None, False)
    with course.gradebook() as book:
        mark = book.find_grade("row-means-why", STAND_IN, STAND_IN, "ada")
        mark.manual_score, mark.needs_manual_grade = 2, False
        book.db.commit()
    submit(course, "ada", b"{ broken")
    log = autograde(course, "ada")
    after = grades(course, "ada")
    assert [after[name][0] for name in ("kibibytes-check", "row-means-check", "row-means-check-edge")] == [0, 0, 0]
    assert after["row-means-why"][1:] == (2, True), "the manual mark stays, and is to be looked at"
    assert "is not a notebook" in log
    course.do("generate_feedback", STAND_IN, "ada")
    assert "is not a notebook" in (course.path_of("feedback", "ada", STAND_IN) / f"{STAND_IN}.html").read_text(encoding="utf-8")


def test_a_fault_is_for_the_lecturer(course):
    """A check that is broken gives no score at all but a cell to mark by hand."""
    source = course.root / "source" / STAND_IN / f"{STAND_IN}.ipynb"
    before = source.read_bytes()
    submit(course, "bob")
    try:
        source.write_bytes(before.replace(b"check.function(kibibytes", b"check.functoin(kibibytes"))
        assert "grader fault" in autograde(course, "bob")
    finally:
        source.write_bytes(before)
    assert grades(course, "bob")["kibibytes-check"] == (None, None, True)
    assert grades(course, "bob")["row-means-check"] == (4, None, False)
    autograde(course, "bob")
    assert grades(course, "bob")["kibibytes-check"] == (3, None, False)


def test_no_hostile_submission_stops_a_batch(course):
    """A doubled answer, an old schema, an endless loop: stock nbgrader stops at two of them."""
    submit(course, "carol")
    text = course.path_of("submitted", "carol", STAND_IN).joinpath(f"{STAND_IN}.ipynb").read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    notebook.cells.append(notebook.cells[4].copy())
    submit(course, "dan", nbformat.writes(notebook).encode())
    submit(course, "eve", text.replace('"schema_version": 3', '"schema_version": 1').encode())
    submit(course, "zoe", b"")
    log = "".join(autograde(course, student) for student in ("carol", "dan", "eve", "zoe"))
    scores = [sum(auto or 0 for auto, _, _ in grades(course, student).values()) for student in ("carol", "dan", "eve", "zoe")]
    assert scores == [8, 8, 8, 0], log


def test_hidden_inputs_are_drawn_for_the_student(course, monkeypatch):
    """nbgrader's own command draws from the course's secret, as `python -m grading grade` does: a re-grade is equal."""
    seeds, real = [], Grader.grade
    monkeypatch.setattr(Grader, "grade", lambda self, *args: seeds.append(args[3]) or real(self, *args))
    for student in ("gil", "hal", "gil"):
        submit(course, student)
        autograde(course, student)
    store = Store(course.root / "grading" / "store")
    assert [seed.hex() for seed in seeds] == [store.seed(STAND_IN, student) for student in ("gil", "hal", "gil")]
    assert seeds[0] != seeds[1]


SCRIPT = "Notes.\n\n<script>window.ran = 1</script>\n\n[a link](javascript:run()) <img src=x onerror='run()'> $a^2$"


def test_nothing_of_a_student_runs_in_formgrader(course):
    """Formgrader's page is made by nbconvert with the course's settings; text cells are cleaned on their way."""
    from nbconvert.exporters import HTMLExporter
    from nbgrader.server_extensions.formgrader import handlers

    notebook = submission(stand_in(), RIGHT | {"row-means-why": SCRIPT})
    notebook.cells.insert(2, nbformat.v4.new_markdown_cell(SCRIPT))
    submit(course, "ida", nbformat.writes(notebook).encode())
    autograde(course, "ida")
    graded = nbformat.read(course.path_of("autograded", "ida", STAND_IN) / f"{STAND_IN}.ipynb", as_version=4)
    assert sum("<script>window.ran" in cell.source for cell in graded.cells) == 2
    config = course.config()
    config.HTMLExporter.update(template_name="formgrade", extra_template_basedirs=[handlers.template_path])
    html, _ = HTMLExporter(config=config).from_notebook_node(graded, {"index": 0, "total": 1})
    assert html.count("Notes.") == 2 and html.count("<msup>") == 2
    assert not any(words in html for words in ("<script>window.ran", "javascript:run", "onerror"))


def test_generate_feedback_gives_nothing_away(course):
    """nbgrader's own command, which Formgrader's button calls, writes our page: no hidden test, the hint, marks by hand."""
    wrong = RIGHT | {"kibibytes-answer": "def kibibytes(n, itemsize):\n    return n * itemsize / 1024 or 1\n", "row-means-why": SCRIPT}
    submit(course, "jon", nbformat.writes(submission(stand_in(), wrong)).encode())
    autograde(course, "jon")
    with course.gradebook() as book:
        mark = book.find_grade("row-means-why", STAND_IN, STAND_IN, "jon")
        mark.manual_score, mark.needs_manual_grade = 1, False
        book.db.commit()
    course.do("generate_feedback", STAND_IN, "jon")
    page = (course.path_of("feedback", "jon", STAND_IN) / f"{STAND_IN}.html").read_text(encoding="utf-8")
    assert "(Score: 6 / 10)" in page and "inputs that you have not seen" in page and "1 of 2 points" in page
    assert not any(line in page for line in hidden_lines(stand_in())) and "<script" not in page
