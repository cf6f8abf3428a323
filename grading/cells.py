"""Cells and their roles: the one table that says which nbgrader metadata a role means.

A notebook of this course has eight roles of cells. Authors write the role; the metadata
follows from it, so a cell cannot be half an answer or a test without points.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
WORD_ID = re.compile(r"[a-z]+(-[a-z]+)*")


@dataclass(frozen=True)
class Role:
    """What a role means for a cell: its type, nbgrader's three flags, its tags, how its id ends."""

    cell_type: str | None = None  # None: code or markdown
    flags: tuple[bool, bool, bool] | None = None  # grade, solution, locked; None: unknown to nbgrader
    tags: tuple[str, ...] = ()
    id_end: str = ""  # a regular expression
    example: str = ""

    @property
    def has_points(self) -> bool:
        return bool(self.flags and self.flags[0])


ROLES = {
    "plain": Role(),
    "setup": Role("code", tags=("setup",)),
    "predict": Role("code", tags=("predict",)),
    "task": Role("markdown", (False, False, True), id_end=r"-task", example="-task"),
    "given": Role("code", (False, False, True), id_end=r"-given", example="-given"),
    "answer": Role("code", (False, True, False), id_end=r"-answer", example="-answer"),
    "check": Role("code", (True, False, True), ("raises-exception",), r"-check(-[a-z]+)*", "-check or -check-xxx"),
    "essay": Role("markdown", (True, True, False), id_end=r"-why", example="-why"),
}


def nbgrader_metadata(cell_id: str, cell_type: str, role: str, points: float | None) -> dict | None:
    """The `nbgrader` entry of a cell with this role, or None for a plain cell."""
    if ROLES[role].flags is None:
        return None
    grade, solution, locked = ROLES[role].flags
    entry = {"cell_type": cell_type, "grade": grade, "grade_id": cell_id, "locked": locked}
    if grade:
        entry["points"] = int(points) if points == int(points) else points
    return entry | {"schema_version": 3, "solution": solution, "task": False}


def role_of(cell: NotebookNode) -> str:
    """The role that a cell's metadata means. Raises ValueError where no role means them.

    >>> cell = make_cell("code", "gemm-cost-answer", "answer", None, "x = 1")
    >>> role_of(cell)
    'answer'
    """
    entry = cell.metadata.get("nbgrader")
    if not entry:
        tags = cell.metadata.get("tags", [])
        return next((role for role in ("setup", "predict") if role in tags), "plain")
    flags = tuple(bool(entry.get(flag)) for flag in ("grade", "solution", "locked"))
    for name, role in ROLES.items():
        if role.flags == flags and role.cell_type == cell.cell_type and not entry.get("task"):
            return name
    raise ValueError(
        f"cell {cell.id!r} is a {cell.cell_type} cell with grade, solution, locked, task = "
        f"{', '.join(map(str, flags))}, {bool(entry.get('task'))}, which no role means"
    )


def points_of(cell: NotebookNode) -> float | None:
    """The points of a check or an essay; None where there are none or they are no number."""
    points = cell.metadata.get("nbgrader", {}).get("points")
    return points if isinstance(points, (int, float)) and not isinstance(points, bool) else None


def make_cell(cell_type: str, cell_id: str, role: str, points: float | None, source: str) -> NotebookNode:
    """A cell in canonical form: word id, metadata from its role, no outputs."""
    new = new_code_cell if cell_type == "code" else new_markdown_cell
    cell = new(source=source, id=cell_id)
    metadata = {}
    entry = nbgrader_metadata(cell_id, cell_type, role, points)
    if entry:
        metadata["nbgrader"] = entry
    if ROLES[role].tags:
        metadata["tags"] = list(ROLES[role].tags)
    cell.metadata = from_dict(metadata)
    return cell


