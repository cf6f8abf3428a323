"""Collection: plain files only, each version kept for ever, the lecturer's time beside the student's."""

from __future__ import annotations

import os
import shutil
import sys
import time
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import CLASS, RIGHT, STAND_IN, WRONG_ANSWER, grade, handed_in, lay, lecturer  # noqa: E402

from grading.records import collect as collecting  # noqa: E402
from grading.records import reading  # noqa: E402
from grading.records.collect import collect, remove  # noqa: E402
from grading.records.places import places_of  # noqa: E402
from grading.records.scores import stamp as kept_time  # noqa: E402
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


@POSIX
def test_what_nbgrader_collected_first_is_one_version(course, exchange):
    """Collected by Formgrader, handed in again, collected again, by hand an old one: each is received once, in order."""
    places = places_of(course.root)

    def received() -> list[tuple[int, str]]:
        new = collect(places, STAND_IN).new
        assert collect(places, STAND_IN).new == []
        return [(receipt.number, receipt.origin.partition(":")[0]) for receipt in new]

    exchange("me", handed_in(RIGHT), stamp(-60))
    nbgraders_collect(course)
    folder = course.root / "grading/submitted/me" / STAND_IN
    first = (folder / NOTEBOOK).read_bytes()
    assert received() == [(1, "exchange")]
    exchange("me", handed_in({}), stamp())
    nbgraders_collect(course)
    assert (folder / NOTEBOOK).read_bytes() != first, "nbgrader has the newer one"
    assert received() == [(2, "exchange")]
    shutil.rmtree(folder)
    shutil.copytree(sorted(places.inbound.iterdir())[0], folder)
    assert received() == [(3, "submitted")], "what a person put back is the newest"


@POSIX
def test_what_was_collected_first_does_not_come_before_an_older_version(course, exchange):
    for shift_s, answers in ((-60, RIGHT), (0, {})):
        exchange("me", handed_in(answers), stamp(shift_s))
    nbgraders_collect(course)
    places = places_of(course.root)
    assert len(collect(places, STAND_IN).new) == 2
    latest = Store(places.store).latest(STAND_IN)["me"]
    assert handed_in_again(places, latest) == handed_in({}) and latest.number == 2


def nbgraders_collect(course) -> None:
    """What Formgrader's button does."""
    from nbgrader.auth import Authenticator
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange import ExchangeFactory

    config = course.config()
    config.ExchangeCollect.update = True
    folders = CourseDirectory(config=config, assignment_id=STAND_IN)
    step = ExchangeFactory(config=config).Collect
    step(coursedir=folders, authenticator=Authenticator(config=config), config=config).start()


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


AT = "2026-01-01 10:00:00.123456 UTC"
TIMES = {
    "2026-01-01 10:00:00.123456 UTC": "2026-01-01 10:00:00.123456",
    "2026-01-01 10:00:00": "2026-01-01 10:00:00",
    "2026-01-01 10:00 UTC": "2026-01-01 10:00:00",
    "2026-01-01T10:00:00.5Z": "2026-01-01 10:00:00.500000",
    "2026-01-01 10:00:00 +0230": "2026-01-01 07:30:00",
    "2026-01-01T10:00:00-02:30": "2026-01-01 12:30:00",
}
NO_TIMES = [
    "2026-01-01 10:00:00 /proc/self/mem",
    "2026-01-01 10:00:00 Europe/Berlin",
    "2026-01-01 10:00:00 ../../../../etc/shadow",
    "2026-01-01 10:00:00 :/etc/passwd",
    "2026-01-01 10:00:00 UTC" + " " * 60 + "/proc/self/mem",
    "2026-01-01 10:00:00 99999999999999999999",
    "2026-02-31 10:00:00",
    "2026-01-01 24:00:01",
    "2026-01-01 10:00:00 +25:00",
    "0001-01-01 00:00:00 +01:00",
    "9999-12-31 23:59:59 -01:00",
    "٢٠٢٦-01-01 10:00:00",
    "2026-01-01 10:00:00\n",
    "today",
    "9" * 5000,
    "",
]


def test_times_of_students_have_one_form():
    assert {text: str(reading.time_of(text)) for text in TIMES} == TIMES
    assert [text for text in NO_TIMES if reading.time_of(text) is not None] == []


@pytest.mark.parametrize("claimed", [text for text in NO_TIMES if text.strip() == text and text])
def test_a_time_stamp_that_cannot_be_read_reaches_nobody(course, claimed, monkeypatch):
    """The last word is a time zone for nbgrader, and the name of a file for its parser: no class stops for one."""
    monkeypatch.setattr("nbgrader.utils.parse_utc", lambda text: pytest.fail(f"nbgrader reads {text!r}"))
    (course.root / "inbox" / "eve" / "timestamp.txt").write_text(claimed, encoding="utf-8")
    refused, latest, _ = taken(course)
    assert latest["eve"].notes == ("its time stamp cannot be read",) and set(latest["eve"].files) == {NOTEBOOK}
    assert kept_time(latest["eve"]) is None and len(latest) == len(CLASS)
    assert taken(course)[2].new == [] and list((course.root / "grading").rglob("timestamp.txt")) == []


