"""One batch: collect, back up, grade in parallel, write, publish, tell.

What is graded lies in staging until it is written. A run that is killed at any moment leaves whole things only, and the
next run goes on from them: it publishes what is written, writes what is staged, grades what is neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import sqlalchemy.exc

from ..sealed.reading import Unreadable, cells_of_bytes
from ..sealed.rebuild import lines_of
from . import workers
from .backup import back_up
from .collect import Collected, clear_staging, collect
from .feedback import visible
from .ledger import Job, Ledger, Mark, differences, matches
from .lock import only_one
from .places import Places, put_json
from .publish import is_published, keep_notebooks, publish
from .register import register
from .results import graded_cells, grader_version, has_fault, missing, points, staged, tests_hash
from .store import Receipt, Store


@dataclass
class Line:
    """What a batch did with one student. got, most, before: points by checks, before marks by hand and late penalties."""

    student: str
    state: str = ""  # graded, done (before), kept (results from before), held (for --yes), not written, lost
    version: str = ""  # "new": nothing was there before; "new version": handed in again; else that of the last row
    ran: bool = False  # whether it was graded in this run
    got: float | None = None
    most: float = 0.0
    before: float | None = None  # if the gradebook had another score
    changes: list[tuple] = field(default_factory=list)
    review: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # repairs and such: worth knowing, nothing to do
    results: dict[str, dict] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a batch did."""

    assignment: str
    lines: dict[str, Line]
    collected: Collected
    graded: int = 0  # notebooks that a worker graded in this run
    penalties: list[str] = field(default_factory=list)  # students whose late penalty changed, and nothing else
    backup: Path | None = None

    @property
    def held(self) -> list[Line]:
        return [line for line in self.lines.values() if line.state == "held"]

    @property
    def failed(self) -> list[Line]:
        return [line for line in self.lines.values() if line.state == "not written"]


@dataclass(frozen=True)
class Wish:
    """What the lecturer asked for."""

    assignment: str
    jobs: int = 1
    scheduler: str = ""
    source: Path | None = None
    names: str = ""
    any_owner: bool = False
    yes: bool = False
    wait_s: float = 600


def run_batch(
    places: Places,
    wish: Wish,
    make: workers.Make = workers.sealed_grader,
    say: Callable[[str], None] = print,
    step: Callable[[int, int, str], None] = lambda done, all_, student: None,
    ask: Callable[[list[Line]], bool] = lambda lines: False,
    version: str = "",
    after: Callable[[Batch], None] = lambda batch: None,
) -> Outcome:
    """Run one batch.

    step: told after each submission. ask: whether changes of old scores may be written. after: called at the
    end, with the lock still held.
    """
    masters = places.masters(wish.assignment)
    with only_one(places.staging / f"{wish.assignment}.lock", wish.assignment):
        clear_staging(places)
        collected = collect(places, wish.assignment, wish.source, wish.names, wish.any_owner)
        backup = back_up(places)
        ledger = Ledger(places.db_url, places.course_id, wish.wait_s, say)
        try:
            register(places, ledger, wish.assignment, masters)
            batch = Batch(places, wish, masters, ledger, version or grader_version(), collected)
            batch.outcome.backup = backup
            batch.run(make, step, ask)
            after(batch)
            return batch.outcome
        finally:
            ledger.close()


