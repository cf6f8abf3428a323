"""Rules for lessons: the fixed parts in their order, and the sizes that keep one readable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nbformat import NotebookNode

from .cells import role_of
from .lint_cells import student_view
from .lint_exercises import exercises

CELLS = (35, 60)
WORDS = (1200, 2500)
EXERCISES = (2, 4)
LONGEST, SHORT, SETUP = 25, 6, 8  # lines of a code cell that are not blank
TITLE = {
    "a title such as '# 3.2 Warps and divergence'": r"\A# \d+\.\d+ \S",
    "'You will be able to'": r"you will be able to",
    "'You need'": r"you need",
    "the minutes it takes": r"\d+\s+minutes",
}


def lesson_faults(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """All rules for a lesson, one after the other."""
    for rule in (size_faults, title_faults, code_faults, takeaway_faults, order_faults):
        yield from rule(notebook)


def size_faults(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Cells, words and exercises lie in their ranges."""
    counts = {
        "cells": (len(notebook.cells), CELLS),
        "words": (words(notebook), WORDS),
        "exercises": (len(exercises(notebook)), EXERCISES),
    }
    for what, (count, (least, most)) in counts.items():
        if not least <= count <= most:
            yield "", f"it has {count} {what}, expected {least} to {most}"


def words(notebook: NotebookNode) -> int:
    """Words of prose: what stands between blanks and has a letter or a digit; addresses of links do not count."""
    prose = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    prose = re.sub(r"\]\([^)]*\)", "]", prose)
    return sum(any(letter.isalnum() for letter in word) for word in prose.split())


def title_faults(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """The first cell says what the lesson is, gives, needs and takes."""
    first = notebook.cells[0] if notebook.cells else None
    for what, pattern in TITLE.items():
        if first is None or first.cell_type != "markdown" or not re.search(pattern, first.source, re.IGNORECASE):
            yield first.id if first else "", f"the first cell has not {what}"


def code_faults(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """No code cell is long, most are short, as a student sees them; set-up is the first and is small."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    lines = {cell.id: sum(bool(line.strip()) for line in student_view(cell.source).split("\n")) for cell in code}
    for cell_id, count in lines.items():
        if count > LONGEST:
            yield cell_id, f"it has {count} lines, at most {LONGEST}"
    short = sum(count <= SHORT for count in lines.values())
    if 2 * short < len(code):
        yield "", f"{short} of {len(code)} code cells have {SHORT} lines or fewer, expected at least half"
    setups = [cell for cell in code if role_of(cell) == "setup"]
    if len(setups) != 1 or setups[0] is not code[0]:
        yield "", f"it has {len(setups)} set-up cells, expected 1, the first code cell"
    elif lines[setups[0].id] > SETUP:
        yield setups[0].id, f"set-up has {lines[setups[0].id]} lines, at most {SETUP}"


def takeaway_faults(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """A takeaway is one line of a quote and has a number in it."""
    for cell in notebook.cells:
        lines = cell.source.split("\n") if cell.cell_type == "markdown" else []
        for number, line in enumerate(lines):
            if "**Takeaway" not in line:
                continue
            if not line.startswith("> **Takeaway.** ") or lines[number + 1 : number + 2] not in ([], [""]):
                yield cell.id, "a takeaway is one line that begins with '> **Takeaway.** '"
            elif not re.search(r"\d", line):
                yield cell.id, "a takeaway has a number in it"


def order_faults(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """The fixed parts are all there and follow each other."""
    before, at = "", -1
    for part, place in parts(notebook).items():
        if place is None:
            yield "", f"it has no {part}"
        elif place < at:
            yield notebook.cells[place].id, f"{part} comes before {before}"
        else:
            before, at = part, place


def parts(notebook: NotebookNode) -> dict[str, int | None]:
    """Where each fixed part stands, in the order in which they belong; None where it is missing."""
    graded = [place for exercise in exercises(notebook).values() for place in exercise.all_places]
    shows = widget_cells(notebook)

    def first(test) -> int | None:
        return next((place for place, cell in enumerate(notebook.cells) if test(cell)), None)

    def prose(pattern: str) -> int | None:
        return first(lambda cell: cell.cell_type == "markdown" and re.search(pattern, cell.source, re.I | re.M))

    return {
        "set-up": first(lambda cell: role_of(cell) == "setup"),
        "prediction": first(lambda cell: role_of(cell) == "predict"),
        "takeaway": prose(r"^> \*\*Takeaway"),
        "widget": shows[0] if shows else None,
        "'What you should have seen' after the widget": prose("you should have seen"),
        "exercise": max(graded, default=None),
        "'Where the model stops'": prose(r"^#+ .*where the model stops"),
        "recap": prose(r"^#+ .*recap"),
    }


def widget_cells(notebook: NotebookNode) -> list[int]:
    """Places of the cells that call something imported from mlsys.widgets."""
    imported, places = set(), []
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                inside = (node.module or "").startswith("mlsys.widgets")
                imported |= {name.asname or name.name for name in node.names if inside or name.name == "widgets"}
            elif isinstance(node, ast.Call) and _root(node.func) in imported:
                places.append(place)
    return places


def _root(node: ast.AST) -> str:
    """The name that an expression such as widgets.Strides begins with."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
