"""The assignment in the gradebook: its notebooks, cells and points, as `nbgrader generate_assignment` writes them."""

from __future__ import annotations

import logging
from pathlib import Path

import nbformat

from .ledger import Ledger
from .places import Places
from .results import graded_cells


def register(places: Places, ledger: Ledger, assignment: str, masters: dict[str, Path]) -> None:
    """Make sure that the gradebook knows the assignment as source/ has it. ValueError if it knows another one."""
    notebooks = {name: nbformat.read(path, as_version=4) for name, path in masters.items()}
    want = {(name, cell): most for name, master in notebooks.items() for cell, most in graded_cells(master).items()}
    have = ledger.cells(assignment)
    if not have:
        save(places, assignment, notebooks)
        have = ledger.cells(assignment)
    have = {key: most for key, most in have.items() if key[0] in notebooks}
    checks = {key: most for key, most in have.items() if key in want}
    gone = sorted(cell for name, cell in want.keys() - have.keys())
    changed = sorted(cell for (name, cell), most in want.items() if checks.get((name, cell), most) != most)
    if gone or changed:
        names = ", ".join(gone + changed)
        raise ValueError(
            f"the gradebook has {assignment} with other cells or points than source/ ({names}). "
            f"Run: nbgrader generate_assignment {assignment} --force"
        )


def save(places: Places, assignment: str, notebooks: dict) -> None:
    """Write an assignment's cells through nbgrader's own steps; nothing is printed to assignments/."""
    from nbgrader import preprocessors as steps
    from nbgrader.api import Gradebook

    logging.getLogger("traitlets").setLevel(logging.ERROR)
    with Gradebook(places.db_url, places.course_id) as book:
        book.update_or_create_assignment(assignment)
    for name, notebook in notebooks.items():
        about = {"student": ".", "assignment": assignment, "notebook": name, "db_url": places.db_url}
        resources = {"nbgrader": about, "unique_key": name}
        for step in (steps.LockCells, steps.ClearSolutions, steps.ClearOutput, steps.ComputeChecksums, steps.SaveCells):
            notebook, resources = step(config=places.config).preprocess(notebook, resources)
