"""What a lecturer sees of a batch: progress, a table of the class, a picture of its points."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mlsys.units import plural

from ..sealed.report import PASS
from .batch import Line, Outcome, first_sentence
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
    """The gradebook's view of an assignment at one moment."""

    marks: dict[str, dict[tuple[str, str], Mark]]  # student -> (notebook, cell) -> mark
    points: dict[tuple[str, str], float]  # (notebook, cell) -> most that it gives
    penalties: dict[str, dict[str, float]]  # student -> notebook -> points off

    @property
    def most(self) -> float:
        return sum(self.points.values())

    def raw(self, student: str) -> float:
        """Points by checks and by hand, before a late penalty; Formgrader shows these."""
        return sum(mark.score for mark in self.marks.get(student, {}).values())

    def off(self, student: str) -> float:
        """Points that are taken off for being late."""
        return sum(self.penalties.get(student, {}).values())

    def score(self, student: str) -> float:
        """Points after a late penalty; nbgrader exports these."""
        return self.raw(student) - self.off(student)


def wrapped(text: str, first: str = "", rest: str = "") -> str:
    """Text in lines that the terminal does not have to break."""
    width = max(60, shutil.get_terminal_size().columns - 1)
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def table(outcome: Outcome, before: Class, after: Class) -> str:
    """Student, points of the whole assignment after late penalties, what this run changed, what needs review and why."""
    rows = [("student", "points", "change", "needs review")]
    for student, line in outcome.lines.items():
        points = f"{after.score(student):g}/{after.most:g}" if after.marks.get(student) else "-"
        rows.append(
            (student, points, change(line, before.score(student), after.score(student)), review(line, before, after))
        )
    widths = [min(40, max(len(row[column]) for row in rows)) for column in range(3)]
    indent = " " * (sum(widths) + 6)
    width = max(len(indent) + 30, shutil.get_terminal_size().columns - 1)
    lines = []
    for row in rows:
        start = "".join(cell.ljust(size) + "  " for cell, size in zip(row, widths))
        why = textwrap.wrap(row[3], width - len(indent), break_long_words=False, break_on_hyphens=False)
        lines.append(start + f"\n{indent}".join(why) if why else start.rstrip())
    if any(after.off(student) for student in outcome.lines):
        lines.append("Points are after late penalties; Formgrader shows them before.")
    return "\n".join(lines)


def review(line: Line, before: Class, after: Class) -> str:
    """What a person should look at or know, of one student."""
    why, have = list(dict.fromkeys(line.review)), after.marks.get(line.student, {})
    decided = {(book, check["cell"]) for book, result in line.results.items() for check in result["checks"]}
    open_ = sum(mark.waits for key, mark in have.items() if key not in decided)
    again = sum(mark.waits and mark.manual is not None for key, mark in have.items() if key in decided)
    why += [f"{open_} to mark by hand"] * (open_ > 0)
    why += [f"{again} marked by hand before the answer changed"] * (again > 0)
    was, off = before.off(line.student), after.off(line.student)
    if off:
        text = f"{after.raw(line.student):g} less {off:g} for being late"
        why.append(text + f" (before: less {was:g})" * (was > 0 and was != off))
    elif was:
        why.append(f"no longer less {was:g} for being late")
    return "; ".join(why)


def change(line: Line, before: float, after: float) -> str:
    """What a run did to a score: points after late penalties. Of what waits for --yes, the points by checks.

    >>> change(Line("ana", "graded", "new version"), 40.0, 35.0)
    'new version, 40 -> 35'
    >>> change(Line("ana", "held", got=8.0, before=10.0), 10.0, 10.0)
    'checks 10 -> 8, waits'
    """
    if line.state == "held":
        return f"checks {line.before:g} -> {line.got or 0:g}, waits"
    if line.state == "not written" or line.version == "new":
        return line.state if line.state == "not written" else "new"
    moved = f"{before:g} -> {after:g}" * (f"{before:g}" != f"{after:g}")
    return ", ".join(filter(None, (line.version, moved)))


def put_right(outcome: Outcome) -> str:
    """What was put right in submissions: a line for each kind, with its students; empty if nothing was."""
    students: dict[str, list[str]] = {}
    for student, line in outcome.lines.items():
        for text in dict.fromkeys(line.told):
            text = first_sentence(text).removeprefix(f"The notebook of {student} ")
            students.setdefault(text, []).append(student)
    lines = [wrapped(f"{', '.join(names)}: {text}", "  ", "    ") for text, names in students.items()]
    return "\n".join(["Put right:", *lines] if lines else [])


def differences_text(lines: list[Line]) -> str:
    """Each student whose score would change, check by check; marks by hand and late penalties are not in it."""
    out = []
    for line in lines:
        out.append(f"{line.student}: {line.before:g} -> {line.got or 0:g} points by checks")
        out += [
            f"  {cell}: {before:g} -> {'open' if after is None else f'{after:g}'}"
            for cell, before, after in line.changes
        ]
    return "\n".join(out)


def lost_checks(outcome: Outcome) -> tuple[Counter, int]:
    """How many submissions did not pass each check, and of how many. What no grader could read or decide is not counted."""
    lost, read = Counter(), 0
    for line in outcome.lines.values():
        results = [result for result in line.results.values() if not result["problem"]]
        read += bool(results)
        lost.update(
            check["cell"]
            for result in results
            for check in result["checks"]
            if check["outcome"] != PASS and check["points"] is not None
        )
    return lost, read


def lost_title(lost: Counter) -> str:
    """Which check was passed least, or how many of them equally seldom.

    >>> lost_title(Counter({"area-check": 3, "row-check": 1})), lost_title(Counter({"area-check": 3, "row-check": 3}))
    ('area-check was passed least often', '2 checks were passed least often')
    """
    most = max(lost.values())
    first = [cell for cell, count in lost.items() if count == most]
    return f"{first[0]} was passed least often" if len(first) == 1 else f"{len(first)} checks were passed least often"


def plot(outcome: Outcome, group: Class, path: Path) -> Path:
    """Draw the points of the class, and beside them the checks that were passed least, if any was not, to a PNG."""
    figure = drawn(outcome, group)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def drawn(outcome: Outcome, group: Class):
    """The picture as a figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from mlsys.viz.style import SEQUENCE

    scores = sorted(group.score(student) for student in group.marks)
    lost, read = lost_checks(outcome)
    figure = Figure(figsize=(10 if lost else 5, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, *right = figure.subplots(1, 2 if lost else 1, squeeze=False)[0]
    most = max([group.most, 1, *scores])  # extra credit may give more
    left.hist(scores, bins=min(20, max(int(most), 1)), range=(0, most), color=SEQUENCE[0], edgecolor="white")
    half = scores[len(scores) // 2] if scores else 0
    text = f"{half:g} of {group.most:g} points"
    left.set(
        title=f"{len(scores)} submissions; half have {text} or more" if len(scores) > 1 else f"1 submission: {text}"
    )
    left.set(xlabel="points after late penalties", ylabel="submissions")
    left.yaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in right:
        names, counts = zip(*lost.most_common(12)[::-1])
        axes.barh(names, counts, color=SEQUENCE[2], hatch="//", edgecolor="white")
        axes.set(title=lost_title(lost), xlabel=f"did not pass, of {plural(read, 'submission')} that could be read")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.tick_params(axis="y", labelsize=8)
    return figure
