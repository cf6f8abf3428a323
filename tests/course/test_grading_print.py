"""Printing: the same bytes as nbgrader's, and never over what somebody wrote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_output

from grading.__main__ import main
from grading.files import notebook_text, read_notebook, write_file
from grading.scaffold import lesson_text
from grading.student_edition import targets
from grading.textform import from_text

ROOT = Path(__file__).resolve().parents[2]
PROBLEM_SET = """%%%% md intro
# A problem set
%%%% code set-up setup
import math
%%%% md area-task task
The area of a circle – in m²?
%%%% code area-answer answer
def area(r):
    ### BEGIN SOLUTION
    return math.pi * r**2
    ### END SOLUTION
%%%% code area-check check 19.5
assert area(0) == 0
### BEGIN HIDDEN TESTS
assert area(1) == math.pi
### END HIDDEN TESTS
%%%% md reason-task task
Why?
%%%% md reason-why essay 0.5
Because.
"""
LESSON, SET = "notebooks/01_unit/01_areas.ipynb", "assignments/ps01_unit/ps01_unit.ipynb"
START = "notebooks/00_start_here.ipynb"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with a start page, a lesson and a problem set, printed once and committed to git."""
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    texts = {
        "01_unit/01_areas": lesson_text("1.1", "Areas"),
        "ps01_unit/ps01_unit": PROBLEM_SET,
        "00_start_here/00_start_here": "%%%% md hello\n# Start here\n",
    }
    for name, text in texts.items():
        write_file(tmp_path / f"source/{name}.ipynb", notebook_text(from_text(text)))
    monkeypatch.chdir(tmp_path)
    assert main(["student-edition"]) == 0
    return tmp_path


def git(course: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=course, check=True, capture_output=True)


def edit_source(course: Path, name: str = "01_unit/01_areas", old: str = "Exercises", new: str = "Your turn") -> None:
    """What an author does next: one word of a source changes."""
    path = course / f"source/{name}.ipynb"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def change(path: Path, cell_id: str, source: str | None) -> None:
    """What a reader does: one cell of a printed copy changes, or goes."""
    notebook = nbformat.read(path, as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.id == cell_id]
    if source is None:
        notebook.cells.remove(cell)
    else:
        cell.source = source
    nbformat.write(notebook, path)


def test_rooms(course, capsys):
    printed = {
        path.relative_to(course).as_posix()
        for room in ("notebooks", "assignments")
        for path in (course / room).rglob("*.*")
    }
    assert printed == {START, LESSON, SET}
    text = (course / SET).read_text("utf-8")
    assert "Replace this line with your answer." in text and "math.pi" not in text and "Because" not in text
    assert [cell.id for cell in read_notebook(course / SET).cells][:3] == ["intro", "set-up", "area-task"]
    capsys.readouterr()
    assert main(["student-edition"]) == 0 and capsys.readouterr().out == ""
    assert main(["student-edition", "--check"]) == 0


