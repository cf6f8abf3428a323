"""What a lecturer sees of a batch: progress, a table of the class, a picture of its points."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ..sealed.report import PASS
from .batch import Line, Outcome
from .ledger import Mark


class Progress:
    """A bar on a terminal, a plain line each tenth of the way elsewhere."""

    def __init__(self, stream=None):
        self.stream = stream or sys.stdout
        self.bar, self.tenth = self.stream.isatty(), -1

    def __call__(self, done: int, number: int, student: str) -> None:
        if self.bar:
            width = 30
            full = width * done // number
            text = f"[{'#' * full}{'.' * (width - full)}] {done}/{number} {student}"
            columns = shutil.get_terminal_size().columns - 1
            self.stream.write("\r" + text[:columns].ljust(columns) + ("\n" if done == number else ""))
        elif done * 10 // number != self.tenth or done == number:
            self.tenth = done * 10 // number
            self.stream.write(f"{done} of {number} submissions\n")
        self.stream.flush()


@dataclass(frozen=True)
class Class:
    """The gradebook's view of an assignment after a batch."""

    marks: dict[str, dict[tuple[str, str], Mark]]  # student -> (notebook, cell) -> mark
    points: dict[tuple[str, str], float]  # (notebook, cell) -> most that it gives
    penalties: dict[str, dict[str, float]]  # student -> notebook -> points off

    @property
    def most(self) -> float:
        return sum(self.points.values())

    def score(self, student: str) -> float:
        got = sum(mark.score for mark in self.marks.get(student, {}).values())
        return got - sum(self.penalties.get(student, {}).values())


def table(outcome: Outcome, group: Class) -> str:
    """Student, points of the whole assignment, what changed, what needs review and why."""
    rows = [("student", "points", "", "needs review")]
    for student, line in outcome.lines.items():
        have = group.marks.get(student, {})
        why = list(dict.fromkeys(line.review))
        decided = {(book, check["cell"]) for book, result in line.results.items() for check in result["checks"]}
        open_ = sum(mark.waits for key, mark in have.items() if key not in decided)
        again = sum(mark.waits and mark.manual is not None for key, mark in have.items() if key in decided)
        why += [f"{open_} to mark by hand"] * (open_ > 0)
        why += [f"{again} marked by hand before the answer changed"] * (again > 0)
        late = sum(group.penalties.get(student, {}).values())
        why += [f"{late:g} points off, late"] * (late > 0)
        rows.append(
            (student, f"{group.score(student):g}/{group.most:g}" if have else "-", change(line), "; ".join(why))
        )
    widths = [min(40, max(len(row[column]) for row in rows)) for column in range(3)]
    lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]).rstrip() for row in rows]
    return "\n".join(lines)


def change(line: Line) -> str:
    """What a run did to a score that was there before.

    >>> change(Line("ana", "held", got=8.0, before=10.0))
    '10 -> 8 waits'
    """
    if line.before is None or not line.changes and line.state != "held":
        return {"not written": "not written", "graded": "new"}.get(line.state, "")
    return f"{line.before:g} -> {line.got or 0:g}" + (" waits" if line.state == "held" else "")


def differences_text(lines: list[Line]) -> str:
    """Each student whose score would change, check by check."""
    out = []
    for line in lines:
        out.append(f"{line.student}: {line.before:g} -> {line.got or 0:g} points by checks")
        out += [
            f"  {cell}: {before:g} -> {'open' if after is None else f'{after:g}'}"
            for cell, before, after in line.changes
        ]
    return "\n".join(out)


def lost_checks(outcome: Outcome) -> Counter:
    """How many submissions lost points in each check."""
    return Counter(
        check["cell"]
        for line in outcome.lines.values()
        for result in line.results.values()
        for check in result["checks"]
        if check["outcome"] != PASS
    )


def plot(outcome: Outcome, group: Class, path: Path) -> Path:
    """Draw the points of the class and the checks that failed most, to a PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    most, scores = group.most, sorted(group.score(student) for student in group.marks)
    lost = lost_checks(outcome).most_common(12)[::-1]
    from mlsys.viz.style import SEQUENCE

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    bins = min(20, max(int(most), 1))
    left.hist(scores, bins=bins, range=(0, most or 1), color=SEQUENCE[0], edgecolor="white")
    half = scores[len(scores) // 2] if scores else 0
    left.set(title=f"{len(scores)} submissions; half have {half:g} of {most:g} points or more", xlabel="points")
    left.set_ylabel("submissions")
    right.barh(
        [cell for cell, _ in lost], [count for _, count in lost], color=SEQUENCE[2], hatch="//", edgecolor="white"
    )
    right.set(title=f"{lost[-1][0]} failed most" if lost else "No check failed", xlabel="submissions that did not pass")
    right.tick_params(axis="y", labelsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path
