"""Canonical form: what an editor adds goes, what an author wrote stays, twice is as once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from grading.__main__ import main
from grading.cells import canonical, make_cell, make_notebook
from grading.files import notebook_text, read_notebook

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def course(tmp_path, monkeypatch):
    (tmp_path / "source" / "01_unit").mkdir(parents=True)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def as_jupyter_saves():
    """A notebook with the traces that JupyterLab and a run leave."""
    answer = make_cell("code", "area-answer", "answer", None, "def area(r):\n    return r * r\n")
    answer.metadata |= {"deletable": False, "execution": {"iopub.status.busy": "12:00"}, "collapsed": True}
    answer.execution_count, answer.outputs = 3, [new_output("stream", text="hello")]
    cells = [
        new_markdown_cell("# 1.1 Areas\r\n\r\nHow large?\n\n", id="0aa1b2c3"),
        new_code_cell("r = 2", id="7d2b", metadata={"tags": ["setup"], "jupyter": {"source_hidden": True}}),
        new_markdown_cell("How large?", id="ff0f"),
        answer,
    ]
    return new_notebook(
        cells=cells, metadata={"widgets": {"state": {}}, "language_info": {"name": "python", "version": "3.11.7"}}
    )


def test_editor_traces_go_and_text_stays(course):
    path = course / "source/01_unit/01_x.ipynb"
    nbformat.write(as_jupyter_saves(), path)
    assert main(["format", "--check"]) == 1
    assert main(["format"]) == 0
    assert main(["format", "--check"]) == 0
    notebook = read_notebook(path)
    assert [cell.id for cell in notebook.cells] == ["areas-how-large", "r", "how-large", "area-answer"]
    assert notebook.cells[0].source == "# 1.1 Areas\n\nHow large?"
    assert notebook.cells[1].metadata == {"tags": ["setup"]}
    assert notebook.cells[3].outputs == [] and notebook.cells[3].execution_count is None
    assert set(notebook.cells[3].metadata) == {"nbgrader"}
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert set(notebook.metadata.language_info) == {"name"}


def test_a_printed_copy_is_not_formatted(course, capsys):
    path = course / "notebooks/01_unit/01_x.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(as_jupyter_saves(), path)
    before = path.read_bytes()
    assert main(["format", str(path)]) == 1
    assert "is printed from source/" in capsys.readouterr().out and path.read_bytes() == before


def test_twice_is_as_once(course):
    path = course / "source/01_unit/01_x.ipynb"
    nbformat.write(as_jupyter_saves(), path)
    main(["format"])
    once = path.read_bytes()
    main(["format"])
    assert path.read_bytes() == once
    text = once.decode("utf-8")
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    assert canonical(read_notebook(path)) == read_notebook(path)


def test_ids_stay_when_a_cell_moves_and_differ_when_it_is_copied():
    first, second = new_markdown_cell("Same words", id="a1"), new_markdown_cell("Same words", id="b2")
    moved = canonical(make_notebook([second, make_cell("markdown", "same-words", "plain", None, "Other"), first]))
    assert [cell.id for cell in moved.cells] == ["same-words-b", "same-words", "same-words-c"]
    assert [cell.id for cell in canonical(moved).cells] == [cell.id for cell in moved.cells]


def test_the_name_given_in_the_create_assignment_panel_wins():
    cell = make_cell("code", "area-check", "check", 1, "assert True")
    cell.metadata.nbgrader.grade_id = "area-check-edge"
    assert canonical(make_notebook([cell])).cells[0].id == "area-check-edge"


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda cell: cell.metadata.nbgrader.update(locked=False), "which no role means"),
        (lambda cell: cell.metadata.nbgrader.update(task=True), "which no role means"),
        (lambda cell: cell.metadata.nbgrader.pop("points"), "has no points"),
        (lambda cell: cell.metadata.nbgrader.update(points="two"), "has no points"),
        (lambda cell: cell.update(id="x1") or cell.metadata.nbgrader.update(grade_id="c-1"), "needs a name of words"),
    ],
)
def test_what_has_no_canonical_form_is_named_and_left_alone(course, capsys, change, message):
    cell = make_cell("code", "area-check", "check", 1, "assert True")
    change(cell)
    path = course / "source/01_unit/01_x.ipynb"
    path.write_text(notebook_text(make_notebook([cell])), "utf-8")
    before = path.read_bytes()
    assert main(["format"]) == 1
    said = capsys.readouterr().out
    assert message in said and said.startswith("source/01_unit/01_x.ipynb")
    assert path.read_bytes() == before


def test_two_graded_cells_with_one_name_raw_cells_and_pasted_pictures_are_refused():
    pasted = new_markdown_cell("x", id="x", attachments={"a.png": {"image/png": "AAAA"}})
    with pytest.raises(ValueError, match="has a pasted picture"):
        canonical(make_notebook([pasted]))
    twins = make_notebook([make_cell("code", "a-check", "check", 1, "x")])
    twins.cells.append(make_cell("code", "a-check", "check", 1, "y"))
    with pytest.raises(ValueError, match="two cells have the id .a-check."):
        canonical(twins)
    with pytest.raises(ValueError, match="is a raw cell"):
        canonical(make_notebook([new_raw_cell("x", id="x")]))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"cells": [{}], "nbformat": 4}', '{"cells": [], "nbformat": 3}', "\xff"]
)
def test_a_file_that_is_no_notebook_is_named_and_the_others_go_on(course, capsys, text):
    folder = course / "source/01_unit"
    (folder / "01_bad.ipynb").write_text(text, "latin-1")
    nbformat.write(as_jupyter_saves(), folder / "02_good.ipynb")
    assert main(["format"]) == 1
    said = capsys.readouterr().out
    assert "01_bad.ipynb" in said and "formatted source/01_unit/02_good.ipynb" in said
