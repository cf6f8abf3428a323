"""Notebooks as text: the round trip is exact, and no text lands where students would get it."""

from __future__ import annotations

import shutil
import string
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grading.__main__ import main
from grading.answers import read_answers
from grading.cells import ROLES, canonical, exercise_of, make_cell, make_notebook, role_of
from grading.files import notebook_text, parse_notebook, read_notebook, write_file
from grading.textform import from_text, to_text

ROOT = Path(__file__).resolve().parents[2]
TEXT = """%%%% md intro
# 1.1 A lesson

%%%% code set-up setup
import math

%%%% md area-task task
The area of a circle?

%%%% code area-answer answer
def area(r):
    ### BEGIN SOLUTION
    return math.pi * r**2
    ### END SOLUTION

%%%% code area-check check 2
assert area(0) == 0

%%%% md area-why essay 1.5
Because.
"""

word = st.text(string.ascii_lowercase, min_size=1, max_size=6)
source = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.text(
    "#%a \t\n\r\x0c\u2028'\"\\", max_size=30
)
points = st.integers(1, 40) | st.floats(0.25, 40).map(lambda number: round(number, 2))
ENDS = {"task": "-task", "given": "-given", "answer": "-answer", "check": "-check-edge", "essay": "-why"}


@st.composite
def notebooks(draw):
    """Canonical notebooks: any roles, any text."""
    cells = []
    for number in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(list(ROLES)))
        cell_type = ROLES[name].cell_type or draw(st.sampled_from(["code", "markdown"]))
        cell_id = f"{draw(word)}-{'abcdef'[number]}{ENDS.get(name, '')}"
        worth = draw(points) if ROLES[name].has_points else None
        cells.append(make_cell(cell_type, cell_id, name, worth, draw(source)))
    return canonical(make_notebook(cells))


@settings(max_examples=150, deadline=None)
@given(notebooks())
def test_round_trip_is_exact(notebook):
    if any(line.startswith("%%%% ") for cell in notebook.cells for line in cell.source.split("\n")):
        with pytest.raises(ValueError, match="kept for headers"):
            to_text(notebook)
        return
    back = from_text(to_text(notebook))
    assert back == notebook
    assert to_text(back) == to_text(notebook)
    nbformat.validate(back)
    assert parse_notebook(notebook_text(back), "it") == back == canonical(back)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """An empty course that the commands work on."""
    (tmp_path / "source" / "01_unit").mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_notebook_to_text_and_back(course, monkeypatch, capsys):
    (course / "in.nbtxt").write_text(TEXT, encoding="utf-8")
    assert main(["untext", "in.nbtxt", "source/01_unit/01_x.ipynb"]) == 0
    monkeypatch.chdir(course / "source" / "01_unit")  # any folder of the course will do
    assert main(["text", "01_x.ipynb"]) == 0
    assert (course / ".text/source/01_unit/01_x.nbtxt").read_text(encoding="utf-8") == TEXT
    capsys.readouterr()
    assert main(["text", "01_x.ipynb", "-"]) == 0
    assert capsys.readouterr().out == TEXT
    assert [role_of(cell) for cell in read_notebook(Path("01_x.ipynb")).cells][2:] == [
        "task",
        "answer",
        "check",
        "essay",
    ]


def test_text_never_lies_in_source(course, capsys):
    write_file(course / "source/01_unit/01_x.ipynb", notebook_text(from_text(TEXT)))
    assert main(["text", "source/01_unit/01_x.ipynb", "source/01_unit/01_x.py"]) == 1
    assert "nbgrader would hand it to students" in capsys.readouterr().err
    assert [path.name for path in (course / "source/01_unit").iterdir()] == ["01_x.ipynb"]


def test_untext_keeps_what_it_replaces_and_stays_out_of_printed_rooms(course, capsys):
    (course / "in.nbtxt").write_text(TEXT, encoding="utf-8")
    target = course / "source/01_unit/01_x.ipynb"
    write_file(target, "the author's other version")
    assert main(["untext", "in.nbtxt", str(target)]) == 0
    assert (course / ".text/source/01_unit/01_x.before.ipynb").read_text() == "the author's other version"
    assert main(["untext", "in.nbtxt", "notebooks/01_unit/01_x.ipynb"]) == 1
    assert "printed from source/" in capsys.readouterr().err


