"""What an author runs beside: a new lesson, the lecturer's table, notebooks in `git diff`."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import mlsys.check.hints
from grading.__main__ import main, parser
from grading.cells import role_of
from grading.files import notebook_text, read_notebook, write_file
from grading.lint import lint
from grading.textform import from_text

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = """%%%% md area-task task
The area?
%%%% code area-answer answer
### BEGIN SOLUTION
area = 1
### END SOLUTION
%%%% code area-check check 2
assert area
%%%% code area-check-edge check 1.5
assert area
%%%% md reason-task task
Why?
%%%% md reason-why essay 4
Because.
"""
ANSWERS = """# %% area | right | the other way
area = 2
# %% area | wrong | no-square
area = 3
"""


@pytest.fixture
def course(tmp_path, monkeypatch):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    write_file(tmp_path / "source/01_unit/01_areas.ipynb", notebook_text(from_text(NOTEBOOK)))
    write_file(tmp_path / "tests/answers/01_areas.py", ANSWERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("grading.table.all_hints", lambda: {"no-square": "The radius counts twice."})
    return tmp_path


def test_every_command_has_help(capsys):
    (commands,) = [action for action in parser()._actions if action.choices]
    assert set(commands.choices) >= {"text", "untext", "format", "lint", "student-edition", "new", "table", "setup-git"}
    for name in commands.choices:
        with pytest.raises(SystemExit) as end:
            main([name, "--help"])
        assert end.value.code == 0 and name in capsys.readouterr().out


def test_table_lists_points_versions_and_hints(course, capsys):
    assert main(["table"]) == 0
    said = capsys.readouterr().out
    assert "01_unit/01_areas  area  3.5 points" in said and "01_unit/01_areas  reason  4 points" in said
    assert "  right     the other way" in said and "  wrong     no-square\n            The radius counts twice." in said
    assert said.endswith("2 exercises, 1 right alternatives, 1 wrong versions\n")


@pytest.mark.parametrize("unit", [[], ["01_unit"], ["01_areas"]])
def test_table_as_csv(course, capsys, unit):
    assert main(["table", *unit, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["exercise"], row["kind"], row["points"]) for row in rows] == [
        ("area", "solution", "3.5"),
        ("area", "right", "3.5"),
        ("area", "wrong", "3.5"),
        ("reason", "essay", "4"),
    ]
    assert rows[2]["hint"] == "The radius counts twice." and rows[2]["version"] == "no-square"


def test_table_of_an_unknown_unit(course, capsys):
    assert main(["table", "07_unit"]) == 1
    assert "source/ has no exercise in '07_unit'; units are 01_unit" in capsys.readouterr().err


def test_table_of_this_course(monkeypatch, capsys):
    """Each wrong version in the lecturer's table has its hint."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("grading.table.all_hints", mlsys.check.hints.all_hints)
    main(["table", "--csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row for row in rows if row["kind"] == "wrong" and row["hint"] in ("", "NO SUCH HINT")] == []


def test_new_lessons_are_good_but_for_words(course, capsys):
    assert main(["new", "02_motion", "speed", "Speed {and} time"]) == 0
    assert main(["new", "02", "force", "Force"]) == 0
    assert main(["new", "01", "07_volume", "Volume"]) == 0
    names = ["01_unit/07_volume", "02_motion/01_speed", "02_motion/02_force"]
    paths = [course / f"source/{name}.ipynb" for name in names]
    faults = lint(course, [str(path) for path in paths])
    assert len(faults) == 3 and all(" words, expected 1200 to 2500" in fault for fault in faults), faults
    titles = [read_notebook(path).cells[0].source.split("\n")[0] for path in paths]
    assert titles == ["# 1.7 Volume", "# 2.1 Speed {and} time", "# 2.2 Force"]
    assert main(["format", "--check"]) == 0
    assert main(["student-edition"]) == 0


def test_a_new_lesson_runs(course):
    """Its cells run as they lie, checks included, so an author changes a thing that works."""
    assert main(["new", "02_motion", "speed", "Speed"]) == 0
    space: dict = {}
    for cell in read_notebook(course / "source/02_motion/01_speed.ipynb").cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, cell.id, "exec"), space)
            assert role_of(cell) != "predict" or space["guess"] is None


@pytest.mark.parametrize(
    "words, message",
    [
        (["01", "areas", "T"], "source/01_unit has 01_areas.ipynb already; nothing was written"),
        (["01", "01_other", "T"], "source/01_unit has 01_areas.ipynb already; nothing was written"),
        (["02", "speed", "T"], "source/ has no module 02; give a whole name, such as 02_clusters"),
        (["01_other", "speed", "T"], "module 01 is 01_unit, not 01_other"),
        (["motion", "speed", "T"], "the module 'motion' is not named like 03_gpu_architecture"),
        (["01", "Speed", "T"], "the lesson 'Speed' is not named like warps or 02_warps"),
        (["01", "../speed", "T"], "is not named like warps"),
    ],
)
def test_new_refuses_with_a_sentence(course, capsys, words, message):
    before = {path: path.read_bytes() for path in course.rglob("*.ipynb")}
    assert main(["new", *words]) == 1
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in course.rglob("*.ipynb")} == before


def git(course: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["git", *who, *words], cwd=course, env=environment, check=True, capture_output=True)
    return done.stdout.decode("utf-8")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_diff_shows_text(course):
    git(course, "init")
    (course / ".gitattributes").write_text("*.ipynb diff=notebook\n")
    git(course, "add", ".")
    git(course, "commit", "-m", "first")
    assert main(["setup-git"]) == 0
    path = course / "source/01_unit/01_areas.ipynb"
    path.write_text(path.read_text("utf-8").replace("Because.", "Because of π."), "utf-8")
    diff = git(course, "diff").splitlines()
    assert "-Because." in diff and "+Because of π." in diff and not any('"source"' in line for line in diff)


def test_setup_git_outside_of_git(course, capsys, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(course.parent))
    assert main(["setup-git"]) == 1
    assert "git does not take diff.notebook.textconv" in capsys.readouterr().err
