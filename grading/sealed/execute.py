"""The one function that others use: `Grader.grade`.

    with Grader() as grader:                  # "auto": the best level that holds here, at least 2
        report = grader.grade(master, "submitted/ada/ps01/ps01.ipynb", "ada", seed=b"...")

`master` is the instructor's notebook (from source/, with solutions and hidden tests) as a NotebookNode.
`submission` is a NotebookNode or the path of a file that nobody has looked at yet.
`report.notebook` is the autograded notebook, for nbgrader's SaveAutoGrades and feedback.
grade() raises GraderUnavailable if the sandbox cannot start; for anything that a submission does, it returns.
One Grader serves one thread. Workers open one each.
"""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict

from . import wire
from .limits import Limits
from .outputs import check_outputs, checked_outputs, plain_text, with_note
from .reading import Unreadable, cells_of, cells_of_bytes, read_file
from .rebuild import Rebuilt, defined, name_of, own_role, rebuild
from .report import ERROR, FAULT, LIMIT, NOT_ATTEMPTED, OUTCOMES, PASS, CheckResult, Report
from .sandbox import NotHere, Server

__all__ = ["CheckResult", "Grader", "GraderUnavailable", "Limits", "Report"]
VERSION = "1"
USUAL = Limits()
LEVELS = {4: "bubblewrap in a control group", 3: "bubblewrap", 2: "Landlock and seccomp", 1: "a separate process, not isolated"}


class GraderUnavailable(RuntimeError):
    """The asked level of isolation does not hold on this machine; the text says how to get it."""


class Grader:
    """Warm servers for one batch; a context manager.

    level: "auto" for the best of 4, 3 and 2; or 4, 3, 2, or 1, which isolates nothing and has to be asked for.
    """

    def __init__(self, level: str | int = "auto", limits: Limits = USUAL):
        if str(level) not in ("auto", "4", "3", "2", "1"):
            raise ValueError(f"level={level!r} is none of auto, 4, 3, 2 and 1")
        self.wanted, self.limits = level, limits
        self.level = 0
        self.student: Server | None = None
        self.judge: Server | None = None

    def __enter__(self) -> Grader:
        self.open()
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def open(self) -> None:
        """Start the servers, unless they run. Raises GraderUnavailable."""
        if self.student and self.judge:
            return
        reasons = []
        for level in (4, 3, 2) if self.wanted == "auto" else (int(self.wanted),):
            try:
                self.student = Server("student", level, self.limits.group_bytes)
                self.judge = Server("judge", level, self.limits.group_bytes)
                self.level = level
                return
            except NotHere as error:
                reasons.append(f"Level {level} ({LEVELS[level]}): {error}.")
                self.close()
        raise GraderUnavailable(
            " ".join(reasons) + " `python -m grading doctor` says how to get it. Level 1 (no isolation) has to be asked for."
        )

    def close(self) -> None:
        """Stop the servers."""
        for server in (self.student, self.judge):
            if server:
                server.close()
        self.student = self.judge = None

    def grade(
        self, master: NotebookNode, submission: NotebookNode | str | Path, student: str, seed: bytes | None = None
    ) -> Report:
        """Grade one notebook of one student."""
        start = time.monotonic()
        digest, cells, problem = opened(submission, self.limits)
        rebuilt = rebuild(master, cells, student)
        master_hash = hashlib.sha256(json.dumps(master, sort_keys=True).encode()).hexdigest()
        job = jobs(master, rebuilt, self.limits, seed, digest)
        if problem:
            verdicts, events = {}, {}
        else:
            self.open()
            verdicts, events = self.run(job)
        results = results_of(master, verdicts, problem)
        repairs = (problem,) if problem else rebuilt.repairs
        notebook = with_note(finished(rebuilt.notebook, results, verdicts, events, self.limits), repairs)
        checks = [asdict(result) for result in results.values()]
        kept = {"level": self.level, "version": VERSION, "problem": problem, "repairs": list(repairs), "checks": checks}
        notebook.metadata["sealed"] = from_dict(kept)  # feedback is made from this
        return Report(
            student=student,
            checks=tuple(results.values()),
            repairs=repairs,
            level=self.level,
            submission_hash=digest,
            master_hash=master_hash,
            version=VERSION,
            seed=seed.hex() if seed else None,
            limits=self.limits.as_dict(),
            seconds=round(time.monotonic() - start, 3),
            problem=problem,
            notebook=notebook,
        )

    def run(self, job: Mapping) -> tuple[dict[str, dict], dict[str, dict]]:
        """Verdicts by check and events by cell. A server that is gone is started anew once."""
        for attempt in (1, 2):
            try:
                return self.run_once(job)
            except (NotHere, OSError) as error:
                self.close()
                if attempt == 2:
                    return {"": {"fault": f"the sandbox failed twice: {error}"}}, {}
                self.open()
        raise AssertionError

    def run_once(self, job: Mapping) -> tuple[dict[str, dict], dict[str, dict]]:
        """First the student's cells; when what they printed is fixed, the checks."""
        pairs = [socket.socketpair() for cell in job["student"]["cells"] if cell["kind"] == "check"]
        sockets: list[socket.socket] = []
        try:
            sockets.append(self.student.start(job["student"], [a for a, _ in pairs]))
            sockets.append(self.judge.start(job["judge"], [b for _, b in pairs]))
            for a, b in pairs:
                a.close()
                b.close()
            deadline = time.monotonic() + self.limits.wall_s + 5
            left = student_part(sockets[0], deadline, 5 * self.limits.notebook_bytes)
            wire.send(sockets[1], b"go")
            verdicts = judge_part(sockets[1], time.monotonic() + self.limits.wall_s)
        finally:
            for sock in sockets:
                sock.close()
        self.student.end()
        self.judge.end()
        return verdicts, left


