"""`nbgrader generate_feedback` and Formgrader's button: the same page as `python -m grading grade` writes.

nbgrader's own page would show the hidden tests and run what a student wrote. This one is built from the autograded notebook,
which carries the verdicts on its checks, and from the marks and comments in the gradebook.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbconvert.exporters import HTMLExporter

from .feedback import Pages
from .ledger import Ledger
from .places import places_of
from .results import missing


class FeedbackExporter(HTMLExporter):
    """In place of nbconvert's: takes the path of an autograded notebook and gives the feedback page."""

    def __init__(self, **options):
        super().__init__(**options)
        self.read: dict[str, tuple] = {}  # assignment -> masters, pages and rows; one command reads each once

    def of_assignment(self, assignment: str) -> tuple:
        """The instructor's notebooks, the pages and the ledger's rows."""
        if assignment not in self.read:
            places = places_of(Path(self.parent.coursedir.root))
            masters = {name: nbformat.read(path, as_version=4) for name, path in places.masters(assignment).items()}
            ledger = Ledger(places.db_url, places.course_id)
            try:
                self.read[assignment] = masters, Pages(ledger, assignment), ledger.rows(assignment)
            finally:
                ledger.close()
        return self.read[assignment]

    def from_filename(self, filename: str, resources: dict | None = None, **options):
        resources = self._init_resources(resources or {}) | {"output_extension": ".html"}
        about = resources["nbgrader"]
        student, name = about["student"], about["notebook"]
        masters, pages, rows = self.of_assignment(about["assignment"])
        notebook = nbformat.read(filename, as_version=4)
        result = notebook.metadata.get("sealed", {})
        if "checks" not in result:  # a page in place of a notebook that could not be graded, or one that nobody graded
            last = rows[student][-1].results if student in rows else {}
            result = last.get(name) or missing(masters[name], "", "", "")
        return pages.page(student, name, masters[name], notebook, result), resources
