"""The notebook that is graded: the instructor's, with nothing of the submission but the student's text.

Tests, locked cells, order, points, tags and kernel come from the master. The text of an answer is found
by nbgrader's name of its cell, then by the cell's id (both are equal at release), then by what the cell
defines and how alike it is to the cell that was handed out. Cells that the student added stay where
they are and run on the student's side only. Every repair is a sentence in the report.
"""

from __future__ import annotations

import ast
import re
from copy import deepcopy
from dataclasses import dataclass
from difflib import SequenceMatcher

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell

from ..cells import ROLES, make_notebook, role_of
from .reading import Cell

STUB = 'raise NotImplementedError("Replace this line with your answer.")'
ESSAY_STUB = "*Replace this line with your answer.*"
HIDDEN = re.compile(r"^ *### BEGIN HIDDEN TESTS.*?^ *### END HIDDEN TESTS[^\n]*\n?", re.M | re.S)
REGION = re.compile(r"^( *)### BEGIN SOLUTION[^\n]*\n.*?^ *### END SOLUTION[^\n]*", re.M | re.S)
ALIKE = 0.6  # two texts are the same cell from here on
MOST_EXTRA = 500
MOST_COMPARED = 2000  # comparisons of two texts in one notebook; each takes about a millisecond
MOST_PARSED = 400_000  # characters of a notebook that are parsed to see what its cells define
LOST = (
    "The notebook of {student} came without {count}: {names}. Everything lost was put back before grading; an answer "
    "cell comes back empty. If an answer stood in a lost cell, rename your notebook, get the assignment afresh, "
    "copy your answers over and submit again."
)


@dataclass(frozen=True)
class Rebuilt:
    """The notebook to grade, and what had to be put right."""

    notebook: NotebookNode
    lost: tuple[str, ...]  # names of cells that came without their mark, or not at all
    repairs: tuple[str, ...]  # sentences
    untouched: frozenset[str]  # answers that say what was handed out


def own_role(cell: NotebookNode) -> str:
    """The role of a master's cell; a cell that no role means is locked text or a plain one."""
    try:
        return role_of(cell)
    except ValueError:
        flags = cell.metadata.get("nbgrader", {})
        if flags.get("solution"):
            return "answer" if cell.cell_type == "code" and not flags.get("grade") else "essay"
        return "check" if flags.get("grade") and cell.cell_type == "code" else "given" if flags else "plain"


def name_of(cell: NotebookNode) -> str:
    """nbgrader's name of a master's cell, else its id."""
    return cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "")


def handed_out(source: str, role: str) -> str:
    """What a student gets for the source of an answer or essay.

    >>> handed_out("def f(x):\\n    ### BEGIN SOLUTION\\n    return x\\n    ### END SOLUTION", "answer")
    'def f(x):\\n    raise NotImplementedError("Replace this line with your answer.")'
    """
    stub = STUB if role == "answer" else ESSAY_STUB
    text, regions = REGION.subn(lambda match: match[1] + stub, source)
    return text if regions else stub


def rebuild(master: NotebookNode, cells: list[Cell], student: str = "this student") -> Rebuilt:
    """The master with the student's answers in it, from the cells of a submission."""
    masters = [cell for cell in master.cells if name_of(cell)]
    found, doubles, marked = match(masters, cells)
    texts = {name: cells[place].text for name, place in found.items()}
    out, untouched, repairs = [], set(), []
    if len(cells) - len(found) > MOST_EXTRA:
        repairs.append(f"More than {MOST_EXTRA} cells were added; the added cells were left out.")
        extra = {}
    else:
        extra = extras(found, cells, doubles, [name_of(cell) for cell in masters])
    out += extra.get("", [])
    for cell in masters:
        name, role = name_of(cell), own_role(cell)
        rebuilt = deepcopy(cell)
        if role in ("answer", "essay"):
            stub = handed_out(cell.source, role)
            rebuilt.source = texts.get(name, stub)
            if same_text(rebuilt.source, stub):
                untouched.add(name)
        elif role in ("plain", "predict"):
            rebuilt.source = texts.get(name, cell.source)
        out.append(dressed(rebuilt, cell, role))
        if role == "setup" and name in texts and not same_text(texts[name], cell.source):
            out.append(new_code_cell(texts[name], id=f"{name}-of-student"))
        out += extra.get(name, [])
    notebook = make_notebook(unique_ids(out))
    notebook.metadata = deepcopy(master.metadata)
    lost = tuple(n for n in map(name_of, masters) if is_marked(masters, n) and n not in marked)
    if lost:
        count = "one cell" if len(lost) == 1 else f"{len(lost)} cells"
        repairs.append(LOST.format(student=student, count=count, names=", ".join(lost)))
    repairs += [
        f"The cell {name} is there more than once; the first one with an answer was graded, the others did not run."
        for name in sorted({name for name in doubles.values()})
    ]
    return Rebuilt(notebook, lost, tuple(repairs), frozenset(untouched))


