"""`table`: every exercise with its points and every version of its answer, for the lecturer."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from mlsys.check.hints import all_hints

from .answers import read_answers
from .files import course_root, read_notebook, source_notebooks
from .lint_exercises import exercises


@dataclass(frozen=True)
class Row:
    """One version of an answer. kind: solution, right, wrong or essay; hint: what a wrong one is told."""

    unit: str
    notebook: str
    exercise: str
    points: float
    kind: str
    version: str
    hint: str


def rows(root: Path, unit: str | None = None) -> Iterator[Row]:
    """All rows of a unit or of the course: the solution stands in the notebook, the rest in tests/answers/."""
    hints = all_hints()
    for path in source_notebooks(root):
        if unit and unit not in (path.parent.name, path.stem):
            continue
        beside = root / "tests" / "answers" / f"{path.stem}.py"
        versions = read_answers(beside) if beside.is_file() else []
        for exercise in exercises(read_notebook(path)).values():
            common = (path.parent.name, path.stem, exercise.name, exercise.points)
            kind = "solution" if exercise.places("answer") else "essay"
            yield Row(*common, kind, "in the notebook", "")
            for version in versions:
                if version.exercise == exercise.name:
                    hint = hints.get(version.name, "NO SUCH HINT") if version.kind == "wrong" else ""
                    yield Row(*common, version.kind, version.name, hint)


def as_text(table: list[Row]) -> str:
    """Each exercise with its versions below it, and a count at the end."""
    lines, last = [], None
    for row in table:
        if (row.notebook, row.exercise) != last:
            last = (row.notebook, row.exercise)
            lines.append(f"\n{row.unit}/{row.notebook}  {row.exercise}  {row.points:g} points")
        lines.append(f"  {row.kind:8}  {row.version}")
        if row.hint:
            lines.append(f"            {row.hint}")
    counts = {kind: sum(row.kind == kind for row in table) for kind in ("right", "wrong")}
    number = len({(row.notebook, row.exercise) for row in table})
    lines.append(f"\n{number} exercises, {counts['right']} right alternatives, {counts['wrong']} wrong versions")
    return "\n".join(lines).strip()


def table_command(unit: str | None, as_csv: bool) -> int:
    """Print the table as text or as CSV."""
    root = course_root()
    table = list(rows(root, unit))
    if unit and not table:
        names = sorted({path.parent.name for path in source_notebooks(root)})
        raise ValueError(f"source/ has no exercise in {unit!r}; units are {', '.join(names)}")
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(field.name for field in fields(Row))
        writer.writerows(astuple(row) for row in table)
    else:
        print(as_text(table))
    return 0
