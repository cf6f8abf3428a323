"""What is in a file that a student handed in: its cells as text, read without trusting anything.

Any file ends as a list of cells or as one sentence that the student can act on. Notebook formats 3 and
4 are understood; Colab, VS Code and tools that drop ids or marks leave less to go by, not less to read.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AGAIN = "Open it in JupyterLab, check that it shows your work, save it and submit it again."
MOST_CELLS = 30_000


class Unreadable(ValueError):
    """The file is no notebook; the text says why and what to do."""


@dataclass(frozen=True)
class Cell:
    """A cell of a submission: nothing but its kind, its text and its two possible names."""

    kind: str  # code or markdown
    text: str
    grade_id: str | None = None
    cell_id: str | None = None


def read_file(path: str | Path, most_bytes: int) -> bytes:
    """The bytes of a regular file, never of a link, a pipe or a file that is too large."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise Unreadable(f"The notebook file cannot be opened ({error.strerror}). Submit a plain file.") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Unreadable("The notebook is a folder, link or device. Submit a plain file.")
    with os.fdopen(handle, "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise Unreadable(
            f"The file has more than {most_bytes >> 20} MB. Clear all outputs (menu Edit), save it and submit it again."
        )
    return data


def cells_of_bytes(data: bytes) -> list[Cell]:
    """The cells of a notebook file. Raises Unreadable."""
    if not data.strip():
        raise Unreadable(f"The file is empty, so it is not a notebook. {AGAIN}")
    if b"\n<<<<<<< " in data:
        raise Unreadable(f"The file holds marks of a merge conflict (<<<<<<<), so it is not a notebook. {AGAIN}")
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise Unreadable(f"The file is nested too deeply to be a notebook. {AGAIN}") from None
    except ValueError:
        raise Unreadable(f"The file is not a notebook: it is not JSON in UTF-8. {AGAIN}") from None
    return cells_of(content)


def cells_of(content: Any) -> list[Cell]:
    """The cells of a parsed notebook of format 3 or 4. Raises Unreadable."""
    cells = None
    if isinstance(content, Mapping):
        cells = content.get("cells")
        if cells is None and isinstance(content.get("worksheets"), list):
            sheets = (sheet for sheet in content["worksheets"] if isinstance(sheet, Mapping))
            cells = [cell for sheet in sheets for cell in sheet.get("cells") or []]
    if not isinstance(cells, list):
        raise Unreadable(f"The file is not a notebook: it has no list of cells. {AGAIN}")
    if len(cells) > MOST_CELLS:
        raise Unreadable(f"The notebook has {len(cells)} cells; {MOST_CELLS} are allowed. {AGAIN}")
    return [_cell(cell) for cell in cells if isinstance(cell, Mapping)]


def _cell(cell: Mapping) -> Cell:
    kind = "code" if cell.get("cell_type") == "code" else "markdown"
    metadata = cell.get("metadata")
    marks = metadata.get("nbgrader") if isinstance(metadata, Mapping) else None
    grade_id = marks.get("grade_id") if isinstance(marks, Mapping) else None
    text = cell.get("source", cell.get("input", ""))
    if isinstance(text, list):
        text = "".join(line for line in text if isinstance(line, str))
    return Cell(kind, clean(text) if isinstance(text, str) else "", _name(grade_id), _name(cell.get("id")))


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= 200 else None


def clean(text: str) -> str:
    """Text that can be written as UTF-8, with one kind of line end.

    >>> clean("a\\r\\nb\\ud800")
    'a\\nb?'
    """
    return text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "replace").decode()
