"""72 bad submissions and five courses of events, through stock nbgrader and through this project, side by side.

    python -m tests.benchmarks.against_stock [--only WORDS] [--ours]

Each case is a class of three: a good student, the bad submission, a good student. Printed for both: whether the batch went on,
what the bad one got against what it had earned, and what it did to the machine. `stock` is `nbgrader autograde` as it comes, in a
fresh copy of the course; 8 s a cell and 6 GB of memory are set from outside, as it has no such limits. Ours runs all cases in one batch.
Status 0 if ours has no bad verdict.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "browser"), str(REPOSITORY / "tests" / "course")]

import nbformat  # noqa: E402
from bad_submissions import ASSIGNMENT, CASES, FULL, MARKER, WRONG, Bad, master, without  # noqa: E402
from kit.course import Course  # noqa: E402

from grading.student_edition import Printer  # noqa: E402
from tests.benchmarks.grading import STOCK  # noqa: E402

BEFORE, AFTER = "agood", "zgood"  # nbgrader goes by name
TIME = "2026-01-01 10:00:00 UTC"


@dataclass
class Seen:
    """What grading one bad submission did."""

    batch: bool  # whether the others were graded rightly
    score: float | None  # of the bad one; None where there is none and nobody would take it for one
    harm: list[str] = field(default_factory=list)

    def verdict(self, earned: float) -> str:
        """In a few words; empty if all is as it should be."""
        words = [] if self.batch else ["BATCH STOPS OR SPOILED"]
        if self.score is not None and abs(self.score - earned) > 1e-9:
            words.append(f"{'gains' if self.score > earned else 'loses'} {abs(self.score - earned):g}")
        return ", ".join(words + self.harm)


def printed(folder: Path) -> nbformat.NotebookNode:
    """The student's copy."""
    nbformat.write(master(), folder / "master.ipynb")
    return nbformat.reads(Printer(REPOSITORY).print(folder / "master.ipynb"), as_version=4)


def lay(root: Path, student: str, case: Bad, notebook, port: int) -> None:
    """Put a submission where collect leaves it."""
    place = root / "grading" / "submitted" / student / ASSIGNMENT
    place.mkdir(parents=True)
    (place / "timestamp.txt").write_text(TIME)
    if case.file:
        (place / case.file).write_bytes(case.content(notebook).replace(b"PORT", str(port).encode()))
    if case.beside:
        case.beside(place)


class Machine:
    """The machine around a batch: a listener that should hear nothing, processes that should be gone."""

    def __enter__(self) -> Machine:
        self.server, self.heard = socket.create_server(("127.0.0.1", 0)), 0
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.server.accept()[0].close()
                self.heard += 1

    def __exit__(self, *_) -> None:
        self.server.close()
        self.orphans()

    def orphans(self) -> int:
        """Processes that a submission left behind; they are ended."""
        found = 0
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "cmdline").read_bytes() == b"sleep\x0077777\x00":
                    os.kill(int(folder.name), 9)
                    found += 1
        return found


def scores(root: Path) -> dict[str, float | None]:
    """Student -> points as nbgrader exports them, by checks and as extra credit; None for a submission without a time, which waits."""
    book = root / "grading" / "gradebook.db"
    if not book.is_file():
        return {}
    with contextlib.closing(sqlite3.connect(book)) as db:
        found = db.execute(
            "SELECT s.student_id, sum(coalesce(g.auto_score, 0) + coalesce(g.extra_credit, 0)), s.timestamp IS NULL"
            " FROM submitted_assignment s JOIN submitted_notebook n ON n.assignment_id = s.id"
            " LEFT JOIN grade g ON g.notebook_id = n.id GROUP BY s.student_id"
        ).fetchall()
    return {student: None if waits else points or 0.0 for student, points, waits in found}


def harm_of(root: Path, student: str, machine: Machine) -> list[str]:
    """What a submission reached."""
    harm = []
    autograded = root / "grading" / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    size = autograded.stat().st_size if autograded.is_file() else 0
    text = autograded.read_text(encoding="utf-8", errors="replace") if size else ""
    outputs = text if size > 9_000_000 else "".join(str(c.get("outputs", "")) for c in (nbformat.reads(text, 4).cells if text else []))
    for sign, words in ((MARKER, "reads the solutions"), ("HIDDEN-TEXT", "prints a hidden test"), ("good'", "lists students")):
        if sign in outputs:
            harm.append(words)
    if size > 9_000_000:
        harm.append(f"leaves {size / 1e6:.0f} MB")
    if (root / "source" / "planted").exists():
        (root / "source" / "planted").unlink()
        harm.append("writes into source/")
    if machine.heard:
        machine.heard = 0
        harm.append("reaches the network")
    if number := machine.orphans():
        harm.append(f"{number} processes stay")
    return harm


