"""May a printed notebook be replaced? Only if nobody has written into it.

A copy is free to be replaced if what stands in its cells (not outputs, counts or editor
metadata) is what this tool printed, what git has for it, or what is about to be printed.
The tool remembers its last prints as digests in `.printed.json`, which is not in git.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from itertools import zip_longest
from pathlib import Path

from nbformat import NotebookNode

from .cells import role_of
from .files import parse_notebook, read_notebook, write_file

RECORD = ".printed.json"
REMEMBERED = 4  # prints of one notebook

Prints = list[list[str]]  # each a list of cells, a cell as "ID DIGEST"


def written(notebook: NotebookNode) -> list[str]:
    """The cells as "ID DIGEST"; the digest is of all that a person can have written in the cell."""
    cells = []
    for cell in notebook.cells:
        parts = [cell.cell_type, cell.source, cell.get("attachments", {}), cell.metadata.get("tags", [])]
        text = json.dumps(parts, sort_keys=True)
        cells.append(f"{cell.get('id', '')} {hashlib.sha256(text.encode()).hexdigest()[:20]}")
    return cells


def same(ours: list[str], theirs: list[str]) -> bool:
    """Do two lists of cells say the same? Ids do not count: some editors make new ones."""
    return [cell.split(" ")[-1] for cell in ours] == [cell.split(" ")[-1] for cell in theirs]


def prints_of(root: Path, target: str) -> Prints:
    """The last prints of a target; none where there is no readable record."""
    prints = _record(root).get(target)
    whole = isinstance(prints, list) and all(isinstance(cells, list) for cells in prints)
    return [[str(cell) for cell in cells] for cells in prints] if whole else []


def _record(root: Path) -> dict:
    try:
        record = json.loads((root / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def recorded(root: Path) -> list[str]:
    """Every target that was ever printed here."""
    return list(_record(root))


def remember(root: Path, target: str, notebook: NotebookNode) -> None:
    """Note a print *before* it is written: killed in between, the next run still knows its own work."""
    new = written(notebook)
    known = [old for old in prints_of(root, target) if old != new]
    record = _record(root) | {target: [*known, new][-REMEMBERED:]}
    write_file(root / RECORD, json.dumps(record, indent=0, sort_keys=True) + "\n")


def git_version(root: Path, target: str) -> str | None:
    """The file as the last commit has it; None without git, commit or file."""
    try:
        run = subprocess.run(["git", "show", f"HEAD:./{target}"], cwd=root, capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.decode("utf-8", "replace") if run.returncode == 0 else None


def is_own_print(root: Path, target: str) -> bool:
    """Does the target hold what this tool printed, and nothing else?"""
    try:
        found = written(read_notebook(root / target))
    except ValueError:
        return False
    return any(same(found, cells) for cells in prints_of(root, target))


def obstacle(root: Path, target: str, new: NotebookNode) -> str | None:
    """Why a target must stay as it is, with the first cell that differs; None if it may be replaced."""
    path = root / target
    if not path.exists():
        return None
    try:
        found = written(read_notebook(path))
    except ValueError as error:
        return f"{target} is kept, because it cannot be read: {error}"
    known = [written(new), *prints_of(root, target)]
    committed = git_version(root, target)
    if committed is not None:
        try:
            known.append(written(parse_notebook(committed, "the committed copy")))
        except ValueError:
            pass
    if any(same(found, cells) for cells in known):
        return None
    nearest = max(known, key=lambda cells: len(set(cells) & set(found)))
    return f"{target} is kept, because somebody has written in it: {first_difference(found, nearest)}"


def first_difference(found: list[str], printed: list[str]) -> str:
    """Half a sentence about the first cell that is not as it was printed.

    >>> first_difference(["intro 1", "mine 5", "recap 2"], ["intro 1", "recap 2"])
    "cell 'mine' was added"
    """
    ids = [{cell.split(" ")[0] for cell in cells} for cells in (found, printed)]
    for theirs, ours in zip_longest(found, printed, fillvalue=" "):
        if theirs == ours:
            continue
        name, old = theirs.split(" ")[0], ours.split(" ")[0]
        if name and name not in ids[1]:
            return f"cell {name!r} was added"
        if old and old not in ids[0]:
            return f"cell {old!r} is gone"
        return f"cell {name!r} {'differs' if name == old else 'was moved'}"
    return "its cells differ"


def is_unanswered(found: NotebookNode, new: NotebookNode) -> bool:
    """Are all places where a reader writes as in the new print, and no cell of the reader's own there?"""
    ours = {cell.id: cell for cell in new.cells}
    if {cell.id for cell in found.cells} != set(ours) or len(found.cells) != len(new.cells):
        return False
    places = [cell for cell in found.cells if role_of(ours[cell.id]) in ("answer", "essay", "predict")]
    return all(cell.source == ours[cell.id].source for cell in places)