def test_show_prints_what_has_no_text_form(course, capsys):
    (course / "conflict.ipynb").write_text("<<<<<<< ours\n", encoding="utf-8")
    assert main(["text", "--show", "conflict.ipynb"]) == 0
    assert capsys.readouterr().out == "<<<<<<< ours\n"
    assert main(["text", "conflict.ipynb", "-"]) == 1


@pytest.mark.parametrize(
    "text, message",
    [
        ("# no header", "line 1: the text has to begin with a header"),
        ("%%%% markdown intro", "KIND md or code"),
        ("%%%% md 12", "not lower-case words"),
        ("%%%% md intro\nx\n%%%% md intro", "line 3: the id 'intro' is already used in line 1"),
        ("%%%% code x-check test 2", "the role 'test' is none of"),
        ("%%%% code x-check check", "points belong to"),
        ("%%%% code x-check check nan", "'nan' is not a number of points"),
        ("%%%% md x-answer answer", "cannot have the role 'answer'"),
        ("%%%% code x answer", "ends in -answer"),
        ("%%%% md set-up setup", "cannot have the role 'setup'"),
    ],
)
def test_a_fault_in_the_text_is_named_with_its_line(text, message):
    with pytest.raises(ValueError) as error:
        from_text(text)
    assert message in str(error.value)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.ipynb"
    write_file(path, "old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError):
        write_file(path, "new")
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_exercise_of_an_id():
    ids = ["a-task", "a-answer", "a-check", "a-check-edge", "a-b-why", "a-given", "check-in", "answer", "a-checked"]
    assert [exercise_of(cell_id) for cell_id in ids] == ["a", "a", "a", "a", "a-b", "a", "", "", ""]


def test_answers_are_cut_into_versions(tmp_path):
    path = tmp_path / "01_x.py"
    path.write_text('"""Answers."""\n\n# %% a | right | other way\nx = 1\n\n# %% a | wrong | no-two\nx = 2\n', "utf-8")
    first, second = read_answers(path)
    assert (first.exercise, first.kind, first.name, first.source, first.line) == ("a", "right", "other way", "x = 1", 3)
    assert (second.kind, second.name, second.source, second.line) == ("wrong", "no-two", "x = 2", 6)


def test_a_version_that_is_like_another(tmp_path):
    """Blocks are replaced in order; indents, empty lines and blocks that only go are kept apart."""
    path = tmp_path / "01_x.py"
    path.write_text(
        "# %% a | right | b\ndef f():\n    x = 1\n\n    y = 2\n    return x\n\n"
        "# %% a | wrong | c | like b\n#-     x = 1\n#-\n#+     x = 3\n#-     return x\n#+     if x:\n#+         return y\n",
        "utf-8",
    )
    assert read_answers(path)[1].source == "def f():\n    x = 3\n    y = 2\n    if x:\n        return y"


@pytest.mark.parametrize(
    "text, message",
    [
        ("# %% a | right\nx = 1", "01_x.py:1: '# %% a | right' is not"),
        ("# %% a | maybe | b\nx = 1", "right or wrong, not 'maybe'"),
        ("# %% a | wrong | b\n\n# %% a | wrong | c\nx = 1", "01_x.py:1: the section is empty"),
        ("# %% a | wrong | b\nx = 1\n# %% a | wrong | b\nx = 1", "01_x.py:3: a has 'b' already in line 1"),
        ("# %% a | wrong | b\nx = 1\n# %% c | wrong | d | like b\n#- x = 1", "01_x.py:3: no version of c above is called 'b'"),
        ("# %% a | wrong | b\nx = 1\n# %% a | wrong | c | like b\n#- x = 2", "stands 0 times in the version that it is like:\nx = 2"),
        ("# %% a | wrong | b\nx\nx\n# %% a | wrong | c | like b\n#- x", "stands 2 times in the version"),
        ("# %% a | wrong | b\nx\n# %% a | wrong | c | like b\n#- x\ny", "holds lines that begin with '#- '"),
    ],
)
def test_a_fault_in_answers_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "01_x.py"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError) as error:
        read_answers(path)
    assert message in str(error.value)
