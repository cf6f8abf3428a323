"""Sealed execution inside nbgrader: `nbgrader autograde` and Formgrader's button use it by configuration alone.

    c.Autograde.exporter_class = "grading.sealed.preprocessors.SubmissionExporter"
    c.Autograde.sanitize_preprocessors = ["grading.sealed.preprocessors.Rebuild"]
    c.Autograde.autograde_preprocessors = [
        "grading.sealed.preprocessors.SealedExecute",
        "grading.sealed.preprocessors.SaveSealedGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]

Manual marks, late penalties and partial credit stay nbgrader's own. A file that is no notebook ends with 0
points and a sentence; a fault of the grader ends as a cell to be marked by hand.
"""

from __future__ import annotations

import atexit
import os
from functools import cache
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from traitlets import Unicode

from .execute import Grader, opened
from .limits import Limits
from .outputs import with_note
from .rebuild import rebuild
from .report import FAULT

_graders: dict[tuple, Grader] = {}


def grader(level: str) -> Grader:
    """The warm grader of this process; a forked worker opens its own."""
    key = (os.getpid(), level)
    if key not in _graders:
        _graders[key] = Grader(level if level == "auto" else int(level))
        atexit.register(_graders[key].close)
    return _graders[key]


def master_of(step: NbGraderPreprocessor, resources: dict) -> NotebookNode:
    """The instructor's notebook of the one that is being graded."""
    about = resources["nbgrader"]
    folder = step.parent.parent.coursedir  # of the converter that runs the exporter that runs this step
    path = Path(folder.format_path(folder.source_directory, ".", about["assignment"]), f"{about['notebook']}.ipynb")
    return nbformat.read(path, as_version=4)


@cache
def seeds_of(root: str):
    """What draws the seed of a student's hidden inputs: the same course secret that `python -m grading grade` uses."""
    from ..records.places import places_of
    from ..records.store import Store

    return Store(places_of(Path(root)).store).seed


class SubmissionExporter(NotebookExporter):
    """Reads a submission without believing that it is a notebook; what it is, the first step finds out."""

    def from_filename(self, filename: str, resources: dict | None = None, **options):
        if not getattr(self.parent, "_sanitizing", False):
            return super().from_filename(filename, resources, **options)
        empty = nbformat.v4.new_notebook()
        resources = dict(resources or {}, sealed_file=str(filename))
        return self.from_notebook_node(empty, resources=resources, **options)


class Rebuild(NbGraderPreprocessor):
    """nbgrader's sanitize step: the master with the student's answers, and no old score left in the gradebook."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Read the file that was handed in and put its answers into the master."""
        about = resources["nbgrader"]
        forget_scores(about)
        _, cells, problem = opened(resources["sealed_file"], Limits())
        rebuilt = rebuild(master_of(self, resources), cells, about["student"])
        sentences = (problem,) if problem else rebuilt.repairs
        for sentence in sentences:
            self.log.warning("%s: %s", about["student"], sentence)
        return with_note(rebuilt.notebook, sentences), resources


def forget_scores(about: dict) -> None:
    """Take back the automatic scores of an earlier version; until there are new ones the cells need a look."""
    with Gradebook(about["db_url"]) as book:
        notebook = book.find_submission_notebook(about["notebook"], about["assignment"], about["student"])
        for grade in notebook.grades:
            grade.auto_score, grade.needs_manual_grade = None, True
        book.db.commit()


class SealedExecute(NbGraderPreprocessor):
    """In place of nbgrader's Execute: answers in the sandbox, checks in another process."""

    level = Unicode("auto", help="auto (4, else 3, else 2), 4, 3, 2, or 1: no isolation").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Grade the rebuilt notebook and put all outputs into it."""
        about = resources["nbgrader"]
        seed = bytes.fromhex(seeds_of(self.parent.parent.coursedir.root)(about["assignment"], about["student"]))
        report = grader(self.level).grade(master_of(self, resources), nb, about["student"], seed)
        self.log.info("Isolation level %s; %s of %s points", report.level, report.score, report.max_score)
        for check in report.checks:
            if check.outcome == FAULT:
                self.log.warning("%s, %s: %s: %s", about["student"], check.cell, FAULT, check.message)
        return report.notebook, resources


class SaveSealedGrades(SaveAutoGrades):
    """nbgrader's SaveAutoGrades; a fault of the grader gives no score at all but a cell to be marked by hand."""

    def _add_score(self, cell: NotebookNode, resources: dict) -> None:
        super()._add_score(cell, resources)
        if any(output.get("ename") == "GraderFault" for output in cell.get("outputs", [])):
            name = cell.metadata["nbgrader"]["grade_id"]
            grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
            grade.auto_score, grade.needs_manual_grade = None, True
            self.gradebook.db.commit()
