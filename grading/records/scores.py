"""The scores of one submission in nbgrader's tables: what is missing is made, what an earlier run left is replaced.

Plain statements on the tables, not nbgrader's objects: loading one of these works out some fifteen sums over
the whole gradebook, which is most of the time that a small submission takes. What people gave stays.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sql
from nbgrader import api
from sqlalchemy.engine import Connection

from .reading import time_of
from .store import Receipt

STUDENT, ASSIGNMENT, NOTEBOOK = api.Student.__table__, api.Assignment.__table__, api.Notebook.__table__
SUBMISSION, PART = api.SubmittedAssignment.__table__, api.SubmittedNotebook.__table__
CELL, PRINTED = api.BaseCell.__table__, api.SourceCell.__table__
GRADE, COMMENT = api.Grade.__table__, api.Comment.__table__
GRADED, COMMENTED = ("GradeCell", "TaskCell"), ("SolutionCell", "TaskCell")  # by the kind that nbgrader's table of cells has


def write_scores(
    db: Connection, assignment: str, student: str, receipt: Receipt, results: dict[str, dict], answers: dict[str, dict[str, str]], late
) -> None:
    """Put the results of one submission into the gradebook, within the connection's transaction.

    results: notebook -> record of a worker. answers: notebook -> cell -> what the student wrote.
    late: nbgrader's plug-in for late penalties, or None.
    """
    task = db.execute(sql.select(ASSIGNMENT.c.id, ASSIGNMENT.c.duedate).where(ASSIGNMENT.c.name == assignment)).one()
    if db.scalar(sql.select(STUDENT.c.id).where(STUDENT.c.id == student)) is None:
        db.execute(STUDENT.insert().values(id=student))  # as nbgrader does it, for a student who is not in its list
    when = stamp(receipt)
    submission, extension = submission_of(db, task.id, student)
    late_s = seconds_late(when, task.duedate, extension)
    for notebook in db.execute(sql.select(NOTEBOOK.c.id, NOTEBOOK.c.name).where(NOTEBOOK.c.assignment_id == task.id)).all():
        part = part_of(db, submission, notebook.id)
        cells = db.execute(sql.select(CELL.c.id, CELL.c.name, CELL.c.type).where(CELL.c.notebook_id == notebook.id)).all()
        printed = dict(db.execute(sql.select(PRINTED.c.name, PRINTED.c.source).where(PRINTED.c.notebook_id == notebook.id)).all())
        written = answers.get(notebook.name, {})
        empty = {name for name, text in printed.items() if written.get(name, "").strip() in ("", (text or "").strip())}
        score = grade_cells(db, part, [cell for cell in cells if cell.type in GRADED], results.get(notebook.name), empty)
        comment_cells(db, part, [cell for cell in cells if cell.type in COMMENTED], empty)
        db.execute(PART.update().where(PART.c.id == part).values(late_submission_penalty=penalty_of(late, student, score, late_s)))
    undecided = any(check["points"] is None for result in results.values() for check in result["checks"])
    # A score that is not there yet is not exported as one of today.
    db.execute(SUBMISSION.update().where(SUBMISSION.c.id == submission).values(timestamp=None if undecided else when))


def submission_of(db: Connection, assignment_id: str, student: str) -> tuple:
    """Id and extension of a submission's row."""
    columns = sql.select(SUBMISSION.c.id, SUBMISSION.c.extension)
    found = db.execute(columns.where(SUBMISSION.c.assignment_id == assignment_id, SUBMISSION.c.student_id == student)).one_or_none()
    return found or (made(db, SUBMISSION, assignment_id=assignment_id, student_id=student), None)


def part_of(db: Connection, submission: str, notebook_id: str) -> str:
    """Id of the row of one notebook of a submission."""
    found = db.scalar(sql.select(PART.c.id).where(PART.c.assignment_id == submission, PART.c.notebook_id == notebook_id))
    return found or made(db, PART, assignment_id=submission, notebook_id=notebook_id)


def made(db: Connection, table: sql.Table, **values) -> str:
    """A new row; its id."""
    return db.execute(table.insert().values(**values)).inserted_primary_key[0]


def grade_cells(db: Connection, part: str, cells: list, result: dict | None, empty: set[str]) -> float:
    """Scores of one notebook, and their sum as nbgrader counts it. A cell that no check decided waits for a person."""
    decided = {check["cell"]: check["points"] for check in result["checks"]} if result else {}
    have = {row.cell_id: row for row in db.execute(GRADE.select().where(GRADE.c.notebook_id == part))}
    new, changed, score = [], [], 0.0
    for cell in cells:
        auto = decided[cell.name] if cell.name in decided else 0.0 if cell.name in empty else None
        old = have.get(cell.id)
        manual, extra = (old.manual_score, old.extra_credit) if old else (None, None)
        if manual is None:
            waits = auto is None
        else:  # a person may have given marks for something else
            waits = old.needs_manual_grade or (cell.name in decided and auto != old.auto_score)
        score += (auto or 0.0 if manual is None else manual) + (extra or 0.0)
        if old is None:
            new.append({"cell_id": cell.id, "notebook_id": part, "auto_score": auto, "needs_manual_grade": waits})
        elif (auto, waits) != (old.auto_score, old.needs_manual_grade):
            changed.append({"row": old.id, "auto_score": auto, "needs_manual_grade": waits})
    save(db, GRADE, new, changed)
    return score


def comment_cells(db: Connection, part: str, cells: list, empty: set[str]) -> None:
    """What the grader says of answers that a person may comment on."""
    have = {row.cell_id: row for row in db.execute(COMMENT.select().where(COMMENT.c.notebook_id == part))}
    new, changed = [], []
    for cell in cells:
        text, old = "No response." if cell.name in empty else None, have.get(cell.id)
        if old is None:
            new.append({"cell_id": cell.id, "notebook_id": part, "auto_comment": text})
        elif text != old.auto_comment:
            changed.append({"row": old.id, "auto_comment": text})
    save(db, COMMENT, new, changed)


def save(db: Connection, table: sql.Table, new: list[dict], changed: list[dict]) -> None:
    """New and changed rows of a table, each kind in one statement."""
    if new:
        db.execute(table.insert(), new)
    if changed:
        columns = {name: sql.bindparam(name) for name in changed[0] if name != "row"}
        db.execute(table.update().where(table.c.id == sql.bindparam("row")).values(**columns), changed)


def seconds_late(when: datetime | None, due: datetime | None, extension: timedelta | None) -> float:
    """Seconds from the due date, with a student's extension, to the time of a submission."""
    return (when - due - (extension or timedelta(0))).total_seconds() if when and due else 0.0


def penalty_of(plugin, student: str, score: float, late_s: float) -> float | None:
    """Late penalty as nbgrader's own step gives it: never below zero, never above the score."""
    penalty = plugin.late_submission_penalty(student, score, late_s) if plugin and late_s > 0 else None
    return None if penalty is None else min(max(penalty, 0), score)


def stamp(receipt: Receipt) -> datetime | None:
    """The time of a submission as nbgrader keeps it; None if there is none that can be read."""
    return time_of(receipt.claimed)
