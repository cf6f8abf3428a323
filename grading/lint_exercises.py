"""Rules for exercises: every one is complete, in order, and bites when graded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nbformat import NotebookNode

from .cells import exercise_of, points_of, role_of

SEEDED = re.compile(r"^test_rng = np\.random\.default_rng\([^,()]+\)$", re.MULTILINE)

TOTALS = (20, 40)


@dataclass
class Exercise:
    """The cells of one exercise, by role, each with its place in the notebook."""

    name: str
    cells: dict[str, list[tuple[int, NotebookNode]]] = field(default_factory=dict)

    def places(self, role: str) -> list[int]:
        return [place for place, _ in self.cells.get(role, [])]

    @property
    def all_places(self) -> list[int]:
        return sorted(place for role in self.cells for place in self.places(role))

    @property
    def points(self) -> float:
        return sum(points_of(cell) or 0 for role in ("check", "essay") for _, cell in self.cells.get(role, []))


def exercises(notebook: NotebookNode) -> dict[str, Exercise]:
    """The exercises of a notebook in order; cells that are only given make none."""
    found: dict[str, Exercise] = {}
    for place, cell in enumerate(notebook.cells):
        role, name = role_of(cell), exercise_of(cell.id)
        if name and role in ("task", "answer", "check", "essay"):
            found.setdefault(name, Exercise(name)).cells.setdefault(role, []).append((place, cell))
    return found


def exercise_faults(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """A task, then one answer, then at least one check with hidden tests; or a task and an essay."""
    for exercise in exercises(notebook).values():
        first = exercise.all_places[0]
        for sentence in faults_of(exercise):
            yield notebook.cells[first].id, f"exercise {exercise.name} {sentence}"


def faults_of(exercise: Exercise) -> Iterator[str]:
    """What is wrong with one exercise, as the end of a sentence."""
    tasks, answers, checks, essays = map(exercise.places, ("task", "answer", "check", "essay"))
    if len(tasks) != 1:
        yield f"has {len(tasks)} task cells, expected 1"
    if not essays and not answers or len(answers) > 1:
        yield f"has {len(answers)} answer cells, expected 1"
    if answers and not checks:
        yield "has no check cell"
    if checks and not answers:
        yield "has a check cell and no answer cell"
    if checks and not any("BEGIN HIDDEN TESTS" in cell.source for _, cell in exercise.cells["check"]):
        yield "has no hidden tests"
    for _, cell in exercise.cells.get("check", []):
        if "test_rng =" in cell.source.replace(", ", " = ") and not SEEDED.search(cell.source):
            form = "`test_rng = np.random.default_rng(7)`"
            yield f"draws in {cell.id} in another form than {form}, the only one that is seeded for a student"
    if sorted(tasks + answers + checks) != tasks + answers + checks or essays and tasks and min(essays) < min(tasks):
        yield "is not in the order task, answer, checks"


def points_faults(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """A problem set has 20 or 40 points."""
    total = sum(exercise.points for exercise in exercises(notebook).values())
    if total not in TOTALS:
        yield "", f"its points sum to {total:g}, expected {' or '.join(map(str, TOTALS))}"