def limited() -> None:
    """6 GB of memory for stock and its kernel."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


def stock(course: Course, case: Bad, notebook) -> Seen:
    """One class of three through `nbgrader autograde`."""
    root = course.folder / "stock"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(course.root, root)
    with open(root / "nbgrader_config.py", "a") as config:
        config.write(STOCK + "c.Execute.timeout = 8\n")
    student = case.student or "middle"
    with Machine() as machine:
        for name, what in ((BEFORE, Bad("good")), (student, case), (AFTER, Bad("good"))):
            lay(root, name, what, notebook, machine.port)
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT], cwd=root, env=course.environment(root),
                capture_output=True, timeout=180, preexec_fn=limited,
            )  # fmt: skip
        got = scores(root)
        batch = got.get(BEFORE) == got.get(AFTER) == FULL
        return Seen(batch, got.get(student, 0.0 if case.file else None), harm_of(root, student, machine))


def ours(course: Course, cases: list[Bad], notebook) -> dict[str, Seen]:
    """All cases and two good ones in one batch of `python -m grading grade`."""
    root = course.folder / "ours"
    shutil.copytree(course.root, root)
    with Machine() as machine:
        names = {case.name: case.student or f"m{number:02}" for number, case in enumerate(cases)}
        for name in (BEFORE, AFTER):
            lay(root, name, Bad("good"), notebook, machine.port)
        for case in cases:
            lay(root, names[case.name], case, notebook, machine.port)
        run_ours(course, root)
        got = scores(root)
        batch = got.get(BEFORE) == got.get(AFTER) == FULL
        return {case.name: Seen(batch, got.get(names[case.name], 0.0), harm_of(root, names[case.name], machine)) for case in cases}


def run_ours(course: Course, root: Path, *words: str) -> None:
    """The lecturer's command in a copy of the course."""
    done = subprocess.run(
        [sys.executable, "-m", "grading", "grade", ASSIGNMENT, "--no-feedback", *words],
        cwd=root, env=course.environment(root), capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        sys.exit(f"ours ended with status {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}")


EVENTS = {  # a first submission with full points, then this one: what it has earned
    "resubmission without a test cell, answers wrong": Bad("", 0, WRONG, change=without("area-check")),
    "resubmission without metadata, answers wrong": Bad("", 0, WRONG, change=lambda n: [c.metadata.pop("nbgrader", None) for c in n.cells]),
    "resubmission that is no JSON": Bad("", 0, raw=lambda data: b"{ broken"),
    "resubmission that kills the kernel": Bad("", FULL - 3, {"area-answer": "import os\nos._exit(1)"}),
    "resubmission without a time stamp, answers wrong": Bad("", 0, WRONG),
}  # fmt: skip


def second_time(course: Course, name: str, case: Bad, notebook, which: str) -> float | None:
    """The score after a first, good version and then this one."""
    root = course.folder / f"{which}-events"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(course.root, root)
    if which == "stock":
        with open(root / "nbgrader_config.py", "a") as config:
            config.write(STOCK + "c.Execute.timeout = 8\n")
    for version in (Bad("good"), case):
        shutil.rmtree(root / "grading" / "submitted", ignore_errors=True)
        lay(root, "ada", version, notebook, 0)
        stamp = root / "grading" / "submitted" / "ada" / ASSIGNMENT / "timestamp.txt"
        if version is case:
            stamp.write_text("2026-01-02 10:00:00 UTC")
            if "without a time stamp" in name:
                stamp.unlink()
        if which == "ours":
            run_ours(course, root)
        else:
            words = [sys.executable, "-m", "nbgrader", "autograde", ASSIGNMENT]
            subprocess.run(words, cwd=root, env=course.environment(root), capture_output=True)
    return scores(root).get("ada")


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", default="", help="cases with these words in their name")
    words.add_argument("--ours", action="store_true", help="leave stock out")
    args = words.parse_args()
    cases = [case for case in CASES if args.only in case.name]
    with tempfile.TemporaryDirectory() as folder:
        course = Course(Path(folder))
        course.add_source(ASSIGNMENT, {ASSIGNMENT: master()})
        notebook = printed(Path(folder))
        course.command("generate_assignment", ASSIGNMENT)
        started = time.monotonic()
        mine = ours(course, cases, notebook)
        print(f"ours: {len(cases)} bad and 2 good submissions in one batch, {time.monotonic() - started:.0f} s\n")
        print(f"{'submission':42} {'earned':>6} | {'stock':>6} {'what went wrong':46} | {'ours':>6} what went wrong")
        faults = {"stock": 0, "ours": 0}
        for case in cases:
            theirs = None if args.ours else stock(course, case, notebook)
            line(case.name, case.earned, theirs, mine[case.name], faults)
        for name, case in EVENTS.items():
            if args.only in name:
                both = ("ours",) if args.ours else ("stock", "ours")
                seen = {which: Seen(True, second_time(course, name, case, notebook, which)) for which in both}
                line(name, case.earned, seen.get("stock"), seen["ours"], faults)
        print(f"\nwrong, stopped, or harmful: stock {'not run' if args.ours else faults['stock']}, ours {faults['ours']}")
        return 1 if faults["ours"] else 0


def line(name: str, earned: float, theirs: Seen | None, mine: Seen, faults: dict[str, int]) -> None:
    """One row of the table."""
    told = {"stock": theirs.verdict(earned) if theirs else "", "ours": mine.verdict(earned)}
    for which, verdict in told.items():
        faults[which] += bool(verdict)
    show = {which: "-" if seen is None or seen.score is None else f"{seen.score:g}" for which, seen in (("stock", theirs), ("ours", mine))}
    print(f"{name[:42]:42} {earned:6g} | {show['stock']:>6} {told['stock'][:46]:46} | {show['ours']:>6} {told['ours']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