class Batch:
    """The coordinator's state while a batch runs. It alone writes."""

    def __init__(self, places: Places, wish: Wish, masters: dict[str, Path], ledger: Ledger, version: str, collected):
        self.places, self.wish, self.ledger, self.version = places, wish, ledger, version
        self.store = Store(places.store)
        self.masters = {name: path.read_text(encoding="utf-8") for name, path in masters.items()}
        self.parsed = {name: nbformat.reads(text, as_version=4) for name, text in self.masters.items()}
        self.tests = tests_hash(masters)
        self.have, self.rows = ledger.scores(wish.assignment), ledger.rows(wish.assignment)
        self.off = ledger.penalties(wish.assignment)
        printed = ledger.texts(wish.assignment)
        self.check_texts = {name: self.texts_of(name, printed) for name in self.parsed}
        self.receipts = self.store.latest(wish.assignment)
        self.late = late_plugin(places)
        lines = {student: Line(student) for student in sorted({*self.receipts, *self.have})}
        self.outcome = Outcome(wish.assignment, lines, collected)
        self.jobs = {student: self.job(receipt) for student, receipt in self.receipts.items()}

    def job(self, receipt: Receipt) -> Job:
        seed = self.store.seed(receipt.assignment, receipt.student)
        return Job(receipt.assignment, receipt.student, receipt, self.tests, self.version, seed)

    def run(self, make, step, ask) -> None:
        """Everything between collection and the table."""
        todo, held = [], []
        for student, line in self.outcome.lines.items():
            job = self.jobs.get(student)
            if job is None:
                line.review.append("has scores in the gradebook, but no submission was found")
                line.state, line.got = "lost", total(self.have[student])
                continue
            line.review += [
                *job.receipt.notes,
                *(f"{name or 'it'} refused: {why}" for name, why in job.receipt.refused.items()),
            ]
            row = self.rows.get(student, [None])[-1]
            if row:
                line.version = "new version" if row.submission != job.receipt.content else ""
            elif all(mark.auto is mark.manual is None for mark in self.have.get(student, {}).values()):
                line.version = "new"
            if (
                row
                and row.key == job.key
                and not has_fault(row.results)
                and matches(row.results, self.have.get(student, {}))
            ):
                self.finish(job, row.results, "done")
                continue
            old = self.results_before(job)
            if old:
                self.settle(job, *old, held)
            else:
                todo.append(job)
        done, number = len(self.outcome.lines) - len(todo), len(self.outcome.lines)
        for job, results in self.grade(todo, make):
            put_json(self.staged_at(job), results)
            self.outcome.lines[job.student].ran = True
            self.settle(job, results, None, held)
            done += 1
            step(done, number, job.student)
        held.sort(key=lambda part: part[0].student)
        if held and (self.wish.yes or ask([self.outcome.lines[job.student] for job, *_ in held])):
            for job, results, again in held:
                self.write(job, results, again)
        kept = [job for name, job in self.jobs.items() if self.outcome.lines[name].state in ("done", "held")]
        receipts = {job.student: job.receipt for job in kept}
        self.outcome.penalties = self.ledger.penalize(self.wish.assignment, receipts, self.late)
        keys = {job.key for job in self.jobs.values()}
        for path in (self.places.staging / "results" / self.wish.assignment).glob("*.json"):
            if path.stem not in keys:  # of a version that a newer one has replaced
                path.unlink()

    # ---- where results come from -----------------------------------------------------------------------------------

    def staged_at(self, job: Job) -> Path:
        return self.places.staging / "results" / job.assignment / f"{job.key}.json"

    def results_before(self, job: Job) -> tuple[dict[str, dict], int | None] | None:
        """Results of the same submission, tests, version and seed: from an older row, or from staging."""
        for row in reversed(self.rows.get(job.student, [])):
            if row.key == job.key and not has_fault(row.results):
                return row.results, row.id
        results = staged(self.staged_at(job))
        return (results, None) if results and not has_fault(results) else None

    def grade(self, todo: list[Job], make) -> Iterator[tuple[Job, dict[str, dict]]]:
        """Grade submissions, several at once; each one as soon as all of its notebooks are graded."""
        jobs = {job.key: job for job in todo}
        ready: dict[str, dict[str, dict]] = {job.key: {} for job in todo}
        for job in todo:
            ready[job.key] = self.without_worker(job)
            if len(ready[job.key]) == len(self.masters):
                yield job, self.named(job, ready.pop(job.key))
        tasks = (task for key in list(ready) for task in self.tasks(jobs[key], ready[key]))
        for task, result in self.graded(tasks, make):
            self.outcome.graded += 1
            ready[task.key][task.notebook] = result
            if len(ready[task.key]) == len(self.masters):
                yield jobs[task.key], self.named(jobs[task.key], ready.pop(task.key))

    def graded(self, tasks: Iterable[workers.Task], make) -> Iterator[tuple[workers.Task, dict]]:
        if self.wish.scheduler:
            return workers.on_a_cluster(tasks, self.wish.scheduler, make)
        return workers.on_this_machine(tasks, self.wish.jobs, make)

    def notebook_of(self, receipt: Receipt, name: str) -> str:
        """The file of a submission that is a notebook of the assignment; a lone one with another name is taken for it."""
        if f"{name}.ipynb" in receipt.files:
            return f"{name}.ipynb"
        others = [file for file in receipt.files if file.lower().endswith(".ipynb")]
        return others[0] if len(others) == 1 == len(self.masters) else ""

    def without_worker(self, job: Job) -> dict[str, dict]:
        """Results of the notebooks that were not handed in."""
        results = {}
        for name, master in self.parsed.items():
            if not self.notebook_of(job.receipt, name):
                files = ", ".join(job.receipt.files) or "nothing"
                why = f"{name}.ipynb is not in the submission, which has {files}. Hand the notebook in under its own name."
                results[name] = missing(master, why, self.version, job.seed)
        return results

    def tasks(self, job: Job, have: dict[str, dict]) -> Iterator[workers.Task]:
        for name, text in self.masters.items():
            if name not in have:
                content = self.store.get(job.receipt.files[self.notebook_of(job.receipt, name)])
                yield workers.Task(job.key, job.student, name, text, content, job.seed, self.version)

    def named(self, job: Job, results: dict[str, dict]) -> dict[str, dict]:
        """The results, with a note on each notebook that came under another name, was not wanted or has other checks."""
        used = set()
        for name, result in results.items():
            file = self.notebook_of(job.receipt, name)
            if file and file != f"{name}.ipynb":
                result["repairs"] = [*result["repairs"], f"{file} was taken for {name}.ipynb."]
            if other := file and not result["problem"] and self.other_checks(name, job.receipt.files[file]):
                note = f"Checks with other text than the assignment's: {', '.join(other)}. The assignment's own ran."
                result["repairs"] = [*result["repairs"], note]
            used.add(file)
        left = [file for file in job.receipt.files if file.lower().endswith(".ipynb") and file not in used]
        if left:
            first = next(iter(results.values()))
            first["repairs"] = [*first["repairs"], f"Also handed in, and not graded: {', '.join(left)}."]
        return keep_notebooks(self.places, self.store, job, results)

    def other_checks(self, name: str, file: str) -> list[str]:
        """Checks whose text in a submission is neither the one in source/ nor the one that nbgrader last printed."""
        try:
            handed = {cell.grade_id or cell.cell_id: cell.text for cell in cells_of_bytes(self.store.get(file))}
        except (Unreadable, RecursionError):
            return []
        known = self.check_texts[name]
        return [check for check in known if check in handed and lines_of(handed[check]) not in known[check]]

    def texts_of(self, name: str, printed: dict[tuple[str, str], str]) -> dict[str, tuple]:
        """Check -> the lines that a student sees of it, from source/ and from the gradebook."""
        ours = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in self.parsed[name].cells}
        texts = {check: (ours[check], printed.get((name, check), "")) for check in graded_cells(self.parsed[name])}
        return {check: tuple(lines_of(visible(text)) for text in both) for check, both in texts.items()}

    # ---- where results go ------------------------------------------------------------------------------------------

    def settle(self, job: Job, results: dict[str, dict], again: int | None, held: list) -> None:
        """Write results, unless they change scores of a submission that is not new: these wait for a yes."""
        line, have = self.outcome.lines[job.student], self.have.get(job.student, {})
        line.changes = differences(results, have)
        row = self.rows.get(job.student, [None])[-1]
        is_new = row is not None and row.submission != job.receipt.content
        if line.changes and not is_new:
            line.state, line.results = "held", results
            line.got, line.before = points(results), total(have)
            describe(line)
            held.append((job, results, again))
        else:
            self.write(job, results, again)

    def write(self, job: Job, results: dict[str, dict], again: int | None) -> None:
        """Scores and row in one transaction, then the notebook for Formgrader. A database that stays locked costs this one."""
        line, have = self.outcome.lines[job.student], self.have.get(job.student, {})
        line.before = total(have) if line.changes else None
        try:
            self.ledger.write(job, results, self.answers(job, results), self.late, again)
        except sqlalchemy.exc.OperationalError as error:
            line.state = "not written"
            line.review.append(f"the gradebook could not be written ({error.orig}); run the command again")
            return
        self.finish(job, results, "kept" if again else "graded")

    def finish(self, job: Job, results: dict[str, dict], state: str) -> None:
        """Publish if need be, and fill the line of the table."""
        if not is_published(self.places, job.student, job.assignment, results):
            publish(self.places, self.store, job.student, job.assignment, results, job.receipt.claimed)
        self.staged_at(job).unlink(missing_ok=True)
        line = self.outcome.lines[job.student]
        line.state, line.results, line.got = state, results, points(results)
        describe(line)

    def answers(self, job: Job, results: dict[str, dict]) -> dict[str, dict[str, str]]:
        """What stands in the answer cells, from the autograded notebook: name -> cell -> text."""
        found = {}
        for name, result in results.items():
            notebook = nbformat.reads(self.store.get(result["object"]).decode("utf-8"), as_version=4)
            entries = ((cell.metadata.get("nbgrader", {}), cell.source) for cell in notebook.cells)
            found[name] = {entry["grade_id"]: source for entry, source in entries if entry.get("solution")}
        return found


