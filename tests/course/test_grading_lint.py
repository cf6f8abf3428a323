"""Every rule of lint bites: a lesson without a fault, broken in one place at a time."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.cells import make_cell, make_notebook
from grading.files import notebook_text, write_file
from grading.lint import lint, notebook_faults
from grading.scaffold import lesson_text
from grading.textform import from_text, to_text

ROOT = Path(__file__).resolve().parents[2]
WORDS = "word " * 1000


def good_lesson() -> str:
    """The scaffold with enough words: it has no fault."""
    return lesson_text("1.1", "Areas").replace("One sentence about what came out.", WORDS, 1)


def faults(text: str, kind: str = "lesson") -> list[str]:
    return [f"{cell_id}: {sentence}" for cell_id, sentence in notebook_faults(from_text(text), kind)]


def test_a_good_lesson_has_no_fault():
    assert faults(good_lesson()) == []


def swap(old: str, new: str):
    """A change of the first `old` in a lesson's text."""

    def change(text: str) -> str:
        assert old in text, old
        return text.replace(old, new, 1)

    return change


def without(cell_id: str):
    """A change that takes one cell out."""

    def change(text: str) -> str:
        notebook = from_text(text)
        notebook.cells = [cell for cell in notebook.cells if cell.id != cell_id]
        return to_text(notebook)

    return change


def moved(cell_id: str, before: str):
    """A change that puts one cell before another one."""

    def change(text: str) -> str:
        notebook = from_text(text)
        (cell,) = [cell for cell in notebook.cells if cell.id == cell_id]
        notebook.cells.remove(cell)
        place = next(n for n, other in enumerate(notebook.cells) if other.id == before)
        notebook.cells.insert(place, cell)
        return to_text(notebook)

    return change


def with_line(cell_id: str, line: str):
    """A change that puts a line at the end of a cell."""

    def change(text: str) -> str:
        notebook = from_text(text)
        (cell,) = [cell for cell in notebook.cells if cell.id == cell_id]
        cell.source += "\n" + line
        return to_text(notebook)

    return change


def fewer(text: str) -> str:
    """A lesson of 34 cells."""
    for cell_id in ("first-what", "first-code", "next-lesson"):
        text = without(cell_id)(text)
    return text


HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS\n.*?\n### END HIDDEN TESTS\n", re.S)
CASES = {
    # roles and ids
    "plain cell with an exercise's id": (
        swap("md fifth-what", "md fifth-task"),
        "fifth-task: the id looks like part of",
    ),
    "no points": (swap("double-one-check check 2", "double-one-check check 0"), "has points, more than 0"),
    # regions
    "solution not ended": (swap("    ### END SOLUTION\n", ""), "BEGIN SOLUTION has no END"),
    "solution not begun": (swap("    ### BEGIN SOLUTION\n", ""), "END SOLUTION has no BEGIN"),
    "no solution": (
        swap("    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION", "    return 2 * x"),
        "marks its",
    ),
    "solution in a check": (with_line("double-one-check", "### BEGIN SOLUTION\n### END SOLUTION"), "into a check cell"),
    "tests in an answer": (
        with_line("double-one-answer", "### BEGIN HIDDEN TESTS\n### END HIDDEN TESTS"),
        "into a answer",
    ),
    "tests in prose": (with_line("first-what", "BEGIN HIDDEN TESTS"), "into a plain cell"),
    "mark scheme": (with_line("double-one-task", "### BEGIN MARK SCHEME"), "BEGIN MARK SCHEME does not belong"),
    "nested": (
        swap("### BEGIN HIDDEN TESTS", "### BEGIN HIDDEN TESTS\n### BEGIN HIDDEN TESTS"),
        "stands inside of HIDDEN",
    ),
    "marker with text": (swap("### BEGIN HIDDEN TESTS", "# BEGIN HIDDEN TESTS now"), "on a line of its own"),
    "no hidden tests": (lambda text: HIDDEN.sub("", text, count=1), "exercise double-one has no hidden tests"),
    "seed of another form": (
        swap("### BEGIN HIDDEN TESTS", "### BEGIN HIDDEN TESTS\ntest_rng, n = np.random.default_rng(7), 3"),
        "the only one that is seeded",
    ),
    "all hidden": (
        swap(
            'check.function(double_one, expected=[((1,), 2), ((3,), 6)])\nprint("Visible checks pass; more run when graded.")',
            "",
        ),
        "a part that students can run",
    ),
    # exercises
    "no task": (without("double-one-task"), "exercise double-one has 0 task cells"),
    "no answer": (without("double-one-answer"), "double-one has 0 answer cells"),
    "no check": (without("double-one-check"), "double-one has no check cell"),
    "check before answer": (moved("double-one-check", "double-one-answer"), "is not in the order task, answer, checks"),
    "one exercise": (
        lambda text: without("double-two-task")(without("double-two-answer")(without("double-two-check")(text))),
        "it has 1 exercises, expected 2 to 4",
    ),
    # code
    "pip": (with_line("first-code", "%pip install numpy"), "'%pip install numpy' is a magic"),
    "shell": (with_line("first-code", "!ls"), "'!ls' is a magic or a shell command"),
    "cell magic": (swap('print("the', '%%time\nprint("the'), "'%%time' is a magic"),
    "interact": (with_line("first-code", "from ipywidgets import interact"), "interact stalls"),
    "interactive_output": (with_line("first-code", "w.interactive_output(f, {})"), "interactive_output stalls"),
    "Output": (with_line("first-code", "out = widgets.Output()"), "Output stalls"),
    "no Python": (with_line("first-code", "def f(:"), "line 2 is not Python"),
    "no Python for students": (swap("    ### BEGIN", "    x = (\n    ### BEGIN"), "not Python"),
    "absolute path": (
        with_line("first-code", 'open("/home/me/data.csv")'),
        "'/home/me/data.csv' is a path of one machine",
    ),
    "drive letter": (with_line("first-what", "Look into C:\\data\\x."), "is a path of one machine"),
    "long cell": (with_line("first-code", "x = 1\n" * 25), "first-code: it has 26 lines, at most 25"),
    "long cells": (
        lambda text: re.sub(r'(print\("(the|Vis).*)', r"\1" + "\nx = 1" * 6, text),
        "expected at least half",
    ),
    "web picture": (with_line("first-what", "![a](https://example.org/a.png)"), "pictures are drawn by mlsys.viz"),
    "inline picture": (with_line("first-what", '<img src="data:image/png;base64,AA">'), "pictures are drawn"),
    "test template": (with_line("double-one-check", "### AUTOTEST x"), "AUTOTEST starts"),
    # lesson
    "few words": (swap(WORDS, "word"), "expected 1200 to 2500"),
    "many words": (swap(WORDS, 3 * WORDS), "expected 1200 to 2500"),
    "few cells": (fewer, "cells, expected 35 to 60"),
    "title": (swap("# 1.1 Areas", "# Areas"), "title: the first cell has not a title"),
    "objectives": (swap("You will be able to", "Aims"), "has not 'You will be able to'"),
    "needs": (swap("**You need**", "Before:"), "has not 'You need'"),
    "minutes": (swap("45 minutes", "a while"), "has not the minutes"),
    "no set-up": (without("set-up"), "it has 0 set-up cells"),
    "set-up not first": (moved("first-code", "set-up"), "expected 1, the first code cell"),
    "long set-up": (with_line("set-up", "a = 1\nb = 1\nc = 1\nd = 1"), "set-up has 9 lines, at most 8"),
    "no prediction": (without("first-guess-predict"), "it has no prediction"),
    "late prediction": (moved("first-guess-predict", "recap"), "takeaway comes before prediction"),
    "no takeaway": (lambda text: text.replace("> **Takeaway.**", "So:"), "it has no takeaway"),
    "takeaway of two lines": (with_line("first-takeaway", "> and more 1"), "a takeaway is one line"),
    "takeaway without number": (swap("with a number in it, such as 1.", "of words."), "has a number in it"),
    "no widget": (swap("StrideExplorer()\n", "print()\n"), "it has no widget"),
    "no What you should have seen": (without("explorer-seen"), "it has no 'What you should have seen'"),
    "no Where the model stops": (without("where-the-model-stops"), "it has no 'Where the model stops'"),
    "no recap": (without("recap"), "it has no recap"),
    "recap too early": (moved("recap", "double-two-task"), "recap comes before"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_bites(name):
    change, message = CASES[name]
    said = faults(change(good_lesson()))
    assert any(message in sentence for sentence in said), said


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda cell: cell.metadata.nbgrader.update(locked=False),
            "'locked': False, 'task': False}, which no role means",
        ),
        (
            lambda cell: cell.metadata.nbgrader.update(grade_id="other-task"),
            "grade_id is 'other-task', not the cell's id",
        ),
        (lambda cell: cell.update(id="a1b2"), "the id is not lower-case words"),
        (lambda cell: cell.update(id="double-one"), "the id of a task cell ends in -task"),
        (lambda cell: cell.update(id="title"), "title: 2 cells have this id"),
    ],
)
def test_metadata_that_only_an_editor_can_break(change, message):
    """A task cell that is not locked passes generate_assignment and then breaks every submission."""
    notebook = from_text(good_lesson())
    (cell,) = [cell for cell in notebook.cells if cell.id == "double-one-task"]
    change(cell)
    said = [f"{cell_id}: {sentence}" for cell_id, sentence in notebook_faults(notebook, "lesson")]
    assert any(message in sentence for sentence in said), said


