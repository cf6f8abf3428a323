"""Publish: the autograded notebook where Formgrader looks for it, by one rename."""

from __future__ import annotations

import contextlib
import uuid

import nbformat
from nbformat.v4 import new_markdown_cell, new_notebook

from .collect import swap_in
from .feedback import SECRET
from .ledger import Job
from .places import Places
from .reading import time_of
from .store import Store, digest


def keep_notebooks(places: Places, store: Store, job: Job, results: dict[str, dict]) -> dict[str, dict]:
    """The results with each autograded notebook in the store, and its name there in place of its text."""
    kept = {}
    for name, result in results.items():
        text = result["notebook"] or stand_in(places, job, name, result)
        kept[name] = {key: value for key, value in result.items() if key != "notebook"} | {
            "object": store.put(text.encode("utf-8", "replace"))
        }
    return kept


def stand_in(places: Places, job: Job, name: str, result: dict) -> str:
    """A page for a submission that holds no notebook: the printed assignment with a sentence on top."""
    note = new_markdown_cell(f"**Not graded.** {result['problem']}", id="not-graded")
    path = (
        places.root
        / places.config.CourseDirectory.get("release_directory", "release")
        / job.assignment
        / f"{name}.ipynb"
    )
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError):
        notebook = new_notebook()
    notebook.cells.insert(0, note)
    return nbformat.writes(notebook)


def is_published(places: Places, student: str, assignment: str, results: dict[str, dict]) -> bool:
    """Whether the folder for Formgrader holds what the ledger says."""
    folder = places.autograded / student / assignment
    for name, result in results.items():
        try:
            if digest((folder / f"{name}.ipynb").read_bytes()) != result["object"]:
                return False
        except OSError:
            return False
    return True


def publish(
    places: Places, store: Store, student: str, assignment: str, results: dict[str, dict], claimed: str
) -> None:
    """Put the autograded notebooks of a submission in place."""
    fresh = places.staging / f"autograded-{uuid.uuid4().hex}"
    fresh.mkdir()
    for name, result in results.items():
        (fresh / f"{name}.ipynb").write_bytes(store.get(result["object"]))
    when = time_of(claimed)
    if when:  # in the one form that nbgrader reads as it is meant: another it may look up as a file
        (fresh / "timestamp.txt").write_text(f"{when.isoformat(' ', 'microseconds')} UTC", encoding="utf-8")
    swap_in(fresh, places.autograded / student / assignment, places.staging)


def released(places: Places, assignment: str) -> tuple[int, int]:
    """Of the feedback pages of an assignment: how many `nbgrader release_feedback` handed out, how many it has not as they are.

    It keeps a page in the exchange under a name that it makes from the submission's secret.
    """
    from nbgrader.utils import notebook_hash

    out, behind, folder = 0, 0, places.inbound.parent / "feedback"
    for page in places.feedback.glob(f"*/{assignment}/*.html"):
        with contextlib.suppress(OSError, ValueError):
            secret = (page.parent / SECRET).read_text(encoding="utf-8")
            copy = folder / f"{notebook_hash(secret=secret, notebook_id=page.stem)}.html"
            out += copy.is_file()
            behind += not copy.is_file() or copy.read_bytes() != page.read_bytes()
    return out, behind