def nbgrader(course: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=course,
        env=os.environ | {"JUPYTER_CONFIG_DIR": str(course / ".jupyter"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def compare_with_nbgrader(course: Path) -> None:
    """nbgrader's own command prints every unit of source/ into grading/release/: the bytes are ours."""
    ours = {target: (course / target).read_bytes() for target in targets(course)}
    (course / "grading").mkdir(exist_ok=True)
    for unit in sorted((course / "source").iterdir()):
        nbgrader(course, "generate_assignment", unit.name)
    for target, source in targets(course).items():
        theirs = course / "grading/release" / source.relative_to(course / "source")
        assert theirs.read_bytes() == ours[target], f"{target} differs from what nbgrader prints"


@pytest.mark.nbgrader
def test_same_bytes_as_nbgrader(course):
    compare_with_nbgrader(course)


@pytest.mark.nbgrader
@pytest.mark.slow
def test_same_bytes_as_nbgrader_for_the_whole_course(tmp_path, monkeypatch):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    shutil.copytree(ROOT / "source", tmp_path / "source", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    monkeypatch.chdir(tmp_path)
    assert main(["student-edition"]) == 0
    compare_with_nbgrader(tmp_path)


READER = {
    "answered": (
        lambda path: change(path, "double-one-answer", "def double_one(x): return 2 * x"),
        "'double-one-answer' differs",
    ),
    "guessed": (lambda path: change(path, "first-guess-predict", "guess = 7"), "'first-guess-predict' differs"),
    "note in the prose": (lambda path: change(path, "first-what", "I do not get this"), "'first-what' differs"),
    "cell deleted": (lambda path: change(path, "next-lesson", None), "'next-lesson' is gone"),
}


@pytest.mark.parametrize("case", READER)
def test_a_copy_in_which_somebody_wrote_is_kept_and_the_others_are_printed(course, capsys, case):
    act, where = READER[case]
    act(course / LESSON)
    before = (course / LESSON).read_bytes()
    edit_source(course)
    edit_source(course, "00_start_here/00_start_here", "Start here", "Begin here")
    capsys.readouterr()
    assert main(["student-edition"]) == 1
    said = capsys.readouterr().out
    assert f"{LESSON} is kept, because somebody has written in it: cell {where}." in said
    assert "printed notebooks/00_start_here.ipynb" in said
    assert (course / LESSON).read_bytes() == before
    assert main(["student-edition"]) == 1, "and it stays so"
    assert (course / LESSON).read_bytes() == before


def test_an_added_cell_an_added_picture_and_a_broken_file_are_kept(course, capsys):
    def add_cell(notebook):
        notebook.cells.append(new_markdown_cell("My notes", id="mine"))

    def add_picture(notebook):
        notebook.cells[0].attachments = {"a.png": {"image/png": "AAAA"}}

    edit_source(course)
    for act, where in ((add_cell, "cell 'mine' was added"), (add_picture, "cell 'title' differs")):
        notebook = nbformat.read(course / LESSON, as_version=4)
        fresh = notebook_text(notebook)
        act(notebook)
        nbformat.write(notebook, course / LESSON)
        before = (course / LESSON).read_bytes()
        assert main(["student-edition"]) == 1
        assert where in capsys.readouterr().out
        assert (course / LESSON).read_bytes() == before
        write_file(course / LESSON, fresh)
    write_file(course / LESSON, "<<<<<<< mine")
    assert main(["student-edition"]) == 1
    assert f"{LESSON} is kept, because it cannot be read" in capsys.readouterr().out
    assert (course / LESSON).read_text() == "<<<<<<< mine"


def test_a_copy_that_was_only_run_is_replaced(course):
    notebook = nbformat.read(course / LESSON, as_version=4)
    for number, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
        cell.execution_count, cell.outputs = number, [new_output("stream", text="hello")]
        cell.metadata["execution"] = {"iopub.status.busy": "12:00"}
    notebook.metadata.language_info.version = "3.11.7"
    notebook.metadata.widgets = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    nbformat.write(notebook, course / LESSON)
    edit_source(course)
    assert main(["student-edition"]) == 0
    assert "Your turn" in (course / LESSON).read_text("utf-8") and "hello" not in (course / LESSON).read_text("utf-8")


def test_without_a_record_git_tells_what_was_printed(course, capsys):
    edit_source(course)
    (course / ".printed.json").unlink()
    assert main(["student-edition"]) == 1, "neither record nor git: it might be somebody's"
    git(course, "init")
    git(course, "add", "notebooks", "assignments")
    git(course, "commit", "-m", "printed")
    assert main(["student-edition"]) == 0
    assert "Your turn" in (course / LESSON).read_text("utf-8")


@pytest.mark.parametrize("record", ["", "[]", "{", '{"notebooks/01_unit/01_areas.ipynb": 3}'])
def test_a_damaged_record_loses_nothing(course, record):
    (course / ".printed.json").write_text(record)
    change(course / LESSON, "double-one-answer", "mine")
    edit_source(course)
    assert main(["student-edition"]) == 1
    assert "mine" in (course / LESSON).read_text("utf-8")


def test_force_replaces_edited_text_and_keeps_a_copy_but_no_answer(course, capsys):
    change(course / LESSON, "first-what", "edited by hand")
    assert main(["student-edition", "--force-unanswered"]) == 0
    assert "edited by hand" not in (course / LESSON).read_text("utf-8")
    assert "edited by hand" in (course / ".text" / f"{LESSON}.before.ipynb").read_text("utf-8")
    for cell_id in ("double-one-answer", "first-guess-predict"):
        change(course / LESSON, cell_id, "mine")
        assert main(["student-edition", "--force-unanswered"]) == 1
        assert "mine" in (course / LESSON).read_text("utf-8")
        shutil.copy(course / ".text" / f"{LESSON}.before.ipynb", course / LESSON)


def test_check_names_stale_missing_and_left_over_copies(course, capsys):
    edit_source(course)
    (course / SET).unlink()
    (course / "source/00_start_here/00_start_here.ipynb").unlink()
    capsys.readouterr()
    assert main(["student-edition", "--check"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{LESSON} is not what its source prints")
    assert said[1].startswith(f"{SET} is missing")
    assert said[2] == f"{START} is printed, but its source is gone"


def test_check_accepts_a_copy_that_its_reader_works_in_while_the_committed_one_is_fresh(course):
    git(course, "init")
    git(course, "add", "notebooks", "assignments")
    git(course, "commit", "-m", "printed")
    change(course / LESSON, "double-one-answer", "mine")
    assert main(["student-edition", "--check"]) == 0
    edit_source(course)
    assert main(["student-edition", "--check"]) == 1


def test_a_print_without_source_goes_unless_somebody_wrote_in_it(course, capsys):
    mine = course / "notebooks/01_unit/my_notes.ipynb"
    shutil.copy(course / LESSON, mine)
    (course / "source/01_unit/01_areas.ipynb").unlink()
    assert main(["student-edition"]) == 0
    assert not (course / LESSON).exists() and mine.exists()
    change(course / SET, "area-answer", "mine")
    shutil.rmtree(course / "source/ps01_unit")
    assert main(["student-edition"]) == 1
    assert f"{SET} has no source" in capsys.readouterr().out
    assert "mine" in (course / SET).read_text("utf-8")


def test_a_source_that_nbgrader_refuses_is_named_and_the_others_are_printed(course, capsys):
    edit_source(course, old="### END SOLUTION", new="### end")
    edit_source(course, "00_start_here/00_start_here", "Start here", "Begin here")
    before = (course / LESSON).read_bytes()
    capsys.readouterr()
    assert main(["student-edition"]) == 1
    said = capsys.readouterr().out
    assert "source/01_unit/01_areas.ipynb: nbgrader does not print it: no end solution statement found." in said
    assert "printed notebooks/00_start_here.ipynb" in said
    assert (course / LESSON).read_bytes() == before


KILLED = """
import os, sys
calls, replace = 0, os.replace
def dies(*names):
    global calls
    calls += 1
    if calls == int(sys.argv[1]):
        os._exit(9)
    replace(*names)
os.replace = dies
from grading.__main__ import main
main(["student-edition"])
"""


@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_killed_at_any_moment_a_target_is_old_or_new_and_the_next_run_finishes(course, call):
    old = {name: (course / name).read_bytes() for name in (START, LESSON)}
    edit_source(course)
    edit_source(course, "00_start_here/00_start_here", "Start here", "Begin here")
    command = [sys.executable, "-c", KILLED, str(call)]
    done = subprocess.run(command, cwd=course, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 9
    for name, before in old.items():
        now = (course / name).read_bytes()
        assert now == before or json.loads(now)["cells"]
    edit_source(course, old="Your turn", new="Now you")  # the author goes on before the next run
    for left in course.rglob("*.part"):
        os.utime(left, (time.time() - 100,) * 2)
    assert main(["student-edition"]) == 0
    assert "Now you" in (course / LESSON).read_text("utf-8") and "Begin here" in (course / START).read_text("utf-8")
    assert main(["student-edition", "--check"]) == 0
    assert not list(course.rglob("*.part"))
