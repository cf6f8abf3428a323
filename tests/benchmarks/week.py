"""A lecturer's week with a class of 30 in JupyterLab's own panels, in a real browser, with sealed grading.

    python -m tests.benchmarks.week [--shots FOLDER] [--students 30]

Released, handed in, collected, graded in Lab's terminal, marked by hand in Formgrader, handed in again, handed back, a
check corrected, exported. A third of the class is hostile, some files are no notebooks. What each student has earned is
known from elsewhere: full points, nothing for an exercise that was attacked or left, and for known mistakes what the
check cells of `source/` say when they are run in this process. Status 0 if every score is that one wherever the lecturer
reads it, no process is left, nothing that a student wrote ran in a page, and nothing outside this machine was asked for.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import csv
import ctypes
import functools
import html
import io
import json
import linecache
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / part) for part in (".", "tests/browser", "tests/course")]

import nbformat  # noqa: E402
from bad_submissions import cell, without  # noqa: E402
from kit import lab  # noqa: E402
from kit.chromium import start_browser, window  # noqa: E402
from kit.course import answered  # noqa: E402
from kit.server import LabServer  # noqa: E402
from test_nbgrader_panels import LIMIT_MS, NOT_OURS, confirm, press  # noqa: E402

from grading.answers import read_answers  # noqa: E402
from grading.cells import exercise_of, role_of  # noqa: E402
from grading.records.feedback import hidden_lines  # noqa: E402
from tests.benchmarks.against_stock import Machine  # noqa: E402
from tests.benchmarks.grading import HOSTILE, MALFORMED, course_of  # noqa: E402
from tests.notebooks.test_checks_bite import run, world  # noqa: E402

PS = "ps01_foundations"
OFF = 5  # points that the course takes off a late submission
LATE = f"""
from nbgrader.plugins import LateSubmissionPlugin
class Off(LateSubmissionPlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return {OFF}
"""
CHATTY = "\n\n\nimport warnings\nfor i in range(3000):\n    print('step', i)\nwarnings.warn('slow')"
UNWRITTEN = re.compile(r"def \w+\([^\n]*\):\n    raise NotImplementedError\b[^\n]*")
SCRIPT = (
    '<script>window.ran = 1</script><img src="http://127.0.0.1:PORT/x.png" onerror="window.ran = 1">'
    '<img src="https://evil.example/x.png">'
)
ATTACKS = {  # student -> the exercise that is attacked, and what stands in place of its answer
    "exit": ("conv-view", HOSTILE["exit"]),
    "kill": ("recompute", "import os\ndef place_checkpoints(*_):\n    os.kill(os.getpid(), 9)"),
    "loop": ("gradient-audit", "def audit_cases():\n    while True:\n        pass"),
    "memory": ("leaky-clinic", HOSTILE["memory"]),
    "children": ("row-column", "import os\nfor _ in range(5):\n    if os.fork() == 0:\n        os.setsid()\n"
                 "        os.execvp('sleep', ['sleep', '77777'])"),
    "patch": ("conv-view", "import mlsys.check as c\nnp.allclose = np.array_equal = np.isclose = lambda *a, **k: True\n"
              "c.close = c.that = c.function = check.close = check.that = check.function = lambda *a, **k: None\n"
              "window_view = fold = conv_cost = lambda *a, **k: ((0,), (0,))"),
    "equal": ("row-column", "class Yes(float):\n    __eq__ = __le__ = __ge__ = lambda *_: True\n"
              "start_state = row_column_step = state_bytes = lambda *_: Yes(0)"),
    "network": ("recompute", "import socket\ndef place_checkpoints(*_):\n"
                "    socket.create_connection(('127.0.0.1', PORT), 5).sendall(b'hello')\n    return []"),
    "files": ("leaky-clinic", "import glob\nfor place in ('ROOT', '..', '../..', '../../..', '../../../..'):\n"
              "    for path in glob.glob(place + '/source/*/*.ipynb') + glob.glob(place + '/grading/*.db'):\n"
              "        print('GOT', path, open(path, 'rb').read())"),
}  # fmt: skip
TERMINAL = """() => {
    const buffer = window.jupyterapp.shell.currentWidget.content._term.buffer.active;
    return Array.from({length: buffer.length}, (_, i) => buffer.getLine(i))
        .map((line, i) => (line.isWrapped || i === 0 ? '' : '\\n') + line.translateToString(true)).join('');
}"""


@dataclass
class Student:
    """One student and what is known of the work."""

    name: str
    kind: str
    answers: dict[str, str | None] = field(default_factory=dict)  # exercise -> text, over the right ones; None: left as it is
    lost: str = ""  # an exercise that is attacked and earns nothing
    change: Callable | None = None  # of the notebook that is handed in
    raw: Callable[[bytes], bytes] | None = None  # of its file, which then earns nothing
    file: str = f"{PS}.ipynb"
    off: float = 0.0
    hand: float = 0.0  # points that a person gives on top


class Oracle:
    """What an answer is worth: the instructor's check cells, run in this process without the grader."""

    def __init__(self, master: nbformat.NotebookNode):
        self.shared = world([c.source for c in master.cells if role_of(c) in ("setup", "given")])
        self.checks: dict[str, dict[str, tuple[str, float]]] = {}
        self.worth = functools.cache(self.worth)
        for c in master.cells:
            if role_of(c) == "check":
                self.checks.setdefault(exercise_of(c.id), {})[c.id] = c.source, c.metadata.nbgrader.points

    def full(self, exercise: str) -> float:
        """All points of an exercise."""
        return sum(most for _, most in self.checks[exercise].values())

    def worth(self, exercise: str, answer: str) -> float:
        """Points of an answer by the checks of its exercise."""
        space = dict(self.shared)
        assert run(answer, "<answer>", space) is None
        own = set(space) - set(self.shared)
        return sum(self.points(f"<{name}>", *check, dict(space), own) for name, check in self.checks[exercise].items())

    def points(self, name: str, source: str, most: float, space: dict, own: set[str]) -> float:
        """Nothing if a check fails, else all, or the number in its last line if that does not read the student's names."""
        body = ast.parse(source).body
        partial = isinstance(body[-1], ast.Expr) and not own & {n.id for n in ast.walk(body[-1]) if isinstance(n, ast.Name)}
        last = ast.unparse(body.pop()) if partial else "None"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(ast.Module(body, []), name, "exec"), space)
                value = eval(last, space)
        except Exception:
            return 0.0
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else most

    def earned(self, student: Student) -> float:
        """Points of a student, before anything is taken off."""
        if student.raw:
            return 0.0
        left = {student.lost, *(e for e, text in student.answers.items() if text is None)}
        worth = {e: self.worth(e, text) for e, text in student.answers.items() if e not in left}
        return student.hand + sum(worth.get(e, self.full(e)) for e in self.checks if e not in left)