def describe(line: Line) -> None:
    """What a person should look at, from the results."""
    line.most = sum(check["max_points"] for result in line.results.values() for check in result["checks"])
    for result in line.results.values():
        faults = [check["cell"] for check in result["checks"] if check["points"] is None]
        if faults:
            why = f" ({result['problem']})" if result["problem"] else ""
            line.review.append(f"the grader could not decide {', '.join(faults)}{why}")
        if result["problem"] and not faults:
            line.review.append(first_sentence(result["problem"]))
        if result["level"] == 1:
            line.review.append("graded without a sandbox")
        line.told += result["repairs"]


def first_sentence(text: str) -> str:
    """What is so, without what a student should do, which stands in the sentences behind.

    >>> first_sentence("The file is empty, so it is not a notebook. Open it in JupyterLab.")
    'The file is empty, so it is not a notebook'
    """
    return re.split(r"\.(?:\s+(?=[A-Z])|\s*$)", text, maxsplit=1)[0]


def total(have: dict[tuple[str, str], Mark]) -> float:
    """Points by checks that the gradebook has."""
    return sum(mark.auto or 0.0 for mark in have.values())


def late_plugin(places: Places):
    """The plug-in for late penalties that nbgrader's configuration names."""
    from nbgrader.preprocessors import AssignLatePenalties

    step = AssignLatePenalties(config=places.config)
    step.init_plugin()
    return step.plugin_inst
