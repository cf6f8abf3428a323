"""Collection: plain files only, each version kept for ever, the lecturer's time beside the student's."""

from __future__ import annotations

import os
import sys
import time
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import CLASS, RIGHT, STAND_IN, WRONG_ANSWER, handed_in, lay, lecturer  # noqa: E402

from grading.records import reading  # noqa: E402
from grading.records.collect import collect, remove  # noqa: E402
from grading.records.places import places_of  # noqa: E402
from grading.records.store import Store  # noqa: E402

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")
NOTEBOOK = f"{STAND_IN}.ipynb"


@pytest.fixture
def course(tmp_path):
    return lecturer(tmp_path)


def taken(course, **more):
    """A collection from the inbox: reasons by (student, file), and the newest versions."""
    places = places_of(course.root)
    done = collect(places, STAND_IN, course.root / "inbox", **more)
    return {(student, name): why for student, name, why in done.refused}, Store(places.store).latest(STAND_IN), done


def test_the_inbox_is_taken_once_and_shown(course):
    refused, latest, done = taken(course)
    assert refused == {} and sorted(latest) == sorted(CLASS) and len(done.new) == len(CLASS)
    shown = course.root / "grading" / "submitted" / "ana" / STAND_IN / NOTEBOOK
    assert shown.read_bytes() == handed_in_as_laid(course, "ana")
    before = shown.stat().st_ino
    assert taken(course)[2].new == [] and shown.stat().st_ino == before


def handed_in_as_laid(course, student: str) -> bytes:
    return (course.root / "inbox" / student / NOTEBOOK).read_bytes()


def test_each_version_is_kept_also_one_that_comes_back(course):
    taken(course)
    first = handed_in_as_laid(course, "ana")
    lay(course, "ana", RIGHT | {"kibibytes-answer": WRONG_ANSWER})
    taken(course)
    lay(course, "ana", first)
    taken(course)
    store = Store(places_of(course.root).store)
    kept = store.receipts(STAND_IN, "ana")
    assert [receipt.number for receipt in kept] == [1, 2, 3]
    assert kept[0].content == kept[2].content != kept[1].content
    assert store.get(kept[1].files[NOTEBOOK]) != first == store.get(kept[2].files[NOTEBOOK])
    assert all(path.stat().st_mode & 0o222 == 0 for path in (store.folder / "objects").glob("*/*"))


def test_a_view_that_a_crash_took_away_or_somebody_changed(course):
    """C09: What is gone comes back; what a person laid into submitted/ is a version of its own."""
    taken(course)
    folder = course.root / "grading" / "submitted" / "ana" / STAND_IN
    remove(folder)
    taken(course)
    assert (folder / NOTEBOOK).is_file()
    (folder / NOTEBOOK).write_bytes(handed_in({}))
    places = places_of(course.root)
    done = collect(places, STAND_IN)  # no inbox this time
    assert [(receipt.student, receipt.origin) for receipt in done.new] == [("ana", "submitted")]
    assert (folder / NOTEBOOK).read_bytes() == Store(places.store).get(done.new[0].files[NOTEBOOK])


@POSIX
def test_links_and_special_files_are_refused_with_a_reason(course):
    inbox = course.root / "inbox"
    secret = course.root / "grading" / "gradebook.db"
    secret.write_bytes(b"secret")
    place = inbox / "ana"
    (place / "data.csv").symlink_to(secret)
    (place / "more").symlink_to(course.root, target_is_directory=True)
    os.mkfifo(place / "pipe")
    os.link(secret, place / "hard.csv")
    with open(place / "huge.bin", "wb") as file:
        file.truncate(10 * 2**30)
    (place / "fine.csv").write_text("1\n")
    (inbox / "ben" / NOTEBOOK).unlink()
    (inbox / "ben" / NOTEBOOK).symlink_to(course.root / "source" / STAND_IN / NOTEBOOK)
    (inbox / "gus").symlink_to(course.root, target_is_directory=True)
    refused, latest, _ = taken(course)
    assert refused[("ana", "data.csv")] == refused[("ana", "more")] == refused[("ben", NOTEBOOK)] == "it is a link"
    assert refused[("ana", "pipe")] == "it is a special file"
    assert "hard link" in refused[("ana", "hard.csv")] and "more than 8 MB" in refused[("ana", "huge.bin")]
    assert set(latest["ana"].files) == {NOTEBOOK, "fine.csv"} and latest["ben"].files == {}
    assert "gus" not in latest or latest["gus"].files == {}
    store = Store(places_of(course.root).store)
    assert taken(course)[2].new == [], "what was refused does not make a new version of what was taken"
    assert not any(store.get(name) == b"secret" for receipt in latest.values() for name in receipt.files.values())


def test_too_many_and_too_deep(course):
    place = course.root / "inbox" / "ana"
    for number in range(80):
        (place / f"{number:03}.txt").write_text("x")
    deep = place / "a/b/c/d/e"
    deep.mkdir(parents=True)
    (deep / "f.txt").write_text("x")
    refused, latest, _ = taken(course)
    assert len(latest["ana"].files) == reading.MAX_FILES
    assert any("more than 50 files" in why for why in refused.values())