def is_marked(masters: list[NotebookNode], name: str) -> bool:
    """Whether nbgrader knows the cell with this name."""
    return any(name_of(cell) == name and cell.metadata.get("nbgrader") for cell in masters)


def same_text(a: str, b: str) -> bool:
    """Equal but for blank lines and spaces at line ends."""
    return lines_of(a) == lines_of(b)


def lines_of(text: str) -> tuple[str, ...]:
    """The lines that say something."""
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())


def match(masters: list[NotebookNode], cells: list[Cell]) -> tuple[dict[str, int], dict[int, str], set[str]]:
    """Master's name -> place in the submission; places of doubles -> name; names that came with their mark."""
    by_name = {name_of(cell): cell for cell in masters}
    claims: dict[str, list[int]] = {}
    marked = {cell.grade_id for cell in cells if cell.grade_id in by_name}
    for place, cell in enumerate(cells):
        if cell.grade_id in by_name:
            claims.setdefault(cell.grade_id, []).append(place)
        elif cell.cell_id in by_name and cell.cell_id not in marked:
            claims.setdefault(cell.cell_id, []).append(place)
    found, doubles = {}, {}
    for name, places in claims.items():
        found[name] = first_answered(by_name[name], places, cells)
        doubles |= {place: name for place in places if place != found[name]}
    seen = Seen(cells)
    for cell in masters:  # what is left: by what it defines, then by likeness
        if name_of(cell) not in found:
            place = most_alike(cell, seen, set(found.values()) | set(doubles))
            if place is not None:
                found[name_of(cell)] = place
    return found, doubles, marked


def first_answered(master: NotebookNode, places: list[int], cells: list[Cell]) -> int:
    """The first of several copies that somebody has written in, else the first."""
    if own_role(master) not in ("answer", "essay"):
        return places[0]
    stub = handed_out(master.source, own_role(master))
    return next((p for p in places if cells[p].text.strip() and not same_text(cells[p].text, stub)), places[0])


class Seen:
    """What the cells of a submission say, worked out once for all that look for their own; with an end to the work."""

    def __init__(self, cells: list[Cell]):
        self.cells, self.left, self.parsed = cells, MOST_COMPARED, 0
        self.names: dict[int, set[str]] = {}
        self.lines: dict[int, int] = {}

    def defines(self, place: int) -> set[str]:
        """Names that a cell defines; past the budget by eye."""
        if place not in self.names:
            self.parsed += len(self.cells[place].text)
            look = defined if self.parsed <= MOST_PARSED else defined_by_eye
            self.names[place] = look(self.cells[place].text)
        return self.names[place]

    def says(self, place: int) -> int:
        """A hash of a cell's lines."""
        if place not in self.lines:
            self.lines[place] = hash(lines_of(self.cells[place].text))
        return self.lines[place]

    def likeness(self, text: str, place: int) -> float:
        """As `likeness`; 0 when enough was compared."""
        self.left -= 1
        return likeness(text, self.cells[place].text) if self.left >= 0 else 0.0


