"""Backups of the gradebook and the way back."""

from __future__ import annotations

import dataclasses
import sqlite3
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import RIGHT, STAND_IN, WRONG_ANSWER, grade, lay, lecturer  # noqa: E402

from grading.__main__ import main  # noqa: E402
from grading.records.backup import KEPT, back_up, backups, database, restore  # noqa: E402
from grading.records.places import places_of  # noqa: E402


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = lecturer(tmp_path_factory.mktemp("backups"))
    grade(course.root)
    return course


def points(course, student: str) -> float:
    with course.gradebook() as book:
        return book.find_submission(STAND_IN, student).score


def test_restore_brings_scores_back_and_the_next_run_repairs(course, monkeypatch, capsys):
    monkeypatch.chdir(course.root)
    assert points(course, "ana") == 8
    lay(course, "ana", RIGHT | {"kibibytes-answer": WRONG_ANSWER})
    outcome, _ = grade(course.root)
    assert points(course, "ana") == 5 and outcome.backup
    with course.gradebook() as reader:  # somebody has the gradebook open
        assert len(reader.students) == 6
        assert main(["restore", outcome.backup.name]) == 0
    assert "is gradebook-" in capsys.readouterr().out and points(course, "ana") == 8
    outcome, _ = grade(course.root)
    assert points(course, "ana") == 5
    assert main(["restore"]) == 0
    assert outcome.backup.name in capsys.readouterr().out


def test_ten_are_kept_and_the_restored_one_is_among_no_losses(course):
    places = places_of(course.root)
    for number in range(KEPT + 3):
        with sqlite3.connect(database(places)) as book:
            book.execute(f"PRAGMA user_version = {number}")
        copy = back_up(places)
    assert back_up(places) == copy, "what says the same is not kept twice"
    have = backups(places)
    assert len(have) == KEPT and have[-1].name > have[0].name
    oldest = have[0]
    chosen, before = restore(places, oldest.name)  # the backup of what is there pushes it out
    assert chosen == oldest and before in backups(places) and len(backups(places)) == KEPT


def test_a_backup_is_whole_while_somebody_writes(course):
    places = places_of(course.root)
    writer = sqlite3.connect(database(places))
    writer.execute("CREATE TABLE other (x)")
    writer.execute("BEGIN")
    writer.execute("INSERT INTO other VALUES (1)")
    copy = back_up(places)
    writer.rollback()
    writer.execute("DROP TABLE other")
    writer.close()
    with sqlite3.connect(copy) as book:
        assert book.execute("SELECT count(*) FROM other").fetchone() == (0,)
        assert book.execute("SELECT count(*) FROM mlsys_done").fetchone()[0] >= 6


def test_a_damaged_gradebook_is_replaced_and_a_damaged_backup_is_not_used(course):
    places = places_of(course.root)
    good = back_up(places)
    database(places).write_bytes(b"garbage" * 1000)
    _, before = restore(places, "last")
    assert points(course, "ben") == 0 and before.read_bytes().startswith(b"garbage")
    good.write_bytes(good.read_bytes()[:5000] + b"\0" * 5000)
    with pytest.raises((ValueError, sqlite3.DatabaseError)):
        restore(places, good.name)
    assert points(course, "ben") == 0
    with pytest.raises(ValueError, match="no backup 'none.db'"):
        restore(places, "none.db")


def test_other_databases_have_their_own_tools(course):
    places = dataclasses.replace(places_of(course.root), db_url="postgresql://host/grades")
    assert back_up(places) is None
    with pytest.raises(ValueError, match="pg_dump"):
        restore(places, "last")
