"""`python -m grading grade`: the table, the picture, progress, and workers elsewhere."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import CLASS, RIGHT, STAND_IN, StandIn, grade, handed_in, lay, lecturer  # noqa: E402
from test_records_grade import due, hand_in_late, late_by_share, mark  # noqa: E402

from grading.__main__ import main, parser  # noqa: E402
from grading.records.batch import Line, Outcome, describe  # noqa: E402
from grading.records.collect import Collected  # noqa: E402
from grading.records.command import grade_command  # noqa: E402
from grading.records.ledger import Mark  # noqa: E402
from grading.records.report import Class, Progress, drawn, put_right, table  # noqa: E402
from grading.sealed.report import FAULT, PASS, WRONG  # noqa: E402


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return lecturer(tmp_path_factory.mktemp("command"))


def run(course, monkeypatch, capsys, *words, make=StandIn) -> tuple[int, str]:
    monkeypatch.chdir(course.root)
    code = grade_command(parser().parse_args(["grade", STAND_IN, "--from", "inbox", *words]), make)
    return code, capsys.readouterr().out


def table_of(said: str) -> dict[str, str]:
    """Student -> line of the table."""
    lines = re.sub(r"\n +", " ", said.partition("needs review\n")[2].partition("\n\n")[0]).split("\n")
    return {line.split()[0]: line for line in lines}


def test_one_command_for_the_week(course, monkeypatch, capsys):
    (lay(course, "gus", RIGHT) / "data.csv").symlink_to("/etc/passwd")
    code, said = run(course, monkeypatch, capsys)
    assert code == 0
    rows = table_of(said)
    assert rows["cleo"].split()[1] == "5/10" and "1 to mark by hand" in rows["ana"] and "new" in rows["ben"]
    assert "Refused: gus data.csv: it is a link" in said and "7 of 7 submissions" in said
    assert (course.root / f"grading/reports/{STAND_IN}.png").read_bytes().startswith(b"\x89PNG")
    assert (course.root / f"grading/feedback/gus/{STAND_IN}/{STAND_IN}.html").is_file()
    code, said = run(course, monkeypatch, capsys)
    assert code == 0 and "Graded 0 submissions" in said and "7 were done before" in said and "Backed up" in said


def test_differences_are_shown_and_not_written(course, monkeypatch, capsys):
    run(course, monkeypatch, capsys)
    monkeypatch.setattr("grading.records.batch.grader_version", lambda: "other")

    class Strict(StandIn):
        def grade(self, *args, **more):
            report = super().grade(*args, **more)
            return dataclasses.replace(
                report, checks=tuple(dataclasses.replace(check, points=0.0) for check in report.checks)
            )

    code, said = run(course, monkeypatch, capsys, make=Strict)
    assert code == 1 and "checks 8 -> 0, waits" in said and "  kibibytes-check: 3 -> 0" in said and "--yes" in said
    assert "scores of 6 students" in said and "Graded 7 submissions" in said and "0 were done before" in said
    assert "ben" in table_of(said) and table_of(said)["ben"].split() == ["ben", "0/10"], "nothing of his changed"
    code, said = run(course, monkeypatch, capsys, "--yes", "--no-feedback", make=Strict)
    assert code == 0 and "8 -> 0" in said and "waits" not in said
    assert "Graded 0 submissions" in said and "7 were done before" in said


def test_every_change_is_named_in_the_points_that_the_table_shows(tmp_path, monkeypatch, capsys):
    """A first version, later ones that lower, raise and keep a score, a moved due date, a re-grade and a `n`."""
    course = lecturer(tmp_path)
    code, said = run(course, monkeypatch, capsys)
    assert all("  new" in row for row in table_of(said).values()) and "0 were done before" in said
    due(course, 1)
    late_by_share(course, 0.5)
    hand_in_late(course, "ana")
    hand_in_late(course, "ben", RIGHT)
    (lay(course, "cleo", RIGHT) / f"{STAND_IN}.ipynb").rename(course.root / "inbox/cleo/mine.ipynb")
    (lay(course, "dan", CLASS["dan"][0]) / "why.txt").write_text("I have added a file.")
    code, said = run(course, monkeypatch, capsys)
    rows = table_of(said)
    assert "4/10" in rows["ana"] and "new version, 8 -> 4" in rows["ana"] and "8 less 4 for being late" in rows["ana"]
    assert "4/10" in rows["ben"] and "new version, 0 -> 4" in rows["ben"]
    assert "new version, 5 -> 8" in rows["cleo"] and "late" not in rows["cleo"]
    assert "new version" in rows["dan"] and "->" not in rows["dan"]
    assert "new" not in rows["eve"] and "->" not in rows["eve"]
    assert "Collected 4 new versions" in said and "Graded 4 submissions" in said and "2 were done before" in said
    assert "Formgrader shows them before" in said and "Late penalties" not in said
    due(course, 3)
    code, said = run(course, monkeypatch, capsys)
    row = table_of(said)["ana"]
    assert "8/10" in row and "  4 -> 8  " in row and "no longer less 4 for being late" in row and "new" not in row
    assert "Late penalties of 2 students" in said and "Graded 0 submissions" in said and "6 were done before" in said
    assert "Formgrader shows them before" not in said and "were not written" not in said
    monkeypatch.setattr("grading.records.batch.grader_version", lambda: "other")
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))

    class Strict(StandIn):
        """Whoever is named cleo loses a check."""

        def grade(self, master, submission, student, seed=None):
            report = super().grade(master, submission, student, seed)
            checks = [
                dataclasses.replace(check, points=0.0) if (student, check.cell) == ("cleo", "kibibytes-check") else check
                for check in report.checks
            ]
            return dataclasses.replace(report, checks=tuple(checks))

    code, said = run(course, monkeypatch, capsys, make=Strict)
    rows = table_of(said)
    assert code == 1 and "8/10" in rows["cleo"] and "checks 8 -> 5, waits" in rows["cleo"]
    assert not any("new" in row or "->" in row for name, row in rows.items() if name != "cleo")
    assert "1 to mark by hand" in rows["cleo"] and "Put right:\n  cleo: mine.ipynb was taken for" in said
    assert said.count("kibibytes-check: 3 -> 0") == 1 and "scores of 1 student:" in said and "were not written" in said
    assert "Graded 6 submissions" in said and "0 were done before" in said
    code, said = run(course, monkeypatch, capsys, "--yes", make=Strict)
    assert code == 0 and "  8 -> 5" in table_of(said)["cleo"] and "6 were done before" in said


def test_the_table_speaks_to_the_lecturer_and_breaks_between_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    why = "The file is not a notebook: it is not JSON in UTF-8. Open it in JupyterLab, save it and submit it again."
    result = {"checks": [], "problem": why, "repairs": [], "level": 4}
    lines = {name: Line(name, "graded", "new", results={"ps": result}) for name in ("torn", "x" * 30)}
    for line in lines.values():
        describe(line)
        line.told += ["ps (1).ipynb was taken for ps.ipynb.", f"The notebook of {line.student} came without one cell: a. Go."]
    nothing = Class({}, {}, {})
    outcome = Outcome("ps", lines, Collected([], []))
    text = table(outcome, nothing, nothing)
    assert "JupyterLab" not in text and text.count("not JSON in") == 2
    assert max(map(len, text.split("\n"))) < 80 and len(text.split("\n")) > 3
    words = ["The", "file", "is", "not", "a", "notebook:", "it", "is", "not", "JSON", "in", "UTF-8"]
    assert text.split() == "student points change needs review torn - new".split() + words + ["x" * 30, "-", "new", *words]
    right = put_right(outcome).split("\n")
    assert right[0] == "Put right:" and right[2] == f"  torn, {'x' * 30}: came without one cell: a"
    assert right[1] == f"  torn, {'x' * 30}: ps (1).ipynb was taken for ps.ipynb" and len(right) == 3
    assert put_right(Outcome("ps", {"ana": Line("ana")}, Collected([], []))) == ""


def test_what_was_put_right_is_told(tmp_path, monkeypatch, capsys):
    course = lecturer(tmp_path)
    place = lay(course, "ana", RIGHT)
    (place / f"{STAND_IN}.ipynb").rename(place / "mine.ipynb")
    notebook = nbformat.reads(handed_in({}).decode(), as_version=4)
    next(cell for cell in notebook.cells if cell.id == "kibibytes-check").source = "pass"
    lay(course, "ben", nbformat.writes(notebook).encode())
    _, said = run(course, monkeypatch, capsys)
    told = said.partition("Put right:\n")[2].partition("\n\n")[0].split("\n")
    assert told == [
        f"  ana: mine.ipynb was taken for {STAND_IN}.ipynb",
        "  ben: Checks with other text than the assignment's: kibibytes-check",
    ]


def release_feedback(course) -> None:
    """What the command of this name does, in this process."""
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange import ExchangeFactory

    config = course.config()
    folders = CourseDirectory(config=config, assignment_id=STAND_IN)
    step = ExchangeFactory(config=config).ReleaseFeedback
    step(coursedir=folders, authenticator=Authenticator(config=config), config=config).start()


@pytest.mark.skipif(os.name != "posix", reason="nbgrader's exchange works on Unix only")
def test_pages_that_were_released_and_changed_are_to_be_released_again(tmp_path, monkeypatch, capsys):
    course = lecturer(tmp_path)
    monkeypatch.setenv("MLSYS_EXCHANGE", str(course.exchange))
    again = f"run nbgrader release_feedback {STAND_IN} again"
    said = [run(course, monkeypatch, capsys)[1]]
    release_feedback(course)
    said.append(run(course, monkeypatch, capsys)[1])
    mark(course, "ana", "row-means-why", 2)
    said += [run(course, monkeypatch, capsys)[1] for _ in range(2)]
    assert [again in " ".join(text.split()) for text in said] == [False, False, True, True]
    assert "1 page is not handed out as it is" in said[3]
    release_feedback(course)
    assert again not in " ".join(run(course, monkeypatch, capsys)[1].split())


def drawn_class(outcomes: dict[str, str], points: dict[str, float] = {}, problem: str = ""):  # noqa: B006  (only read)
    """The picture of a class that has two checks, of 3 points each. outcomes: student -> "p" or "w", for each check."""
    lines, marks, words = {}, {}, {"p": PASS, "w": WRONG, "f": FAULT}
    for student, letters in outcomes.items():
        checks = [
            {"cell": f"check-{n}", "outcome": words[letter], "points": {"p": 3.0, "w": 0.0}.get(letter)}
            for n, letter in enumerate(letters)
        ]
        result = {"checks": checks, "problem": problem if student == "torn" else ""}
        lines[student] = Line(student, results={"ps": result})
        marks[student] = {("ps", "all"): Mark(points.get(student, 3.0 * letters.count("p")))}
    return drawn(Outcome("ps", lines, Collected([], [])), Class(marks, {("ps", "all"): 6.0}, {}))


def title_of(axes) -> str:
    """A title wherever the style of this process puts it."""
    return "".join(axes.get_title(place) for place in ("left", "center", "right"))


def test_the_picture_counts_what_was_read_and_names_one_check_only_if_one_is_last():
    left, right = drawn_class({"ana": "pw", "ben": "pp", "torn": "ww", "lost": "fp"}, problem="no notebook").axes
    assert title_of(right) == "check-1 was passed least often" and "of 3 submissions" in right.get_xlabel()
    assert [(bar.get_width(), label.get_text()) for bar, label in zip(right.patches, right.get_yticklabels())] == [
        (1, "check-1")
    ]
    left, right = drawn_class({"ana": "ww", "ben": "ww"}).axes
    assert title_of(right) == "2 checks were passed least often"
    for ticks in (left.get_yticks(), right.get_xticks()):
        assert all(tick == int(tick) for tick in ticks)


def test_the_picture_of_a_class_without_a_failure_has_no_empty_half():
    (only,) = drawn_class({"ana": "pp", "ben": "pp"}, {"ben": 7.5}).axes
    assert sum(bar.get_height() for bar in only.patches) == 2, "extra credit is in it"
    assert drawn_class({"torn": "ww"}, problem="no notebook").axes[1:] == []


def test_faults_of_the_call_are_sentences(course, monkeypatch, capsys):
    monkeypatch.chdir(course.root)
    assert main(["grade", "ps77"]) == 1
    assert "source/ has no notebook of 'ps77'; assignments are ps00_stand_in" in capsys.readouterr().err
    assert main(["grade", STAND_IN, "--from", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err
    assert main(["restore", "nothing"]) == 1
    assert "there is no backup 'nothing'" in capsys.readouterr().err


def test_progress_on_a_terminal_is_a_bar():
    screen = Terminal()
    for number in (1, 2):
        Progress(screen)(number, 2, "ana")
    assert "[###############...............] 1/2 ana" in screen.getvalue() and screen.getvalue().endswith("\n")


def test_a_cluster_grades_the_same_and_a_killed_worker_costs_a_retry(tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    course = lecturer(tmp_path)
    program = (
        "import sys, threading, time, os\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from functools import partial\n"
        "from pathlib import Path\n"
        "from records_kit import StandIn, grade\n"
        "from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:\n"
        "        def kill():\n"
        "            time.sleep(0.6)\n"
        "            os.kill(next(iter(cluster.workers.values())).pid, 9)\n"
        "        threading.Thread(target=kill).start()\n"
        "        make = partial(StandIn, sleep_s=0.4)\n"
        "        outcome, _ = grade(Path(sys.argv[1]), make, scheduler=cluster.scheduler_address)\n"
        "        print({student: line.got for student, line in outcome.lines.items()})\n"
    )
    path = tmp_path / "cluster.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, str(path), str(course.root), str(Path(__file__).parent)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert str({student: float(points) for student, (_, points) in CLASS.items()}) in done.stdout, done.stderr
    outcome, _ = grade(course.root)
    assert outcome.graded == 0


def test_without_dask_the_option_says_what_to_install(course, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.chdir(course.root)
    lay(course, "new", RIGHT)
    assert main(["grade", STAND_IN, "--from", "inbox", "--scheduler", "tcp://127.0.0.1:1"]) == 1
    assert "pip install distributed" in capsys.readouterr().err