def most_alike(master: NotebookNode, seen: Seen, taken: set[int]) -> int | None:
    """The free cell that defines what an answer should, or is most like what was handed out; None if none is."""
    role = own_role(master)
    text = handed_out(master.source, role) if role in ("answer", "essay") else master.source
    wanted = defined(text) if role == "answer" else set()
    free = [p for p, cell in enumerate(seen.cells) if p not in taken and cell.kind == master.cell_type]
    if wanted:
        best = max(free, key=lambda p: len(wanted & seen.defines(p)), default=None)
        if best is not None and wanted & seen.defines(best):
            return best
    text = HIDDEN.sub("", text)
    says = hash(lines_of(text))
    exact = next((p for p in free if seen.says(p) == says and same_text(seen.cells[p].text, text)), None)
    if exact is not None:
        return exact
    scores = [(seen.likeness(text, p), -p) for p in free[:MOST_EXTRA]]
    score, place = max(scores, default=(0.0, 0))
    return -place if score >= ALIKE else None


def likeness(a: str, b: str) -> float:
    """0 to 1, by how two texts begin; a cheap bound first, since the exact count is slow."""
    matcher = SequenceMatcher(None, a[:600], b[:600], autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE else 0.0


def defined(source: str) -> set[str]:
    """Functions, classes and variables that a cell defines at its top level; by eye where it does not parse.

    >>> sorted(defined("import os\\ndef f(x):\\n    y = 1\\nz, w = 1, 2"))
    ['f', 'w', 'z']
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return defined_by_eye(source)
    names, todo = set(), list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            todo += ast.iter_child_nodes(node)
    return names


def defined_by_eye(source: str) -> set[str]:
    """Functions and classes at the beginning of a line."""
    return set(re.findall(r"^(?:def|class) (\w+)", source, re.M))


def extras(found: dict[str, int], cells: list[Cell], doubles: dict[int, str], order: list[str]) -> dict[str, list]:
    """The student's other cells, by the name of the master's cell that they stand behind."""
    by_place = {place: name for name, place in found.items()}
    known = {cell.grade_id for cell in cells} & set(order)
    out: dict[str, list] = {}
    behind = ""
    for place, cell in enumerate(cells):
        if place in by_place:
            behind = by_place[place]
        elif cell.text.strip():
            if place in doubles or cell.grade_id in known:
                text = f"*A second copy of {doubles.get(place) or cell.grade_id}, which did not run:*\n\n" + fenced(cell)
                added = new_markdown_cell(text, id="added")
            else:
                added = (new_code_cell if cell.kind == "code" else new_markdown_cell)(cell.text, id="added")
            out.setdefault(behind, []).append(added)
    return out


def fenced(cell: Cell) -> str:
    """A cell's text to be looked at, not run."""
    fence = "`" * (3 + max((len(run) for run in re.findall("`+", cell.text)), default=0))
    return f"{fence}python\n{cell.text}\n{fence}"


def unique_ids(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The cells with ids of their own: the master's stay, added ones are counted."""
    taken, count = {cell.id for cell in cells if cell.id != "added"}, 0
    for cell in cells:
        if cell.id == "added":
            count += 1
            while f"added-{count}" in taken:
                count += 1
            cell.id = f"added-{count}"
            taken.add(cell.id)
    return cells


def dressed(cell: NotebookNode, master: NotebookNode, role: str) -> NotebookNode:
    """A cell with the master's marks, no outputs, and the checksum that the gradebook has for it."""
    from nbgrader.utils import compute_checksum

    marks = deepcopy(master.metadata.get("nbgrader"))
    tags = list(master.metadata.get("tags", []))
    cell.metadata = from_dict(({"nbgrader": marks} if marks else {}) | ({"tags": tags} if tags else {}))
    if marks:
        original = deepcopy(cell)
        original.source = handed_out(master.source, role) if ROLES[role].flags and role in ("answer", "essay") else master.source
        cell.metadata.nbgrader["checksum"] = compute_checksum(original)
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    return cell
