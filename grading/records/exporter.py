"""`nbgrader generate_feedback` and Formgrader's button: the same page as `python -m grading grade` writes.

nbgrader's own page would show the hidden tests and run what a student wrote. This one is built from the autograded notebook,
which carries the verdicts on its checks, and from the marks and comments in the gradebook.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode

from ..sealed.report import NOT_ATTEMPTED
from .feedback import page
from .ledger import Ledger
from .places import places_of
from .results import graded_cells


class FeedbackExporter(HTMLExporter):
    """In place of nbconvert's: takes the path of an autograded notebook and gives the feedback page."""

    def from_filename(self, filename: str, resources: dict | None = None, **options):
        resources = self._init_resources(resources or {}) | {"output_extension": ".html"}
        about = resources["nbgrader"]
        student, assignment, name = about["student"], about["assignment"], about["notebook"]
        places = places_of(Path(self.parent.coursedir.root))
        master = nbformat.read(places.masters(assignment)[name], as_version=4)
        notebook = nbformat.read(filename, as_version=4)
        ledger = Ledger(places.db_url, places.course_id)
        try:
            marks, comments = ledger.scores(assignment).get(student, {}), ledger.comments(assignment).get(student, {})
            late = ledger.penalties(assignment).get(student, {}).get(name, 0.0)
            result = notebook.metadata.get("sealed", {})
            if "checks" not in result:  # a page in place of a notebook that could not be graded
                rows = ledger.rows(assignment).get(student)
                result = rows[-1].results.get(name) if rows else None
        finally:
            ledger.close()
        mine = {cell: mark for (book, cell), mark in marks.items() if book == name}
        said = {cell: text for (book, cell), text in comments.items() if book == name}
        return page(f"{assignment}/{name}", master, notebook, result or ungraded(master), mine, said, late), resources


def ungraded(master: NotebookNode) -> dict:
    """The verdicts on a notebook that nobody has graded in the sandbox."""
    checks = [
        {"cell": cell, "outcome": NOT_ATTEMPTED, "points": 0.0, "max_points": most, "message": "", "hidden": False}
        for cell, most in graded_cells(master).items()
    ]
    return {"problem": "", "repairs": [], "checks": checks}
