"""Notebooks as text: what an author edits, one header line above each cell.

    %%%% md intro
    # 1.1 Tensors
    %%%% code gemm-cost-check check 2
    check.function(...)

The header is `%%%% KIND ID [ROLE [POINTS]]`. The round trip is exact: the text of a
canonical notebook turned back gives the same notebook, ids included.
"""

from __future__ import annotations

import re

from nbformat import NotebookNode

from .cells import ROLES, WORD_ID, make_cell, make_notebook, points_of, role_of

MARK = "%%%% "
KINDS = {"md": "markdown", "code": "code"}
POINTS = re.compile(r"\d+(\.\d+)?")


def to_text(notebook: NotebookNode) -> str:
    """The text form of a notebook. Raises ValueError if a cell's source has a line that looks like a header."""
    parts = []
    for cell in notebook.cells:
        source = cell.source.strip("\n")
        if any(line.startswith(MARK) for line in source.split("\n")):
            raise ValueError(f"cell {cell.id!r} has a line that begins with {MARK!r}, which is kept for headers")
        header = ["%%%%", "code" if cell.cell_type == "code" else "md", cell.id]
        role, points = role_of(cell), points_of(cell)
        header += [role] * (role != "plain")
        header += [str(points)] * (points is not None)
        parts.append(" ".join(header) + "\n" + source + "\n")
    return "\n".join(parts)


def from_text(text: str) -> NotebookNode:
    """The notebook that a text form means. Raises ValueError that names the line of the first fault."""
    cells, seen = [], {}
    lines = text.replace("\r\n", "\n").split("\n")
    starts = [n for n, line in enumerate(lines) if line.startswith(MARK)]
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        raise ValueError(f"line 1: the text has to begin with a header such as '{MARK}md intro'")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        kind, cell_id, role, points = parse_header(lines[start], start + 1)
        if cell_id in seen:
            raise ValueError(f"line {start + 1}: the id {cell_id!r} is already used in line {seen[cell_id]}")
        seen[cell_id] = start + 1
        source = "\n".join(lines[start + 1 : end]).strip("\n")
        cells.append(make_cell(KINDS[kind], cell_id, role, points, source))
    return make_notebook(cells)


def parse_header(line: str, number: int) -> tuple[str, str, str, float | None]:
    """Kind, id, role and points of one header line; number is its line, for the message."""
    words = line.split()[1:]
    if not 2 <= len(words) <= 4 or words[0] not in KINDS:
        raise ValueError(f"line {number}: {line!r} is not '{MARK}KIND ID [ROLE [POINTS]]' with KIND md or code")
    kind, cell_id, role = words[0], words[1], words[2] if len(words) > 2 else "plain"
    if not WORD_ID.fullmatch(cell_id):
        raise ValueError(f"line {number}: the id {cell_id!r} is not lower-case words joined by dashes")
    if role not in ROLES:
        raise ValueError(f"line {number}: the role {role!r} is none of {', '.join(ROLES)}")
    meant = ROLES[role]
    if meant.has_points != (len(words) == 4):
        raise ValueError(f"line {number}: points belong to the roles check and essay, and to these always")
    if meant.has_points and not POINTS.fullmatch(words[3]):
        raise ValueError(f"line {number}: {words[3]!r} is not a number of points, such as 2 or 0.5")
    if meant.cell_type not in (None, KINDS[kind]):
        raise ValueError(f"line {number}: a cell of kind {kind!r} cannot have the role {role!r}")
    if not re.fullmatch(f".*{meant.id_end}" if meant.id_end else ".*", cell_id):
        raise ValueError(f"line {number}: the id of a {role} cell ends in {meant.example}, not {cell_id!r}")
    return kind, cell_id, role, float(words[3]) if meant.has_points else None
