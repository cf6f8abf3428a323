"""nbgrader's own pages in JupyterLab, walked by a student and by a lecturer.

The student fetches, validates, answers and submits; the lecturer looks at the assignment,
collects, autogrades, grades the essay by hand and releases feedback; the student reads it.
"""

from __future__ import annotations

import os
import re
import sys

import pytest
from kit import lab
from kit.course import STAND_IN, Course, solution_of, stand_in
from kit.server import LabServer

from grading.cells import role_of

pytestmark = [
    pytest.mark.browser,
    pytest.mark.nbgrader,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="nbgrader's exchange needs POSIX file permissions"),
]
LIMIT_MS = 60_000
# What nbgrader's and Lab's own pages do and we cannot mend: part of an address or a console error -> why.
NOT_OURS = {
    "https://cdnjs.cloudflare.com/ajax/libs/mathjax/": "nbgrader's grading page asks a CDN for MathJax",
    "Failed to load resource: net::ERR_NAME_NOT_RESOLVED": "that request, where the tests let nothing out",
    "MathJax is not defined": "the same page without its MathJax",
    "Blocked script execution in 'blob:": "Lab shows a feedback page without running its scripts",
}


@pytest.fixture
def released(browser, tmp_path, monkeypatch):
    """A course whose stand-in assignment is in the exchange."""
    course = Course(tmp_path)
    for name, value in course.environment(course.root).items():
        monkeypatch.setenv(name, value)
    course.add_source(STAND_IN, {STAND_IN: stand_in()})
    course.do("generate_assignment", STAND_IN)
    course.do("release_assignment", STAND_IN)
    return course


def server_of(course: Course, person) -> LabServer:
    """JupyterLab in one person's folder, with a home of its own."""
    own = {name: value for name, value in course.environment(person).items() if os.environ.get(name) != value}
    return LabServer(person, course.folder / "state" / person.name, own)


def test_student_and_lecturer_go_round(released, new_window, shot):
    """Fetch, validate, answer, submit; collect, autograde, grade by hand, feed back; read the feedback."""
    student = released.student("student")
    with server_of(released, student) as desk:
        context = new_window(height=1000)
        assignments = open_list(context, desk)
        fetch(assignments, shot)
        work_on_it(context, desk, shot)
        submit(assignments, shot)
        with server_of(released, released.root) as office:
            room = new_window(width=1500, height=1000)
            look_at_the_assignment(room, office, shot)
            collect_and_grade(room, office, shot)
            leave(room)
        read_feedback(assignments, shot)
        leave(context)


def leave(context) -> None:
    """Close a window; nothing in it went wrong or asked for an address outside that is not listed above."""
    ours = [text for text in context.problems + context.outside if not any(part in text for part in NOT_OURS)]
    context.close()
    assert ours == []


def open_list(context, server):
    """Lab with the student's Assignment List."""
    page = lab.open_lab(context, server)
    lab.menu(page, "Nbgrader", "Assignment List")
    page.locator(".list_item", has_text=STAND_IN).first.wait_for(timeout=LIMIT_MS)
    return page


def press(page, name: str) -> None:
    """Press a button of the Assignment List by its name."""
    page.locator("button:visible", has_text=re.compile(f"^{name}$")).first.click(timeout=LIMIT_MS)


def fetch(page, shot) -> None:
    """Fetch the assignment; it can be submitted afterwards."""
    shot(page, "panels-list")
    press(page, "Fetch")
    page.locator("button", has_text=re.compile("^Submit$")).first.wait_for(timeout=LIMIT_MS)


def validate(page) -> str:
    """Press Validate in a notebook; what the dialog says."""
    page.locator(".validate-button:visible").click()
    dialog = page.locator(".jp-Dialog")
    dialog.locator("text=/Success|failed|changed|Error/").first.wait_for(timeout=LIMIT_MS)
    said = " ".join(dialog.inner_text().split())
    dialog.locator("button").last.click()
    dialog.wait_for(state="detached")
    return said


def work_on_it(context, server, shot) -> None:
    """Open the notebook, validate it unanswered, answer every cell, validate again."""
    page = lab.open_notebook(context, server, f"assignments/{STAND_IN}/{STAND_IN}.ipynb")
    said = validate(page)
    assert "failed" in said and "kibibytes is not written yet." in said, said
    for cell in stand_in().cells:
        if role_of(cell) in ("answer", "essay"):
            lab.type_into(page, cell.id, solution_of(cell))
            page.keyboard.press("Control+Enter")
    lab.save(page)
    shot(page, "panels-answered")
    said = validate(page)
    assert "Success" in said, said
    page.close()


