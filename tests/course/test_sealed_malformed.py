"""Files that are no notebook, or one that lost or changed its marks: a sentence, and the points that the answers earned."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell

sys.path.insert(0, str(Path(__file__).parent))

from sealed_kit import CHECK, RIGHT, WRONG, both, graded, grader, level, points, said, start_page, submission, verdict  # noqa: E402

pytestmark = pytest.mark.skipif(level() == 0, reason="no isolation level holds on this machine")

FILES = {
    "M01": b"",
    "M03": random.Random(3).randbytes(4096),
    "M06": b"[" * 200_000 + b"]" * 200_000,
    "M06b": b'{"cells": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "list": b"[1, 2]",
    "cells are text": b'{"cells": "x", "nbformat": 4}',
    "conflict": b'{\n"cells": [\n<<<<<<< HEAD\n"a"\n=======\n"b"\n>>>>>>> mine\n]}',
    "utf-16": '{"cells": []}'.encode("utf-16"),
    "huge": b" " * (9 << 20),
}


@pytest.mark.parametrize("case", list(FILES))
def test_a_file_that_is_no_notebook(case, tmp_path):
    path = tmp_path / "00_start_here.ipynb"
    path.write_bytes(FILES[case])
    report = grader().grade(start_page(), path, "ada")
    assert points(report) == {CHECK: 0} and report.problem and "submit it again" in report.problem
    assert report.problem in report.notebook.cells[0].source and verdict(report).message == report.problem


def metadata(notebook, name=CHECK):
    """The nbgrader entry of a cell."""
    return next(cell for cell in notebook.cells if cell.id == name).metadata["nbgrader"]


def cell_of(notebook, name):
    return next(cell for cell in notebook.cells if cell.id == name)


def lost_ids(notebook):
    for cell in notebook.cells:
        cell.pop("id")


def all_lost(notebook):
    for cell in notebook.cells:
        cell.pop("id")
        cell["metadata"] = {}


def version_three(notebook):
    cells = [{"cell_type": c.cell_type, "metadata": {}, ("input" if c.cell_type == "code" else "source"): c.source} for c in notebook.cells]
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": cells}]}


def colab(notebook):
    notebook.metadata = {"colab": {"provenance": []}, "accelerator": "GPU"}
    for n, cell in enumerate(notebook.cells):
        cell["metadata"] = {"id": f"x{n}", "nbgrader": cell.metadata.get("nbgrader", {})}
        cell["source"] = cell.source.splitlines(True)
        cell.pop("id")


def set_in(key, value, name=CHECK):
    return lambda notebook: metadata(notebook, name).__setitem__(key, value)


def schema(version):
    def change(notebook):
        for cell in notebook.cells:
            if "nbgrader" in cell.metadata:
                cell.metadata.nbgrader["schema_version"] = version

    return change


CHANGES = {  # the answer is right, and every one of these gets its points
    "T02": lambda n: cell_of(n, CHECK).metadata.__setitem__("tags", ["raises-exception"]),
    "T04": set_in("points", float("nan")),
    "T04b": set_in("points", -5),
    "T04c": set_in("points", "many"),
    "T05": lambda n: cell_of(n, CHECK).__setitem__("cell_type", "markdown"),
    "T06": lambda n: cell_of(n, CHECK).__setitem__("source", "pass"),
    "T08": lambda n: cell_of(n, CHECK).metadata.pop("nbgrader"),
    "T10": lambda n: metadata(n).update(grade=False, solution=True, locked=False),
    "T11": schema(1),
    "T11b": schema(999),
    "T12": lambda n: n.cells.append(new_code_cell("1 / 0", id="x") | {"id": "../../etc/x"}),
    "T14": lambda n: n.cells.reverse(),
    "T07": lambda n: n.cells.remove(cell_of(n, CHECK)),
    "renamed": set_in("grade_id", "other", "gpus-needed-answer"),
    "no ids": lost_ids,
    "all lost": all_lost,
    "format 3": version_three,
    "Colab": colab,
    "no kernel": lambda n: n.__setitem__("metadata", {}),
    "foreign kernel": lambda n: n.metadata.__setitem__("kernelspec", {"name": "ir", "display_name": "R", "language": "R"}),
    "surrogate": lambda n: n.cells.append(new_code_cell("'\ud800'")),
    "windows lines": lambda n: cell_of(n, "gpus-needed-answer").__setitem__("source", RIGHT.replace("\n", "\r\n")),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CHANGES))
def test_changed_around_a_right_answer(case):
    def change(notebook):
        result = CHANGES[case](notebook)
        return result if case == "format 3" else None

    report = graded(RIGHT, change=change)
    assert points(report) == {CHECK: 2}, (report.checks, report.repairs)
    json.dumps(report.notebook).encode()
    if case in ("T08", "T07", "all lost"):
        assert "came without" in report.repairs[0] and CHECK in report.repairs[0]


@pytest.mark.parametrize("case", ["T02", "T04b", "T05", "T06", "T08", "T10", "T07"])
def test_changed_around_a_wrong_answer(case):
    report = graded(WRONG, change=lambda notebook: CHANGES[case](notebook) and None)
    assert points(report) == {CHECK: 0}


def test_doubled_answer():
    """T09: the first copy with an answer is graded; the other is shown and does not run."""

    def change(notebook):
        place = notebook.cells.index(cell_of(notebook, "gpus-needed-answer"))
        notebook.cells.insert(place + 1, notebook.cells[place] | {"source": WRONG})

    report = graded(RIGHT, change=change)
    assert points(report) == {CHECK: 2} and "more than once" in report.repairs[0]
    assert "second copy of gpus-needed-answer" in str(report.notebook)


def test_answer_in_a_new_cell():
    """T15: an added cell runs where it stands, so a definition before the check counts."""

    def change(notebook):
        notebook.cells.insert(notebook.cells.index(cell_of(notebook, "gpus-needed-answer")) + 1, new_code_cell(RIGHT))

    assert points(graded(change=change)) == {CHECK: 2}


LIKE = {"row-means-check": 4, "row-means-check-edge": 1}


@pytest.mark.parametrize(
    "source", ["def kibibytes(n:\n", "%%bash\necho hi\n", "%%R\nx <- 1\n", "!rm -rf /\n", "x = '\0'\n", "\x1b[31m\n", "quit(\n"],
    ids=["M14", "M15", "M15b", "shell", "M16", "M16b", "unclosed"],
)  # fmt: skip
def test_one_cell_does_not_parse(source):
    report = both(kibibytes=source)
    assert points(report) == {"kibibytes-check": 0} | LIKE
    assert "\x1b" not in str(report.notebook.cells[0:0]) + said(report)


def test_grading_twice_gives_the_same():
    """The graded notebook, handed in again, gets the same points; so does the same file."""
    first = both(kibibytes="def kibibytes(n, itemsize): return 0\n")
    again = grader().grade(start_page(), submission(start_page(), {"gpus-needed-answer": RIGHT}), "ada")
    third = grader().grade(start_page(), again.notebook, "ada")
    assert first.score == 5 and again.score == third.score == 2 and not third.repairs
