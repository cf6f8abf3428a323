"""`python -m grading grade`: the table, the picture, progress, and workers elsewhere."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import CLASS, RIGHT, STAND_IN, StandIn, grade, lay, lecturer  # noqa: E402

from grading.__main__ import main, parser  # noqa: E402
from grading.records.command import grade_command  # noqa: E402
from grading.records.report import Progress  # noqa: E402


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return lecturer(tmp_path_factory.mktemp("command"))


def run(course, monkeypatch, capsys, *words, make=StandIn) -> tuple[int, str]:
    monkeypatch.chdir(course.root)
    code = grade_command(parser().parse_args(["grade", STAND_IN, "--from", "inbox", *words]), make)
    return code, capsys.readouterr().out


def test_one_command_for_the_week(course, monkeypatch, capsys):
    (lay(course, "gus", RIGHT) / "data.csv").symlink_to("/etc/passwd")
    code, said = run(course, monkeypatch, capsys)
    assert code == 0
    rows = {line.split()[0]: line for line in said.split("\n") if line.split()[:1] and line.split()[0] in CLASS}
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
            import dataclasses

            report = super().grade(*args, **more)
            return dataclasses.replace(
                report, checks=tuple(dataclasses.replace(check, points=0.0) for check in report.checks)
            )

    code, said = run(course, monkeypatch, capsys, make=Strict)
    assert code == 1 and "8 -> 0 waits" in said and "  kibibytes-check: 3 -> 0" in said and "--yes" in said
    code, said = run(course, monkeypatch, capsys, "--yes", "--no-feedback", make=Strict)
    assert code == 0 and "8 -> 0" in said and "waits" not in said


def test_faults_of_the_call_are_sentences(course, monkeypatch, capsys):
    monkeypatch.chdir(course.root)
    assert main(["grade", "ps77"]) == 1
    assert "source/ has no notebook of 'ps77'; assignments are ps00_stand_in" in capsys.readouterr().err
    assert main(["grade", STAND_IN, "--from", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err
    assert main(["restore", "nothing"]) == 1
    assert "there is no backup 'nothing'" in capsys.readouterr().err


def test_progress_on_a_terminal_is_a_bar():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

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
