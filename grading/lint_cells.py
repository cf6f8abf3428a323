"""Rules for single cells: role and id agree, regions are closed, code runs anywhere."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from nbformat import NotebookNode

from .cells import ROLES, WORD_ID, exercise_of, points_of, role_of

# marker: roles of the cells in which it may stand
REGIONS = {"SOLUTION": ("answer", "essay"), "HIDDEN TESTS": ("check",)}
MARKER = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)")
STALLS = {"interact", "interact_manual", "interactive", "interactive_output", "Output"}
PLACES = "home|root|Users|tmp|usr|opt|var|etc|mnt|srv|work"
ABSOLUTE = re.compile(rf"""(?:^|(?<=[\s"'`(=]))(?:/(?:{PLACES})/|[A-Za-z]:\\)[^\s"'`)]*""")
PICTURE = re.compile(r"!\[[^\]]*\]\((https?:|data:)|<img\b|data:image/", re.IGNORECASE)


def cell_faults(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Faults that are seen in a cell alone, and ids that are used twice."""
    for cell_id, count in Counter(cell.id for cell in notebook.cells).items():
        if count > 1:
            yield cell_id, f"{count} cells have this id"
    for cell in notebook.cells:
        try:
            role = role_of(cell)
        except ValueError:
            flags = {flag: cell.metadata.nbgrader.get(flag) for flag in ("grade", "solution", "locked", "task")}
            yield cell.id, f"its nbgrader entry is {flags}, which no role means"
            continue
        rules = [id_faults, region_faults, text_faults]
        for rule in rules + [code_faults] * (cell.cell_type == "code"):
            for sentence in rule(cell, role):
                yield cell.id, sentence


def id_faults(cell: NotebookNode, role: str) -> Iterator[str]:
    """The id is in words, equals nbgrader's and ends as its role says; points are there."""
    if not WORD_ID.fullmatch(cell.id):
        yield "the id is not lower-case words joined by dashes"
    entry = cell.metadata.get("nbgrader")
    if entry and entry.get("grade_id") != cell.id:
        yield f"nbgrader's grade_id is {entry.get('grade_id')!r}, not the cell's id"
    end = ROLES[role].id_end
    if end and not re.fullmatch(f".+{end}", cell.id):
        yield f"the id of a {role} cell ends in {ROLES[role].example}"
    if not end and exercise_of(cell.id):
        yield f"the id looks like part of an exercise, but the cell's role is {role}"
    if ROLES[role].has_points and not (points_of(cell) or 0) > 0:
        yield f"a {role} cell has points, more than 0"


def region_faults(cell: NotebookNode, role: str) -> Iterator[str]:
    """BEGIN and END come in pairs, one after the other, and stand only where nbgrader removes what is between."""
    opened = ""
    for line in cell.source.split("\n"):
        for edge, region in MARKER.findall(line):
            if role not in REGIONS.get(region, ()):
                yield f"{edge} {region} does not belong into a {role} cell"
            elif line.strip() != f"### {edge} {region}":
                yield f"write the marker as '### {edge} {region}' on a line of its own"
            elif edge == "BEGIN" and opened:
                yield f"BEGIN {region} stands inside of {opened}, which is not ended"
            elif edge == "END" and opened != region:
                yield f"END {region} has no BEGIN"
            opened = region if edge == "BEGIN" else ""
    if opened:
        yield f"BEGIN {opened} has no END"
    if role == "answer" and "BEGIN SOLUTION" not in cell.source:
        yield "an answer cell marks its solution; without a mark nbgrader removes the whole cell"
    if role == "check" and not student_view(cell.source).strip():
        yield "a check cell has a part that students can run before the hidden tests"


def text_faults(cell: NotebookNode, role: str) -> Iterator[str]:
    """Prose or code, no path of one machine, no picture from elsewhere, no attachment, no test template."""
    if cell.cell_type not in ("code", "markdown"):
        yield f"it is a {cell.cell_type} cell; lessons have code and markdown cells"
    found = ABSOLUTE.search(cell.source)
    if found:
        yield f"{found[0]!r} is a path of one machine"
    if PICTURE.search(cell.source) or cell.get("attachments"):
        yield "pictures are drawn by mlsys.viz, not pasted and not from the web"
    if "AUTOTEST" in cell.source:
        yield "AUTOTEST starts nbgrader's test templates, which this course does not use"


def code_faults(cell: NotebookNode, role: str) -> Iterator[str]:
    """Plain Python in both editions, with no magic and no widget that stalls a notebook run by a program."""
    try:
        tree = ast.parse(cell.source)
    except SyntaxError as error:
        magic = next((line for line in cell.source.split("\n") if re.match(r"\s*(%%?[A-Za-z]|!)", line)), None)
        if magic:
            yield f"{magic.strip()!r} is a magic or a shell command; write Python"
        else:
            yield f"line {error.lineno} is not Python: {error.msg}"
        return
    try:
        ast.parse(student_view(cell.source))
    except SyntaxError as error:
        yield f"without its solution it is not Python: {error.msg}"
    for name in sorted(names_in(tree) & STALLS):
        yield f"{name} stalls now and then when a program runs the notebook; use a widget of mlsys.widgets"


def names_in(tree: ast.AST) -> set[str]:
    """All names, attributes and imported names of a piece of code."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.add(node.name.rpartition(".")[2])
    return names


def student_view(source: str) -> str:
    """A cell as a student gets it: a stub for the solution, no hidden tests.

    >>> print(student_view("def f():\\n    ### BEGIN SOLUTION\\n    return 1\\n    ### END SOLUTION"))
    def f():
        raise NotImplementedError
    """
    lines, inside = [], False
    for line in source.split("\n"):
        if "BEGIN SOLUTION" in line:
            lines.append(line[: len(line) - len(line.lstrip())] + "raise NotImplementedError")
        edge = MARKER.search(line)
        if edge:
            inside = edge[1] == "BEGIN"
        elif not inside:
            lines.append(line)
    return "\n".join(lines)