def make_notebook(cells: list[NotebookNode]) -> NotebookNode:
    """A notebook around cells, with kernel and language and nothing else."""
    metadata = from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    notebook = new_notebook(cells=cells, metadata=metadata)
    notebook.nbformat_minor = 5
    return notebook


def canonical(notebook: NotebookNode) -> NotebookNode:
    """A copy without outputs, counts and editor metadata; ids in words; roles stay as they are.

    Raises ValueError for a cell that has no such form: no role means its metadata, it is raw,
    carries a pasted picture, or is graded and has no name.
    """
    ids = word_ids(notebook.cells)
    cells = []
    for cell, cell_id in zip(notebook.cells, ids, strict=True):
        if cell.cell_type not in ("code", "markdown"):
            raise ValueError(f"cell {cell.id!r} is a {cell.cell_type} cell; lessons have code and markdown cells")
        if cell.get("attachments"):
            raise ValueError(f"cell {cell.id!r} has a pasted picture; draw it with mlsys.viz instead")
        role = role_of(cell)
        if ROLES[role].has_points and points_of(cell) is None:
            raise ValueError(f"cell {cell.id!r} is a {role} cell and has no points")
        source = cell.source.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        cells.append(make_cell(cell.cell_type, cell_id, role, points_of(cell), source))
    return make_notebook(cells)


def word_ids(cells: list[NotebookNode]) -> list[str]:
    """The id of each cell: nbgrader's grade_id, else the cell's own, else words of its source.

    JupyterLab gives a new cell a random id; such a one is replaced once, by the first words
    of the cell, and then stays.
    """
    named = [_given_id(cell) for cell in cells]
    seen: set[str] = set()
    for cell, cell_id in zip(cells, named, strict=True):
        if cell_id and cell_id in seen:
            raise ValueError(f"two cells have the id {cell_id!r}; give one another name")
        if not cell_id and role_of(cell) in ("task", "given", "answer", "check", "essay"):
            name = cell.metadata.nbgrader.get("grade_id", "")
            raise ValueError(f"the {role_of(cell)} cell {name!r} needs a name of words, such as gemm-cost-task")
        seen.add(cell_id)
    ids = []
    for cell, cell_id in zip(cells, named, strict=True):
        cell_id = cell_id or _free_id(cell.source, seen)
        seen.add(cell_id)
        ids.append(cell_id)
    return ids


def _given_id(cell: NotebookNode) -> str:
    """The word id that the author gave, or "" if there is none."""
    candidates = [cell.metadata.get("nbgrader", {}).get("grade_id", "")] if role_of(cell) not in PLAIN else []
    return next((name for name in [*candidates, cell.get("id", "")] if WORD_ID.fullmatch(name)), "")


PLAIN = ("plain", "setup", "predict")


def _free_id(source: str, taken: set[str]) -> str:
    """An id made of the first words of a cell; a letter is added while it is taken.

    >>> _free_id("## Strides in bytes", {"strides-in-bytes"})
    'strides-in-bytes-b'
    """
    words = [word for word in re.findall(r"[a-z]+", source.lower()) if f"-{word}" not in _ROLE_ENDS]
    name = "-".join(words[:4]) or "cell"
    letters = [name, *(f"{name}-{letter}" for letter in "bcdefghijklmnopqrstuvwxyz")]
    while all(letter in taken for letter in letters):
        letters = [f"{letter}-{last}" for letter in letters for last in "abc"]
    return next(letter for letter in letters if letter not in taken)


_ROLE_ENDS = ("-task", "-given", "-answer", "-check", "-why")


def exercise_of(cell_id: str) -> str:
    """The exercise that a cell belongs to: the part of its id before the role.

    >>> exercise_of("gemm-cost-check-edge")
    'gemm-cost'
    >>> exercise_of("stride-explorer")
    ''
    """
    match = re.fullmatch(r"(.+?)-(task|given|answer|why|check(-[a-z]+)*)", cell_id)
    return match[1] if match else ""
