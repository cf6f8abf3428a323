"""The ledger: one row for each submission that was graded, in the gradebook's own database.

A row is keyed by the hash of submission, tests, grader version and seed, and is written in the same
transaction as the scores: there is no moment at which one is there without the other. The autograded
notebook is kept in the store before and published after it; whether it is published is not remembered but
looked at, so any crash is repaired by the next run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sql
from nbgrader import api
from sqlalchemy.orm import Session, sessionmaker

from .scores import PART, penalty_of, save, seconds_late, stamp, write_scores
from .store import Receipt, digest

META = sql.MetaData()
DONE = sql.Table(
    "mlsys_done",
    META,
    sql.Column("id", sql.Integer, primary_key=True, autoincrement=True),
    sql.Column("key", sql.String(64), nullable=False, index=True),
    sql.Column("assignment", sql.String(128), nullable=False),
    sql.Column("student", sql.String(128), nullable=False),
    sql.Column("submission", sql.String(64), nullable=False),
    sql.Column("tests", sql.String(64), nullable=False),
    sql.Column("version", sql.String(64), nullable=False),
    sql.Column("seed", sql.String(64), nullable=False),
    sql.Column("receipt", sql.Integer, nullable=False),
    sql.Column("graded", sql.String(40), nullable=False),  # UTC, for people; order is by id
    sql.Column("again", sql.Integer),  # the row whose results this one writes again; none if it was graded
    sql.Column("results", sql.Text, nullable=False),  # JSON: notebook -> checks, repairs, level, limits, object
)


@dataclass(frozen=True)
class Job:
    """One submission to be graded, and all that its result depends on."""

    assignment: str
    student: str
    receipt: Receipt
    tests: str
    version: str
    seed: str

    @property
    def key(self) -> str:
        parts = [self.assignment, self.student, self.receipt.content, self.tests, self.version, self.seed]
        return digest(json.dumps(parts).encode())


@dataclass(frozen=True)
class Done:
    """A row of the ledger."""

    id: int
    key: str
    submission: str
    graded: str
    results: dict[str, dict]


class Mark(NamedTuple):
    """One graded cell of one submission, as the gradebook has it. waits: whether a person has to mark it."""

    auto: float | None
    manual: float | None = None
    extra: float | None = None
    waits: bool = False

    @property
    def score(self) -> float:
        """As nbgrader counts it: marks by hand go before those by machine."""
        return (self.auto or 0.0 if self.manual is None else self.manual) + (self.extra or 0.0)


class Ledger:
    """The gradebook with the ledger in it. `wait_s`: how long a locked database is waited for."""

    def __init__(self, db_url: str, course_id: str, wait_s: float = 600, say: Callable[[str], None] = print):
        self.course_id, self.wait_s, self.say = course_id, wait_s, say
        sqlite = db_url.startswith("sqlite")
        self.engine = sql.create_engine(db_url, connect_args={"timeout": 2} if sqlite else {})
        if sqlite:
            # Take the write lock when a transaction begins: one that reads first could not get it later.
            @sql.event.listens_for(self.engine, "connect")
            def no_own_begin(connection, _):
                connection.isolation_level = None

            @sql.event.listens_for(self.engine, "begin")
            def begin(connection):
                connection.exec_driver_sql("BEGIN IMMEDIATE")

        self.sessions = sessionmaker(bind=self.engine)
        if not self.patiently(self.is_there):
            self.patiently(lambda: api.Gradebook(db_url, course_id).close())
        self.patiently(lambda: META.create_all(self.engine))

    def close(self) -> None:
        self.engine.dispose()

    def is_there(self) -> bool:
        """Whether nbgrader's tables and the course's row are in the database."""
        with self.transaction() as session:
            has_tables = sql.inspect(session.connection()).has_table("course")
            return has_tables and session.get(api.Course, self.course_id) is not None

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A session that is written as a whole, or not at all."""
        with self.sessions() as session, session.begin():
            yield session

    def patiently(self, work: Callable):
        """Do some work on the database; while another program holds it, wait, and say so once."""
        end, told = time.monotonic() + self.wait_s, False
        while True:
            try:
                return work()
            except (sql.exc.OperationalError, api.InvalidEntry) as error:
                if "locked" not in str(error) and "busy" not in str(error) or time.monotonic() > end:
                    raise
                if not told:
                    self.say("The gradebook is locked by another program; waiting until it is free.")
                    told = True
                time.sleep(0.2)

    # ---- reading ---------------------------------------------------------------------------------------------------

    def rows(self, assignment: str) -> dict[str, list[Done]]:
        """Student -> all rows, oldest first."""

        def read():
            with self.transaction() as session:
                found = session.execute(DONE.select().where(DONE.c.assignment == assignment).order_by(DONE.c.id))
                return found.mappings().all()

        done: dict[str, list[Done]] = {}
        for row in self.patiently(read):
            kept = Done(row["id"], row["key"], row["submission"], row["graded"], json.loads(row["results"]))
            done.setdefault(row["student"], []).append(kept)
        return done

    def _of_cells(self, assignment: str, kind, *columns) -> list[tuple]:
        """Student, notebook, cell and the columns of every row that nbgrader keeps for a cell: a Grade or a Comment."""

        def read():
            with self.transaction() as session:
                found = session.execute(
                    sql.select(api.SubmittedAssignment.student_id, api.Notebook.name, api.BaseCell.name, *columns)
                    .join(api.SubmittedNotebook, api.SubmittedNotebook.id == kind.notebook_id)
                    .join(api.Notebook, api.Notebook.id == api.SubmittedNotebook.notebook_id)
                    .join(api.BaseCell, api.BaseCell.id == kind.cell_id)
                    .join(api.SubmittedAssignment, api.SubmittedAssignment.id == api.SubmittedNotebook.assignment_id)
                    .join(api.Assignment, api.Assignment.id == api.SubmittedAssignment.assignment_id)
                    .where(api.Assignment.name == assignment)
                )  # fmt: skip
                return found.all()

        return self.patiently(read)

    def scores(self, assignment: str) -> dict[str, dict[tuple[str, str], Mark]]:
        """Student -> (notebook, cell) -> mark."""

        grade = api.Grade
        found = self._of_cells(
            assignment, grade, grade.auto_score, grade.manual_score, grade.extra_credit, grade.needs_manual_grade)
        scores: dict = {}
        for student, notebook, cell, *mark in found:
            scores.setdefault(student, {})[notebook, cell] = Mark(*mark)
        return scores

    def comments(self, assignment: str) -> dict[str, dict[tuple[str, str], str]]:
        """Student -> (notebook, cell) -> what a person, or else the grader, wrote about an answer."""

        comment = api.Comment
        found = self._of_cells(assignment, comment, comment.manual_comment, comment.auto_comment)
        comments: dict = {}
        for student, notebook, cell, manual, auto in found:
            comments.setdefault(student, {})[notebook, cell] = manual or auto or ""
        return comments

    def penalties(self, assignment: str) -> dict[str, dict[str, float]]:
        """Student -> notebook -> points that are taken off because it came late."""

        def read():
            with self.transaction() as session:
                penalty = api.SubmittedNotebook.late_submission_penalty
                found = session.execute(
                    sql.select(api.SubmittedAssignment.student_id, api.Notebook.name, penalty)
                    .join(api.SubmittedNotebook, api.SubmittedNotebook.assignment_id == api.SubmittedAssignment.id)
                    .join(api.Notebook, api.Notebook.id == api.SubmittedNotebook.notebook_id)
                    .join(api.Assignment, api.Assignment.id == api.SubmittedAssignment.assignment_id)
                    .where(api.Assignment.name == assignment, penalty > 0)
                )
                return found.all()

        penalties: dict = {}
        for student, notebook, penalty in self.patiently(read):
            penalties.setdefault(student, {})[notebook] = penalty
        return penalties

    def cells(self, assignment: str) -> dict[tuple[str, str], float]:
        """(notebook, cell) -> points, of every graded cell that the gradebook knows."""
        return self._of_assignment(assignment, api.GradeCell, api.GradeCell.max_score)

    def texts(self, assignment: str) -> dict[tuple[str, str], str]:
        """(notebook, cell) -> text in the gradebook, which is that of the assignment as it was last printed."""
        found = self._of_assignment(assignment, api.SourceCell, api.SourceCell.source)
        return {cell: text or "" for cell, text in found.items()}

    def _of_assignment(self, assignment: str, kind, column) -> dict[tuple[str, str], Any]:
        """(notebook, cell) -> a column of every cell of one kind that nbgrader keeps for an assignment."""

        def read():
            with self.transaction() as session:
                found = session.execute(
                    sql.select(api.Notebook.name, kind.name, column)
                    .join(kind, kind.notebook_id == api.Notebook.id)
                    .join(api.Assignment, api.Assignment.id == api.Notebook.assignment_id)
                    .where(api.Assignment.name == assignment)
                )
                return {(notebook, cell): value for notebook, cell, value in found}

        return self.patiently(read)

    # ---- writing ---------------------------------------------------------------------------------------------------

    def write(
        self, job: Job, results: dict[str, dict], answers: dict[str, dict[str, str]], late=None, again=None
    ) -> None:
        """Write the scores of one submission and its row, in one transaction.

        answers: notebook -> cell -> what the student wrote in the cells that a person marks or may comment.
        late: nbgrader's plug-in for late penalties. again: the row whose results these are.
        """

        def work():
            with self.engine.begin() as db:
                write_scores(db, job.assignment, job.student, job.receipt, results, answers, late)
                row = {
                    name: getattr(job, name) for name in ("key", "assignment", "student", "tests", "version", "seed")
                }
                about = {"submission": job.receipt.content, "receipt": job.receipt.number, "again": again}
                when = {"graded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
                db.execute(DONE.insert().values(**row, **about, **when, results=json.dumps(results)))

        self.patiently(work)

    def penalize(self, assignment: str, receipts: dict[str, Receipt], late) -> list[str]:
        """Work the late penalties of scores that are there out anew, from student's receipts; whose changed.

        They hang on the due date, extensions, the plug-in and marks by hand, none of which is in a row's key.
        """
        task, submission, part, grade = api.Assignment, api.SubmittedAssignment, api.SubmittedNotebook, api.Grade
        marks = sql.func.coalesce(grade.manual_score, grade.auto_score, 0.0)
        score = sql.func.sum(marks + sql.func.coalesce(grade.extra_credit, 0.0))
        columns = (submission.student_id, submission.extension, task.duedate, part.id, part.late_submission_penalty)

        def work():
            with self.engine.begin() as db:
                found = db.execute(
                    sql.select(*columns, score)
                    .join(submission, submission.assignment_id == task.id)
                    .join(part, part.assignment_id == submission.id)
                    .join(grade, grade.notebook_id == part.id)
                    .where(task.name == assignment)
                    .group_by(*columns)
                ).all()
                changed = {}
                for student, extension, due, row, before, points in found:
                    if student in receipts:
                        late_s = seconds_late(stamp(receipts[student]), due, extension)
                        penalty = penalty_of(late, student, points, late_s)
                        if (penalty or 0.0) != (before or 0.0):
                            changed[row] = student, penalty
                new = [{"row": row, "late_submission_penalty": penalty} for row, (_, penalty) in changed.items()]
                save(db, PART, [], new)
                return sorted({student for student, _ in changed.values()})

        return self.patiently(work)


def differences(results: dict[str, dict], have: dict) -> list[tuple[str, float | None, float | None]]:
    """Checks whose score would change: (cell, before, after). What has no score yet is no difference.

    >>> result = {"ps": {"checks": [{"cell": "area-check", "points": 0.0}]}}
    >>> differences(result, {("ps", "area-check"): Mark(2.0)})
    [('area-check', 2.0, 0.0)]
    """
    changes = []
    for notebook, result in results.items():
        for check in result["checks"]:
            before = have.get((notebook, check["cell"]), Mark(None)).auto
            if before is not None and before != check["points"]:
                changes.append((check["cell"], before, check["points"]))
    return changes


def matches(results: dict[str, dict], have: dict[tuple[str, str], Mark]) -> bool:
    """Whether the gradebook still holds what a row says."""
    return all(
        have.get((notebook, check["cell"]), Mark(None)).auto == check["points"]
        for notebook, result in results.items()
        for check in result["checks"]
    )