def submit(page, shot) -> None:
    """Submit from the Assignment List; a submission is listed."""
    press(page, "Submit")
    page.locator("text=There are no submitted assignments").wait_for(state="hidden", timeout=LIMIT_MS)
    shot(page, "panels-submitted")


def look_at_the_assignment(context, server, shot) -> None:
    """The Create Assignment panel shows the ids, kinds and points of the source notebook."""
    page = lab.open_notebook(context, server, f"source/{STAND_IN}/{STAND_IN}.ipynb")
    page.locator(".lm-TabBar-tab", has_text="Create Assignment").click()
    page.locator("text=Total points").wait_for(timeout=LIMIT_MS)
    shot(page, "panels-create-assignment")
    shown = "inputs => inputs.map(i => i.value).filter(value => value && value !== '0')"  # the others are hidden
    ids = page.locator(".nbgrader-CellId input").evaluate_all(shown)
    points = page.locator(".nbgrader-CellPoints input").evaluate_all(shown)
    marked = [cell for cell in stand_in().cells if role_of(cell) not in ("plain", "setup", "predict")]
    assert ids == [cell.id for cell in marked]
    assert list(map(float, points)) == [
        cell.metadata.nbgrader.points for cell in marked if cell.metadata.nbgrader.grade
    ]
    page.close()


def confirm(frame) -> None:
    """Wait for Formgrader's message that a step worked, and close it."""
    message = frame.locator(".modal-body:visible")
    message.wait_for(timeout=LIMIT_MS)
    said = " ".join(frame.locator(".modal-content:visible").inner_text().split())
    assert "Success" in said, said
    frame.locator(".modal-footer:visible button").last.click()
    message.wait_for(state="hidden")


def collect_and_grade(context, server, shot) -> None:
    """Formgrader: collect, autograde, two points and a comment for the essay, feedback out."""
    page = lab.open_lab(context, server)
    lab.menu(page, "Nbgrader", "Formgrader")
    frame = page.frame_locator("iframe[src*=formgrader]")
    frame.locator("table tbody tr", has_text=STAND_IN).wait_for(timeout=LIMIT_MS)
    frame.locator("td.collect a").first.click()
    confirm(frame)
    frame.locator("td.num-submissions a", has_text="1").click(timeout=LIMIT_MS)
    frame.locator("td.autograde a, a:has(.glyphicon-flash)").first.click(timeout=LIMIT_MS)
    confirm(frame)
    frame.locator("td.status", has_text="needs manual grading").first.wait_for(timeout=LIMIT_MS)
    shot(page, "panels-autograded")
    for link in ("Manual Grading", STAND_IN, STAND_IN):
        frame.locator("a", has_text=re.compile(f"^{link}$")).last.click(timeout=LIMIT_MS)
    frame.locator("table tbody a", has_text=re.compile("Submission")).first.click(timeout=LIMIT_MS)
    grade_the_essay(page, frame, shot)
    for link in ("Manual Grading", "Manage Assignments"):
        frame.locator("a", has_text=link).first.click(timeout=LIMIT_MS)
    for step in ("generate-feedback", "release-feedback"):
        frame.locator(f"td.{step} a").first.click(timeout=LIMIT_MS)
        confirm(frame)


def grade_the_essay(page, frame, shot) -> None:
    """Give the essay its points and a comment; Formgrader saves each when its field is left."""
    for field in ("input.extra-credit", "textarea.comment"):  # the page listens once it has set their placeholders
        frame.locator(f"{field}[placeholder]").last.wait_for(timeout=LIMIT_MS)
    with page.expect_response(lambda r: "/api/grade/" in r.url and r.request.method == "PUT"):
        frame.locator("input.score").last.fill("2")
        frame.locator("input.score").last.press("Tab")
    with page.expect_response(lambda r: "/api/comment/" in r.url and r.request.method == "PUT"):
        frame.locator("textarea.comment").last.fill("Well argued.")
        frame.locator("textarea.comment").last.press("Tab")
    shot(page, "panels-essay")


def read_feedback(page, shot) -> None:
    """Fetch the feedback and open its page in Lab: the score, the comment and the points are there."""
    page.bring_to_front()
    press(page, "Fetch Feedback")
    page.locator("a:visible", has_text="view feedback").first.click(timeout=LIMIT_MS)
    page.locator(".jp-DirListing-item", has_text=f"{STAND_IN}.html").dblclick(timeout=LIMIT_MS)
    text = page.frame_locator(".jp-IFrame iframe").locator("body")
    text.locator("text=/Score: 10 .* 10/").first.wait_for(timeout=LIMIT_MS)
    shot(page, "panels-feedback")
    said = " ".join(text.inner_text().split())
    assert "Well argued." in said and "row-means-check: pass, 4 of 4 points" in said, said