def test_a_class_is_graded_and_published_beside_such_a_time_stamp(course):
    stamps = {"eve": "2026-01-01 10:00:00 /proc/self/mem", "ana": "2026-01-01 10:00:00 +0100"}
    for student, claimed in stamps.items():
        (course.root / "inbox" / student / "timestamp.txt").write_text(claimed)
    outcome, _ = grade(course.root)
    assert {student: line.got for student, line in outcome.lines.items()} == {name: most for name, (_, most) in CLASS.items()}
    (published,) = (course.root / "grading" / "autograded").rglob("timestamp.txt")
    assert published.parent.parent.name == "ana" and published.read_text() == "2026-01-01 09:00:00.000000 UTC"


@POSIX
def test_a_folder_that_goes_away_while_it_is_looked_at(course, exchange, monkeypatch):
    """It costs nobody else a version, and its name's owner none either."""
    there = exchange("me", handed_in(RIGHT), AT)
    gone = exchange("zed", handed_in({}), AT)
    hidden = exchange("yan", handed_in({}), AT)
    path = type(there)
    lstat, places = path.lstat, places_of(course.root)

    def racing(self):
        if self == gone:
            raise FileNotFoundError(2, "No such file or directory", str(self))
        about = lstat(self)
        if self == hidden:
            shutil.rmtree(self)
        return about

    monkeypatch.setattr(path, "lstat", racing)
    monkeypatch.setattr(collecting, "wrong_owner", lambda uid, student: "")
    done = collect(places, STAND_IN)
    assert [receipt.student for receipt in done.new] == ["me"]
    assert {student: why for student, _, why in done.refused} == {
        "zed": "it cannot be looked at (No such file or directory)",
        "yan": "the folder cannot be read (No such file or directory)",
    }
    assert sorted(Store(places.store).latest(STAND_IN)) == ["me"]


@POSIX
def test_a_folder_that_another_account_put_in_place_of_one(tmp_path):
    (tmp_path / NOTEBOOK).write_bytes(b"{}")
    found = reading.read_folder(reading.Found("ana", ""), tmp_path, os.geteuid() + 1)
    assert found.doubtful and found.files == {} and list(found.refused.values()) == ["another folder was put in its place"]
    assert set(reading.read_folder(reading.Found("ana", ""), tmp_path, os.geteuid()).files) == {NOTEBOOK}


@POSIX
def test_one_file_that_goes_away_costs_only_itself(course, monkeypatch):
    (course.root / "inbox" / "ana" / "a.txt").write_text("x")
    stat = os.stat

    def racing(name, *args, **more):
        if name == "a.txt" and more.get("dir_fd") is not None:
            raise FileNotFoundError(2, "No such file or directory", name)
        return stat(name, *args, **more)

    monkeypatch.setattr(os, "stat", racing)
    refused, latest, _ = taken(course)
    assert set(latest["ana"].files) == {NOTEBOOK}
    assert refused == {("ana", "a.txt"): "it cannot be read (No such file or directory)"}


@POSIX
@pytest.mark.parametrize("name", ["gus.ipynb", "gus.zip"])
def test_a_lone_file_that_cannot_be_read_costs_only_itself(course, monkeypatch, name):
    place = course.root / "inbox" / name
    place.write_bytes(handed_in(RIGHT))
    path = type(place)
    for method in ("stat", "is_symlink"):
        known = getattr(path, method)

        def refusing(self, *args, known=known, **more):
            if self == place:
                raise PermissionError(13, "Permission denied", str(self))
            return known(self, *args, **more)

        monkeypatch.setattr(path, method, refusing)
    refused, latest, _ = taken(course)
    assert sorted(latest) == sorted([*CLASS, "gus"]) and "Permission denied" in refused["gus", name]


def test_a_name_that_is_a_file_and_a_folder(course):
    """Such a zip could be put into the store and never be shown."""
    with zipfile.ZipFile(course.root / "inbox" / "gus.zip", "w") as archive:
        for name in (NOTEBOOK, "a", "a/b.txt", "c/d.txt", "C", "timestamp.txt/x"):
            archive.writestr(name, handed_in(RIGHT) if name == NOTEBOOK else "x")
    refused, latest, _ = taken(course)
    assert set(latest["gus"].files) == {NOTEBOOK, "a", "c/d.txt"}
    assert {name for student, name in refused} == {"a/b.txt", "C"}


@POSIX
def test_a_student_s_versions_have_an_end(course, exchange, monkeypatch):
    monkeypatch.setattr(collecting, "MAX_VERSIONS", 3)
    for number in range(5):
        exchange("me", handed_in({"kibibytes-answer": f"{number}"}), f"2026-01-01 10:00:0{number}.000000 UTC")
    exchange("you", handed_in(RIGHT), AT)
    places = places_of(course.root)
    monkeypatch.setattr(collecting, "wrong_owner", lambda uid, student: "")
    for new in (["me"] * 3 + ["you"], []):
        done = collect(places, STAND_IN)
        assert sorted(receipt.student for receipt in done.new) == new
        assert done.refused == [("me", "", "it is not taken: 3 versions are in the store")] * 2
    store = Store(places.store)
    assert len(store.receipts(STAND_IN, "me")) == 3 and len(list((places.store / "objects").glob("*/*"))) == 4 + 4