def test_an_essay_needs_no_check_and_a_problem_set_sums_up():
    essay = "%%%% md a-task task\nWhy?\n%%%% md a-why essay {}\nBecause.\n"
    assert faults(essay.format(20), "problem set") == faults(essay.format(40), "problem set") == []
    assert faults(essay.format(21), "problem set") == [": its points sum to 21, expected 20 or 40"]
    assert faults("%%%% md hello\nHello", "start") == []


@pytest.fixture
def course(tmp_path, monkeypatch):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    write_file(tmp_path / "source/01_unit/01_areas.ipynb", notebook_text(from_text(good_lesson())))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name, message",
    [
        ("01_unit/01_areas.py", "nbgrader hands every file there to students"),
        ("01_unit/data/numbers.csv", "nbgrader hands every file there to students"),
        ("01_areas.ipynb", "does not lie in a folder named like"),
        ("unit/01_areas.ipynb", "does not lie in a folder named like"),
        ("01_unit/areas.ipynb", "is not named like"),
        ("01_unit/02_Areas.ipynb", "is not named like"),
        ("ps01_unit/ps01_other.ipynb", "is not named like its folder"),
    ],
)
def test_files_that_do_not_belong_into_source(course, name, message):
    assert lint(course) == []
    path = course / "source" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(course / "source/01_unit/01_areas.ipynb", path)
    assert any(f"source/{name}" in said and message in said for said in lint(course)), lint(course)


def test_the_command_names_notebook_cell_and_fault(course, capsys):
    assert main(["lint"]) == 0
    assert capsys.readouterr().out == "1 notebook, no fault.\n"
    bad = with_line("first-code", "!ls")(good_lesson())
    write_file(course / "source/01_unit/02_bad.ipynb", notebook_text(from_text(bad)))
    write_file(course / "source/01_unit/03_broken.ipynb", "{")
    assert main(["lint"]) == 1
    said = capsys.readouterr().out
    assert "source/01_unit/02_bad.ipynb, cell 'first-code': '!ls' is a magic or a shell command; write Python." in said
    assert "03_broken.ipynb is not a notebook" in said
    assert main(["lint", "source/01_unit/01_areas.ipynb"]) == 0


def test_a_raw_cell_is_named():
    notebook = make_notebook([make_cell("markdown", "a", "plain", None, "x")])
    notebook.cells[0].cell_type = "raw"
    assert ("a", "it is a raw cell; lessons have code and markdown cells") in list(notebook_faults(notebook, "start"))
