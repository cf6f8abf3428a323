"""Progress: kept in the learner's folder, never lost by a fault, never a fault itself."""

import json

import pytest

from mlsys import course

FIRST, SECOND = list(course.LESSONS)[:2]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MLSYS_DATA_DIR", str(tmp_path / "learner"))
    return tmp_path / "learner"


def test_counts_each_lesson_once(capsys):
    course.done(FIRST)
    course.done(SECOND)
    course.done(FIRST)
    assert capsys.readouterr().out.splitlines()[-1] == f"2 of {len(course.LESSONS)} lessons read."
    assert course.contents().count("| 20") == 2


def test_unknown_lesson():
    with pytest.raises(ValueError, match="'nonsense' is no lesson"):
        course.done("nonsense")


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "\x00"])
def test_damaged_record_is_an_empty_one(own_folder, text):
    own_folder.mkdir()
    (own_folder / "progress.json").write_text(text)
    assert course.read_lessons() == {}
    course.done(FIRST)
    assert list(json.loads((own_folder / "progress.json").read_text())) == [FIRST]


def test_unwritable_folder_is_a_sentence(own_folder, capsys):
    own_folder.write_text("a file where the folder should be")
    course.done(FIRST)
    assert "could not be saved" in capsys.readouterr().out


def test_environment_report():
    report = course.environment_report()
    assert "numpy" in report and report.endswith("Everything is here.")


def test_a_grader_reads_nothing(own_folder, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    course.done(FIRST)
    assert not own_folder.exists()