def forged(notebook) -> None:
    """Tests that pass, a hundred points for each, and unlocked cells."""
    for c in notebook.cells:
        if c.id.startswith("conv-view-check"):
            c.source = "pass"
            c.metadata.nbgrader.update(points=100, locked=False)


def scripted(notebook) -> None:
    """Script in a cell of formatted text, in an output and in printed text."""
    notebook.cells.insert(3, nbformat.v4.new_markdown_cell(SCRIPT))
    cell(notebook, "leaky-clinic-answer").source += (
        f"\nfrom IPython.display import HTML, Markdown, display\ndisplay(HTML({SCRIPT!r}), Markdown({SCRIPT!r}))"
        f"\nprint('</pre>' + {SCRIPT!r})"
    )


def the_class(solutions: dict[str, str], number: int) -> dict[str, Student]:
    """The class by name; those that every week needs come first."""
    exercises = list(solutions)
    versions = read_answers(REPOSITORY / "tests" / "answers" / f"{PS}.py")
    right = {e: [v.source for v in versions if (v.exercise, v.kind) == (e, "right")] for e in exercises}
    wrong = {v.name: v for v in versions if v.kind == "wrong"}

    def mistaken(name: str, hint: str) -> Student:
        """Right, and then the one function that the mistake is in once more."""
        exercise, functions = wrong[hint].exercise, UNWRITTEN.sub("", wrong[hint].source)
        return Student(name, f"wrong: {hint}", {exercise: f"{solutions[exercise]}\n\n\n{functions.strip()}"})

    hostile = {name: Student(name, "hostile", {e: text}, lost=e) for name, (e, text) in ATTACKS.items()}
    nothing = "def place_checkpoints(*_):\n    return []"
    zeros = "window_view = fold = conv_cost = lambda *_: 0"
    people = [
        Student("ada", "in the panel, one exercise left", {"gradient-audit": None}),
        hostile["exit"],
        Student("script", "hostile: script, all right", change=scripted),
        Student("ben", "all right"),
        mistaken("nearly", "keep-nearly-best"),
        Student("stub", "nothing answered", dict.fromkeys(exercises)),
        Student("half", "two of five answered", dict.fromkeys(exercises[2:])),
        Student("late", "all right, late", off=OFF),
        Student("renamed", "other file name", file=f"{PS} (1).ipynb"),
        Student("empty", "0 bytes", raw=lambda _: MALFORMED["empty"]),
        *(hostile[name] for name in ATTACKS if name != "exit"),
        Student("forged", "hostile: checks, points", {"conv-view": zeros}, lost="conv-view", change=forged),
        Student("deleted", "hostile: check deleted", {"recompute": nothing}, lost="recompute", change=without("recompute-check-fits")),
        Student("torn", "half a file", raw=lambda data: data[: len(data) // 2]),
        Student("list", "a list", raw=lambda _: MALFORMED["list"]),
        Student("cleo", "right: first ways", {e: sources[0] for e, sources in right.items()}),
        Student("dan", "right: second ways", {e: sources[1] for e, sources in right.items()}),
        Student("eve", "right: mixed", {e: right[e][i % 2] for i, e in enumerate(exercises)}),
        mistaken("fay", "fold-averages"),
        mistaken("gus", "leak-other-rows"),
        mistaken("hal", "audit-tolerance-too-loose"),
        mistaken("ivy", "rowcol-no-clipping"),
        Student("zoe", "right, prints and warns", {"row-column": solutions["row-column"] + CHATTY}),
    ]
    people += [Student(f"more-{n}", "all right") for n in range(len(people), number)]
    return {student.name: student for student in people[:number]}


class Week:
    """The course, the class, the pages that are open, and what was found."""

    def __init__(self, folder: Path, machine: Machine, shots: Path | None, number: int):
        self.course, self.master, answers = course_of(folder, PS)
        self.machine, self.shots, self.oracle = machine, shots, Oracle(self.master)
        self.right = {exercise_of(name): text for name, text in answers.items()}
        self.people = the_class(self.right, number)
        self.wrong: list[str] = []
        self.got: dict[str, dict[str, float]] = {}  # column -> student -> points
        self.commands = 0
        self.home = folder / "state" / "course" / "home"
        self.home.mkdir(parents=True)  # Lab's terminal is a login shell, and those begin with the system's PATH
        (self.home / ".profile").write_text(f'PATH="{Path(sys.executable).parent}:$PATH"\nPS1="lecturer$ "\n')
        with open(self.course.root / "nbgrader_config.py", "a") as config:
            config.write('sys.path.insert(0, here)\nc.AssignLatePenalties.plugin_class = "late.Off"\n')
        (self.course.root / "late.py").write_text(LATE)
        with open(self.course.student("ada") / "nbgrader_config.py", "a") as config:
            config.write('\nc.CourseDirectory.student_id = "ada"\n')  # as this machine's account has another name
        os.environ.update(self.course.environment(self.course.root))

    def server(self, person: Path) -> LabServer:
        """JupyterLab in a person's folder, with our Python first on PATH."""
        own = {name: value for name, value in self.course.environment(person).items() if os.environ.get(name) != value}
        own["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return LabServer(person, self.course.folder / "state" / person.name, own)

    def earned(self, off: bool) -> dict[str, float]:
        """Student -> points that are due, with or without what is taken off."""
        return {name: self.oracle.earned(s) - off * min(s.off, self.oracle.earned(s)) for name, s in self.people.items()}

    def expect(self, what: str, got, want) -> None:
        """Note what is not as it should be."""
        if got != want:
            self.wrong.append(f"{what}: {got!r}, not {want!r}")
            print(f"    WRONG {self.wrong[-1]}", flush=True)

    def compare(self, column: str, got: dict[str, float], off: bool, *only: str) -> None:
        """Keep a column of the table and note each score that is not the right one. off: as for `earned`."""
        due, self.got[column] = self.earned(off), {name: got.get(name) for name in only or self.people}
        for name, score in self.got[column].items():
            self.expect(f"{column}, {name} ({self.people[name].kind})", score, due[name])

    def shot(self, page, name: str, height: int = 1000) -> None:
        """Keep a screenshot."""
        if self.shots:
            page.set_viewport_size({"width": 1500, "height": height})
            page.wait_for_timeout(500)
            page.screenshot(path=str(self.shots / f"{name}.png"))

    def rows(self, query: str) -> list[tuple]:
        """An answer of the gradebook's file."""
        with contextlib.closing(sqlite3.connect(self.course.root / "grading" / "gradebook.db")) as book:
            return book.execute(query).fetchall()

    def gradings(self) -> Counter:
        """Student -> rows of the ledger."""
        return Counter(name for (name,) in self.rows("SELECT student FROM mlsys_done"))

    @property
    def frame(self):
        return self.form.frame_locator("iframe[src*=formgrader]")

    def click(self, where: str, shot: str = "") -> None:
        """Click something in Formgrader; with `shot`, keep and close the message that follows."""
        self.frame.locator(where).first.click(timeout=LIMIT_MS)
        if shot:
            self.frame.locator(".modal-body:visible").wait_for(timeout=5 * LIMIT_MS)
            self.shot(self.form, shot)
            confirm(self.frame)

    def manage(self) -> None:
        """Formgrader's page of assignments."""
        self.form.bring_to_front()
        self.click("a:text-is('Manage Assignments')")

    def submissions(self, shot: str) -> dict[str, float]:
        """Formgrader's page of submissions: student -> points."""
        self.manage()
        self.click("td.num-submissions a")
        self.frame.locator("td.student-id").nth(len(self.people) - 1).wait_for(timeout=LIMIT_MS)
        self.shot(self.form, shot, 420 + 57 * len(self.people))
        names, scores = (self.frame.locator(f"td.{part}").all_inner_texts() for part in ("student-id", "score"))
        return {name: float(score.split("/")[0]) for name, score in zip(names, scores) if score}

    def typed(self, words: str, shot: str, status: int = 0, reply: str = "") -> str:
        """Type a command in Lab's terminal and wait until it ends; what the terminal shows.

        status: how it should end. reply: what is typed when it asks.
        """
        self.commands += 1
        end, page = self.home / f"end-{self.commands}", self.terminal
        page.bring_to_front()
        page.locator(".jp-Terminal:visible").click()
        page.keyboard.type(f"clear; {words}; echo $? > ~/{end.name}\n")
        limit = time.monotonic() + 900
        while not (end.is_file() and end.read_text().strip()):
            if time.monotonic() > limit:
                raise AssertionError(f"`{words}` still runs; the terminal shows:\n{page.evaluate(TERMINAL)}")
            if reply and "[y/N]" in page.evaluate(TERMINAL):
                page.keyboard.type(f"{reply}\n")
                reply = ""
            page.wait_for_timeout(200)
        page.wait_for_timeout(500)
        self.shot(page, shot)
        self.expect(f"status of `{words}`", int(end.read_text()), status)
        text = page.evaluate(TERMINAL).rstrip()
        print(re.sub("^", "    | ", text, flags=re.M), flush=True)
        return text

    def table(self, text: str) -> dict[str, float]:
        """Student -> points in the table that `grade` prints."""
        most = sum(map(self.oracle.full, self.oracle.checks))
        return {name: float(points) for name, points in re.findall(rf"^(\S+) +([\d.]+)/{most:g}\b", text, re.M)}

    def hand_in(self, student: Student) -> None:
        """Fetch unless that was done, answer, submit, through nbgrader's exchange."""
        if not self.course.work_of(student.name, PS):
            self.course.exchange_step("FetchAssignment", student.name, PS)
            path = self.course.work_of(student.name, PS)[0]
            shutil.copy(path, path.parent.parent / "as-released")
        place = self.course.student(student.name) / "assignments"
        notebook = nbformat.read(place / "as-released", as_version=4)
        texts = {f"{e}-answer": text for e, text in (self.right | student.answers).items() if text is not None}
        answered(notebook, texts)
        if student.change:
            student.change(notebook)
        data = nbformat.writes(notebook).replace("PORT", str(self.machine.port)).replace("ROOT", str(self.course.root)).encode()
        (place / PS / f"{PS}.ipynb").unlink(missing_ok=True)
        (place / PS / student.file).write_bytes(student.raw(data) if student.raw else data)
        self.course.exchange_step("Submit", student.name, PS)

    def watched(self, context, where: str) -> None:
        """Note what a window complained of or asked for outside that is not nbgrader's own doing."""
        seen = {text[:300] for text in context.problems + context.outside if not any(part in text for part in NOT_OURS)}
        self.expect(f"complaints and requests of {where}", sorted(seen), [])

    @contextlib.contextmanager
    def adas_desk(self):
        """Ada's own Lab in a browser window of her own: her Assignment List, and the window and the server."""
        with self.server(self.course.student("ada")) as desk, window(self.browser, height=1000) as context:
            page = lab.open_lab(context, desk)
            lab.menu(page, "Nbgrader", "Assignment List")
            page.locator(".list_item", has_text=PS).first.wait_for(timeout=LIMIT_MS)
            yield page, context, desk
            self.watched(context, "ada's window")


# ---- the week ------------------------------------------------------------------------------------------------------


def release(week: Week) -> None:
    """Monday: Formgrader generates and releases."""
    week.form = lab.open_lab(week.room, week.office)
    lab.menu(week.form, "Nbgrader", "Formgrader")
    week.click("td.assign a", "01-generated")
    week.click("td.release a", "02-released")
    week.frame.locator("td.collect a").first.wait_for(timeout=LIMIT_MS)
    week.shot(week.form, "03-assignments")


def work(week: Week) -> None:
    """Ada works in the panel; the others, but for the late ones, hand in through the exchange."""
    with week.adas_desk() as (page, context, desk):
        press(page, "Fetch")
        page.locator("button", has_text=re.compile("^Submit$")).first.wait_for(timeout=LIMIT_MS)
        book = lab.open_notebook(context, desk, f"assignments/{PS}/{PS}.ipynb")
        for exercise, text in (week.right | week.people["ada"].answers).items():
            if text:
                lab.type_into(book, f"{exercise}-answer", text)
        lab.save(book)
        week.shot(book, "04-ada-answers")
        book.close()
        press(page, "Submit")
        page.locator("text=There are no submitted assignments").wait_for(state="hidden", timeout=LIMIT_MS)
        week.shot(page, "05-ada-submitted")
    for student in week.people.values():
        if not student.off and student.name != "ada":
            week.hand_in(student)


def deadline(week: Week) -> None:
    """The due date is set in Formgrader and passes; then the late ones hand in."""
    due = datetime.now(timezone.utc) + timedelta(seconds=1)
    week.manage()
    week.click("td.edit a")
    week.frame.locator(".modal-duedate").fill(due.strftime("%Y-%m-%dT%H:%M:%S"))
    week.shot(week.form, "06-due-date")
    week.click(".modal-footer button.save")
    week.frame.locator("td.duedate", has_text=due.strftime("%Y")).wait_for(timeout=LIMIT_MS)
    week.form.wait_for_timeout(2000)
    for student in week.people.values():
        if student.off:
            week.hand_in(student)


def grade(week: Week) -> None:
    """Collected in Formgrader, graded in Lab's terminal; its table and Formgrader's page say what was earned."""
    week.manage()
    week.click("td.collect a", "07-collected")
    week.terminal = lab.open_lab(week.room, week.office)
    lab.menu(week.terminal, "File", "New", "Terminal")
    week.terminal.locator(".jp-Terminal .xterm-screen").wait_for(timeout=LIMIT_MS)
    week.terminal.wait_for_timeout(2000)
    text = week.typed(f"python -m grading grade {PS}", "08-terminal")
    week.expect("processes of submissions that stay", week.machine.orphans(), 0)
    week.compare("terminal", week.table(text), True)
    if week.shots:
        shutil.copy(week.course.root / "grading" / "reports" / f"{PS}.png", week.shots / "08-report.png")
    week.compare("Formgrader", week.submissions("09-submissions"), False)
    for path in (week.course.root / "grading" / "autograded").glob(f"*/{PS}/{PS}.ipynb"):
        outputs = json.dumps([c.get("outputs") for c in nbformat.read(path, as_version=4).cells])
        week.expect(f"files of the lecturer's that {path.parts[-3]} read", re.findall("GOT .{40}", outputs), [])


def button(week: Week) -> None:
    """One hostile and one honest submission again by Formgrader's own button."""
    for name in ("exit", "nearly"):
        week.click(f'tr:has(td.student-id:text-is("{name}")) td.autograde a', f"10-button-{name}")
    got = week.submissions("11-after-button")
    week.compare("Formgrader", got, False)
    week.compare("button", got, False, "exit", "nearly")


def open_submission(week: Week, name: str) -> None:
    """A student's notebook in Formgrader's Manual Grading."""
    for place in ("gradebook", f"gradebook/{PS}", f"gradebook/{PS}/{PS}"):
        week.click(f"a[href$='/formgrader/{place}']")
    week.frame.locator("a.name-hidden").first.wait_for(timeout=LIMIT_MS)
    week.click("#toggle_names")
    week.click(f'a.name-shown:text-is("{name}")')
    for input_ in ("input.extra-credit", "textarea.comment"):  # the page listens once it has set their placeholders
        week.frame.locator(f"{input_}[placeholder]").last.wait_for(timeout=LIMIT_MS)


def by_hand(week: Week) -> None:
    """The hostile student's script is looked at; ada gets a point for one check, extra credit and a comment."""
    open_submission(week, "script")
    week.shot(week.form, "12-script-in-formgrader")
    page = next(f for f in week.form.frames if "/formgrader/submissions/" in f.url)
    week.expect("Formgrader runs a student's script", page.evaluate("() => window.ran ?? 0"), 0)
    week.expect("requests that a student's page makes in Formgrader", week.machine.heard, 0)
    week.click("a:text-is('Manual Grading')")
    open_submission(week, "ada")
    marks = {
        "gradient-audit-check-sums": "1",
        "row-column-check-matrix_extra_credit": "1.5",
        "gradient-audit-answer-comment": "Come and see me about the audit.",
    }
    for name, value in marks.items():
        with week.form.expect_response(lambda r: r.request.method == "PUT" and "/formgrader/api/" in r.url):
            week.frame.locator(f"#{name}").fill(value)
            week.frame.locator(f"#{name}").press("Tab")
    week.people["ada"].hand = 2.5
    week.shot(week.form, "13-ada-by-hand")
    week.click("a:text-is('Manual Grading')")
    week.compare("by hand", week.submissions("14-after-marks"), False)


def again(week: Week) -> None:
    """Three hand in again, after the due date: better, hostile, and the same as before. Only these are graded anew."""
    before = week.gradings()
    changed = (
        Student("stub", "nothing, then all, late", off=OFF),
        Student("half", "two, then hostile, late", {"recompute": HOSTILE["exit"]}, lost="recompute", off=OFF),
        Student("ben", "all right, again late", off=OFF),
    )
    for student in changed:
        week.people[student.name] = student
        week.hand_in(student)
    week.manage()
    week.click("td.collect a", "15-collected-again")
    text = week.typed(f"python -m grading grade {PS}", "16-terminal-again")
    week.expect("graded anew", dict(week.gradings() - before), {student.name: 1 for student in changed})
    week.compare("again", week.table(text), True)
    week.compare("Formgrader again", week.submissions("17-submissions-again"), False)


def feedback(week: Week) -> None:
    """Released in Formgrader; ada reads hers; the hostile student's page runs nothing, and no page tells a hidden test."""
    week.manage()
    week.click("td.release-feedback a", "18-feedback-released")
    with week.adas_desk() as (page, _, _):
        press(page, "Fetch Feedback")
        page.locator("a:visible", has_text="view feedback").first.click(timeout=LIMIT_MS)
        page.locator(".jp-DirListing-item", has_text=f"{PS}.html").dblclick(timeout=LIMIT_MS)
        body = page.frame_locator(".jp-IFrame iframe").locator("body")
        body.locator("text=/Score: /").first.wait_for(timeout=LIMIT_MS)
        week.shot(page, "19-ada-feedback")
        said = body.inner_text()
    week.expect("ada's score", re.search(r"Score: ([\d.]+)", said)[1], f"{week.earned(True)['ada']:g}")
    week.expect("ada's comment", "Come and see me" in said, True)
    heard, secrets = week.machine.heard, hidden_lines(week.master)
    pages = {name: week.course.path_of("feedback", name, PS) / f"{PS}.html" for name in week.people}
    with window(week.browser, width=1500) as context:
        page = context.new_page()
        page.goto(pages["script"].as_uri())
        page.wait_for_timeout(1000)
        week.shot(page, "20-script-feedback")
        week.expect("script in feedback", page.evaluate("() => window.ran ?? 0"), 0)
        week.expect("requests of a feedback page", week.machine.heard - heard, 0)
        week.watched(context, "a feedback page")
    for name, path in pages.items():
        text = html.unescape(re.sub("<[^>]+>", "", path.read_text(encoding="utf-8"))) if path.is_file() else ""
        own = "\n".join(filter(None, week.people[name].answers.values()))  # the same line may stand in an answer
        told = sorted(line for line in secrets if line in text and line not in own)
        week.expect(f"feedback for {name}: is there, lines of hidden tests", (bool(text), told), (True, []))


def correct(week: Week) -> None:
    """A check turns out too strict. The command shows the differences and writes nothing; with --yes it writes."""
    master, before = deepcopy(week.master), week.earned(True)
    check = cell(master, "recompute-check-within-tenth")
    check.source = check.source.replace("1.1 *", "1.5 *")
    nbformat.write(master, week.course.root / "source" / PS / f"{PS}.ipynb")
    book = week.rows("SELECT auto_score FROM grade ORDER BY id")
    text = week.typed(f"python -m grading grade {PS}", "21-corrected", status=1, reply="n")
    week.expect("scores before a yes", week.rows("SELECT auto_score FROM grade ORDER BY id") == book, True)
    week.oracle = Oracle(master)
    after = week.earned(True)
    week.expect("the corrected check changes scores", before != after, True)
    shown = re.findall(r"^(\S+): [\d.]+ -> [\d.]+ points by checks", text, re.M)
    week.expect("students whose differences are shown", set(shown), {name for name in after if after[name] != before[name]})
    text = week.typed(f"python -m grading grade {PS} --yes", "22-corrected-yes")
    week.compare("corrected", week.table(text), True)


def export(week: Week) -> None:
    """The class as nbgrader exports it."""
    week.typed("python -m nbgrader export", "23-export")
    with open(week.course.root / "grades.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    week.expect("rows of the CSV", len(rows), len(week.people))
    week.compare("CSV", {row["student_id"]: float(row["score"]) for row in rows}, True)
    week.compare("Formgrader last", week.submissions("24-submissions-last"), False)


STEPS = (release, work, deadline, grade, button, by_hand, again, feedback, correct, export)


def play(week: Week) -> None:
    """All steps, each with its seconds; one that breaks ends the week."""
    with start_browser() as week.browser, week.server(week.course.root) as week.office, window(week.browser, 1500, 1000) as week.room:
        for step in STEPS:
            print(f"\n{step.__name__}: {step.__doc__}", flush=True)
            started = time.monotonic()
            try:
                step(week)
            except Exception:
                week.wrong.append(f"{step.__name__} broke: {traceback.format_exc()}")
                for number, page in enumerate(week.room.pages):
                    week.shot(page, f"broken-{step.__name__}-{number}")
                break
            finally:
                print(f"    {time.monotonic() - started:.0f} s", flush=True)
        week.watched(week.room, "the lecturer's window")
    faults = [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ ?", "", line) for line in week.office.log().splitlines()]
    print("\nWarnings and errors in the Lab server's log:")
    for line, number in Counter(line for line in faults if re.search(r"\[[EWC] |ERROR|WARNING|Traceback", line)).items():
        print(f"{number:4} {line[:200]}")


def left_over() -> list[str]:
    """Processes that the week has started, here or anywhere below, and that still run."""
    found = []
    for path in Path("/proc/self/task").glob("*/children"):
        for process in path.read_text().split():
            with contextlib.suppress(OSError):
                found.append(Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
    return [words for words in found if words]  # one that has ended has no words


def tell(week: Week) -> None:
    """The class as each place showed it."""
    due, print_row = week.earned(off=True), "{:10} {:34} {:>6} ".format
    print("\n" + print_row("student", "kind", "earned"), *(f"{column[:10]:>10}" for column in week.got))
    for name, student in week.people.items():
        shown = (week.got[column].get(name) for column in week.got)
        print(print_row(name, student.kind[:34], f"{due[name]:g}"), *(f"{'' if s is None else f'{s:g}':>10}" for s in shown))
    print("Formgrader shows points before anything is taken off; earned, terminal, again, corrected and CSV are after it.")


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--shots", type=Path, help="a folder for screenshots")
    words.add_argument("--students", type=int, default=30)
    args = words.parse_args()
    if args.shots:
        args.shots.mkdir(parents=True, exist_ok=True)
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what a process leaves behind becomes this one's child
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Machine() as machine:
        week = Week(Path(folder), machine, args.shots, max(10, args.students))
        play(week)
        tell(week)
        with contextlib.suppress(sqlite3.Error):
            results = [json.loads(row)[PS] for (row,) in week.rows("SELECT results FROM mlsys_done")]
            print(f"Gradings by level of isolation: {dict(Counter(result['level'] for result in results))}")
        time.sleep(2)
        week.expect("processes that are left", left_over(), [])
        print(f"\n{len(week.wrong)} things were wrong" + "".join(f"\n- {text}" for text in week.wrong))
        return 1 if week.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