@pytest.mark.parametrize("name", ["../ben", ".hidden", "-rf", "a" * 100, "a\x1b[31m", "a*", " a", ""])
def test_names_that_are_no_student(name):
    assert reading.bad_student(name)


@pytest.mark.parametrize("name", ["ana", "ana+b@uni.example", "Łukasz Żak", "o'neil", "12-34", "a{b}"])
def test_names_that_are_students(name):
    assert reading.bad_student(name) == ""


def test_a_zip_for_each_student(course):
    inbox = course.root / "inbox"
    with zipfile.ZipFile(inbox / "Gus Grey_123_file.zip", "w") as archive:
        archive.writestr(f"work/{NOTEBOOK}", handed_in(RIGHT))
    with zipfile.ZipFile(inbox / "Hal Hue_124_file.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../grading/gradebook.db", "x")
        archive.writestr("/etc/passwd", "x")
        archive.writestr("C:\\x.txt", "x")
        archive.writestr("bomb.txt", b"0" * (9 << 20))
        link = zipfile.ZipInfo("link.ipynb")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "../../../source")
        archive.writestr(NOTEBOOK, handed_in({}))
    (inbox / "Ida Ink_125_file.zip").write_bytes(b"PK\x03\x04 no zip")
    refused, latest, _ = taken(course, names=r"(?P<student>[^_]+?)(_\d+_file)?")
    assert set(latest["Gus Grey"].files) == {NOTEBOOK} == set(latest["Hal Hue"].files)
    reasons = {name: why for (student, name), why in refused.items() if student == "Hal Hue"}
    assert len(reasons) == 5 and reasons["link.ipynb"] == "it is a link" and "8 MB" in reasons["bomb.txt"]
    assert sum("leads out" in why for why in reasons.values()) == 3
    assert "zip cannot be read" in refused[("Ida Ink", "Ida Ink_125_file.zip")]
    assert not (course.root / "grading" / "gradebook.db").exists()


@pytest.fixture
def exchange(course, monkeypatch):
    """The exchange's inbox of the course, as nbgrader lays it out."""
    monkeypatch.setenv("MLSYS_EXCHANGE", str(course.exchange))
    inbound = course.exchange / "mlsys" / "inbound"
    inbound.mkdir(parents=True)

    def submit(student: str, content: bytes, claimed: str, folder: str = "") -> Path:
        place = inbound / (folder or f"{student}+{STAND_IN}+{claimed}+x{len(list(inbound.iterdir()))}")
        place.mkdir(exist_ok=True)
        (place / NOTEBOOK).write_bytes(content)
        (place / "timestamp.txt").write_text(claimed)
        return place

    return submit


def stamp(shift_s: float = 0) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S.000000 UTC", time.gmtime(time.time() + shift_s))


@POSIX
def test_the_exchange_gives_the_newest_and_keeps_the_older(course, exchange):
    exchange("me", handed_in(RIGHT), stamp(-60))
    exchange("me", handed_in({}), stamp())
    places = places_of(course.root)
    collect(places, STAND_IN)
    kept = Store(places.store).receipts(STAND_IN, "me")
    assert len(kept) == 2 and kept[1].claimed > kept[0].claimed and kept[1].received and kept[1].arrived
    assert kept[1].notes == ()
    assert (course.root / "grading/submitted/me" / STAND_IN / NOTEBOOK).read_bytes() == handed_in_again(places, kept[1])
    assert collect(places, STAND_IN).new == []


def handed_in_again(places, receipt) -> bytes:
    return Store(places.store).get(receipt.files[NOTEBOOK])


@POSIX
def test_times_and_files_that_were_changed_later_are_flagged(course, exchange):
    """T16, T17 of the table of cases."""
    old = exchange("late", handed_in({}), stamp(-7200))
    places = places_of(course.root)
    (first,) = [receipt for receipt in collect(places, STAND_IN).new if receipt.student == "late"]
    assert "time stamp says" in first.notes[0]
    exchange("late", handed_in(RIGHT), stamp(-7200), old.name)
    (second,) = collect(places, STAND_IN).new
    assert any("changed in the exchange after" in note for note in second.notes) and second.number == 2


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give a file to another account")
def test_a_folder_of_another_account_is_refused(course, exchange):
    """T18 of the table of cases."""
    place = exchange("victim", handed_in({}), stamp())
    os.chown(place, 12345, 12345)
    places = places_of(course.root)
    done = collect(places, STAND_IN)
    assert done.new == [] and "belongs to account 12345" in done.refused[0][2]
    assert [receipt.student for receipt in collect(places, STAND_IN, any_owner=True).new] == ["victim"]


def test_the_store_notices_damage(tmp_path):
    store = Store(tmp_path)
    name = store.put(b"work")
    path = store.path_of(name)
    path.chmod(0o600)
    path.write_bytes(b"w")
    with pytest.raises(ValueError, match="damaged"):
        store.get(name)
    assert store.put(b"work") == name and store.get(name) == b"work"
    with pytest.raises(ValueError, match="has lost"):
        store.get("0" * 64)
    assert len(store.secret()) == 32 and store.secret() == Store(tmp_path).secret()
    assert store.seed("ps", "ana") != store.seed("ps", "ben")