def opened(submission: Any, limits: Limits) -> tuple[str, list, str]:
    """Hash, cells and problem of a submission; a problem is a sentence, and then there are no cells."""
    data = b""
    try:
        if isinstance(submission, Mapping):
            data = json.dumps(submission, sort_keys=True, default=str).encode()
            cells = cells_of(submission)
        else:
            data = read_file(submission, limits.notebook_bytes)
            cells = cells_of_bytes(data)
        problem = ""
    except (Unreadable, RecursionError) as error:
        cells, problem = [], str(error) or "The notebook is nested too deeply."
    return hashlib.sha256(data).hexdigest(), cells, problem


def jobs(master: NotebookNode, rebuilt: Rebuilt, limits: Limits, seed: bytes | None, digest: str) -> dict:
    """What each side gets. The student's never holds a check's text, and the judge's holds none of the student's."""
    checks = {name_of(cell): cell for cell in master.cells if own_role(cell) == "check"}
    givens = {name_of(cell): cell.source for cell in master.cells if own_role(cell) in ("setup", "given")}
    ours, theirs, names = [], [], set()
    for cell in master.cells:
        if own_role(cell) == "answer":
            names |= defined(cell.source)
    for cell in rebuilt.notebook.cells:
        name = name_of(cell)
        if cell.cell_type != "code":
            continue
        if name in checks:
            points = float(checks[name].metadata.nbgrader.points)
            ours.append({"kind": "check"})
            theirs.append({"kind": "check", "id": name, "source": checks[name].source, "points": points})
        elif name in givens:
            if cell.source.strip():
                ours.append({"kind": "given", "id": name, "source": givens[name]})
                theirs.append({"kind": "given", "id": name, "source": givens[name]})
        elif cell.source.strip():
            ours.append({"kind": "own", "id": cell.id, "source": cell.source})
    common = {"limits": limits.as_dict(), "seeded": bool(seed)}
    mixed = hashlib.sha256(b"inputs" + (seed or b"")).hexdigest()
    return {
        "student": common | {"cells": ours, "seed": digest[:16]},
        "judge": common | {"cells": theirs, "seed": mixed, "names": sorted(names)},
    }


def student_part(sock: socket.socket, deadline: float, most: int) -> dict[str, dict]:
    """What the student's cells left, by cell id. Raises NotHere if the guardian, which runs no student code, is gone."""
    try:
        left = wire.receive_json(sock, deadline, most)
    except (EOFError, OSError, ValueError) as error:
        raise NotHere(f"the student's side broke ({type(error).__name__})") from None
    cells = left.get("cells") if isinstance(left, dict) else None
    return cells if isinstance(cells, dict) else {}


def judge_part(sock: socket.socket, deadline: float) -> dict[str, dict]:
    """Verdicts by check. What is missing at the deadline is said under the name "" as late or as a fault."""
    verdicts: dict[str, dict] = {}
    try:
        while not (verdict := wire.receive_json(sock, deadline)).get("end"):
            verdicts[verdict["cell"]] = verdict
    except TimeoutError:
        verdicts[""] = {"late": True}
    except (EOFError, OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        verdicts[""] = {"fault": f"the judge's process ended ({type(error).__name__})"}
    return verdicts


def results_of(master: NotebookNode, verdicts: dict[str, dict], problem: str) -> dict[str, CheckResult]:
    """One result for each check cell of the master, whatever happened."""
    results = {}
    for cell in master.cells:
        if own_role(cell) == "check":
            most = float(cell.metadata.nbgrader.points)
            results[name_of(cell)] = result_of(name_of(cell), most, verdicts, problem)
    return results


def result_of(name: str, most: float, verdicts: dict[str, dict], problem: str) -> CheckResult:
    """The result of one check; a verdict that is missing or odd is a fault, not a score."""
    verdict, rest = verdicts.get(name), verdicts.get("", {})
    if problem:
        return CheckResult(name, NOT_ATTEMPTED, 0.0, most, problem)
    if verdict is None and rest.get("late"):
        return CheckResult(name, LIMIT, 0.0, most, "The time for this submission was over before this check.")
    if verdict is None:
        return CheckResult(name, FAULT, None, most, rest.get("fault", "the judge gave no verdict"))
    outcome, share = verdict.get("outcome"), verdict.get("share")
    if outcome == FAULT or outcome not in OUTCOMES or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        return CheckResult(name, FAULT, None, most, plain_text(str(verdict.get("message")), 4000))
    message, seconds = plain_text(verdict.get("message"), 4000), float(verdict.get("seconds", 0))
    hidden = bool(verdict.get("hidden"))
    return CheckResult(name, outcome, share * most, most, message, hidden, round(seconds, 1) if hidden else seconds)


def finished(
    notebook: NotebookNode, results: dict[str, CheckResult], verdicts: dict[str, dict], events: dict, limits: Limits
) -> NotebookNode:
    """The rebuilt notebook with all outputs in it."""
    left = limits.notebook_bytes
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        name = name_of(cell)
        if name in results:
            said = plain_text(verdicts.get(name, {}).get("said", ""), 100_000)
            cell.outputs = check_outputs(results[name], said)
        else:
            outputs = checked_outputs(events.get(cell.id), limits)
            left -= len(json.dumps(outputs))
            cell.outputs = outputs if left > 0 else []
    return notebook


# The outcomes that a caller may want to tell apart.
__all__ += ["ERROR", "FAULT", "LIMIT", "NOT_ATTEMPTED", "PASS"]
