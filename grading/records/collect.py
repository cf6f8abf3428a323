"""Collection: what students handed in goes into the store; `submitted/` shows the newest version.

A submission is a folder of nbgrader's exchange, a folder of the lecturer's, a zip or a single notebook. What
is not a plain file is refused, and the reason is recorded and told. The lecturer's time of receipt stands
beside the time that the student's own file claims.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from .places import Places, sync_folder
from .reading import Found, bad_student, printable, read_folder, read_single, read_zip, time_of
from .store import Receipt, Store, digest

LATE_S = 600  # a claimed time may be this much older than the arrival: copying takes a while
MAX_VERSIONS = 500  # of one student's submission
STAMP, EXCHANGE, SUBMITTED = "timestamp.txt", "exchange", "submitted"


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def exchange_folders(places: Places, assignment: str) -> list[tuple[str, Path]]:
    """Student and folder of what lies in the exchange for an assignment: STUDENT+ASSIGNMENT+TIME+RANDOM, oldest first."""
    if not places.inbound.is_dir():
        return []
    mine = []
    for path in places.inbound.iterdir():
        for cuts in (3, 2):  # the random part can be switched off
            words = path.name.rsplit("+", cuts)
            if len(words) == cuts + 1 and words[1] == assignment:
                mine.append((words[2], path, words[0]))
                break
    return [(student, path) for _, path, student in sorted(mine)]


def origin_of(path: Path) -> str:
    """What a receipt says of a folder of the exchange."""
    return f"{EXCHANGE}: {printable(path.name)}"


def in_exchange(folders: list[tuple[str, Path]], any_owner: bool = False) -> Iterator[Found]:
    """What is in folders of the exchange.

    A folder has to belong to the student's account, or to the one that grades: anybody can write a folder
    with another's name into an exchange.
    """
    for student, path in folders:
        found = Found(student, origin_of(path))
        try:
            owner = None if any_owner or os.name != "posix" else path.lstat().st_uid
            why = "" if owner is None else wrong_owner(owner, student)
        except OSError as error:
            owner, why = None, f"it cannot be looked at ({error.strerror})"
        if why:
            found.refuse(path.name, why)
            found.doubtful = True
            yield found
        else:
            yield read_folder(found, path, owner)


def wrong_owner(uid: int, student: str) -> str:
    """Why an account is not the student's; empty if it is, or if it is the one that grades."""
    import pwd

    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"account {uid}"
    if name == student or uid == os.geteuid():
        return ""
    return f"it is named after {printable(student)} and belongs to {name}; --any-owner takes it"


def in_folder(folder: Path, names: str = "") -> Iterator[Found]:
    """What lies in a folder of the lecturer's: a folder, a zip or a notebook for each student.

    names: a regular expression with a group `student`, for names such as an LMS gives; without it, the whole name.
    """
    pattern = re.compile(names or r"(?P<student>.+)")
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        is_folder = os.path.isdir(path)  # this one raises nothing
        label = path.name if is_folder else path.stem
        match = pattern.fullmatch(label)
        found = Found(match["student"] if match else label, f"folder: {printable(path.name)}")
        if not match:
            found.refuse(path.name, f"the name does not match {names!r}")
            yield found
        elif is_folder and not os.path.islink(path):
            yield read_folder(found, path)
        elif path.suffix.lower() == ".zip":
            yield read_zip(found, path)
        elif path.suffix.lower() == ".ipynb":
            yield read_single(found, path)
        else:
            found.refuse(path.name, "it is no folder, zip or notebook")
            yield found


def in_submitted(places: Places, assignment: str) -> Iterator[Found]:
    """What nbgrader's own collect, or a person, laid into submitted/."""
    for path in sorted(places.submitted.glob(f"*/{assignment}")):
        yield read_folder(Found(path.parent.name, SUBMITTED), path)


def comes_by_exchange(found: Found, folders: list[tuple[str, Path]], any_owner: bool, before: list[Receipt]) -> bool:
    """Whether nbgrader's collect took this version from a folder of the exchange that is not in the store yet: it is one."""
    known = {old.origin for old in before}
    new = [(student, path) for student, path in folders if student == found.student and origin_of(path) not in known]
    return any(other.files == found.files and not other.doubtful for other in in_exchange(new, any_owner))


def keep(store: Store, found: Found, assignment: str, before: list[Receipt]) -> Receipt | None:
    """Put a version into the store unless it is there; the new receipt, or None if nothing is new.

    before: the receipts of the student's older versions. ValueError says why no more is taken.
    """
    claimed = found.files.get(STAMP, b"").decode("utf-8", "replace").strip()
    notes = tuple(found.notes + time_notes(claimed, found))
    if time_of(claimed) is None:  # what nbgrader cannot read, or reads as something else, must not reach it
        found.files = {name: content for name, content in found.files.items() if name.partition("/")[0] != STAMP}
    full = len(before) >= MAX_VERSIONS
    receipt = Receipt(
        assignment=assignment,
        student=found.student,
        number=0,
        files={name: (digest if full else store.put)(content) for name, content in sorted(found.files.items())},
        origin=found.origin,
        received=now(),
        arrived=found.arrived,
        claimed=printable(claimed[:80]),
        refused=dict(sorted(found.refused.items())),
        notes=notes,
    )
    # A folder of the exchange holds one version for ever; any other place shows the newest one.
    same_place = [old for old in before if old.origin == found.origin]
    known = same_place if found.origin.startswith(EXCHANGE) else before[-1:] or []
    if any(old.content == receipt.content for old in known):
        return None
    if found.origin == SUBMITTED and before and before[-1].files == receipt.files:
        return None  # our own view, which has nothing of what was refused
    if full:
        raise ValueError(f"it is not taken: {len(before)} versions are in the store")
    if same_place and found.origin.startswith(EXCHANGE):
        note = "the submission was changed in the exchange after it had been collected"
        receipt = Receipt(**vars(receipt) | {"notes": (*receipt.notes, note)})
    return store.receive(receipt)


def time_notes(claimed: str, found: Found) -> list[str]:
    """What is odd about a time stamp: not readable, or older than the files by more than ten minutes."""
    if not claimed:
        return []
    said = time_of(claimed)
    if said is None:
        return ["its time stamp cannot be read"]
    if not found.arrived or not found.origin.startswith(EXCHANGE):
        return []
    said, seen = said.replace(tzinfo=timezone.utc), datetime.fromisoformat(found.arrived)
    if (seen - said).total_seconds() > LATE_S:
        return [f"its time stamp says {said:%Y-%m-%d %H:%M} UTC, but a file was changed at {seen:%Y-%m-%d %H:%M} UTC"]
    return []


@dataclass(frozen=True)
class Collected:
    """What a collection did: new versions, things that could not be taken, and every refusal by student."""

    new: list[Receipt]
    refused: list[tuple[str, str, str]]  # student, file, reason


def collect(places: Places, assignment: str, source: Path | None = None, names: str = "", any_owner=False) -> Collected:
    """Take what is there: submitted/ first (somebody may have collected by hand), then the folder or the exchange."""
    places.masters(assignment)
    store = Store(places.store)
    new, refused, versions = [], [], {}
    folders = [] if source else exchange_folders(places, assignment)
    for part in (
        in_submitted(places, assignment),
        in_folder(source, names) if source else in_exchange(folders, any_owner),
    ):
        for found in part:
            reason = bad_student(found.student)
            if reason or found.doubtful:
                refused.append((printable(found.student), "", reason or "; ".join(found.refused.values())))
                continue
            if found.student not in versions:
                versions[found.student] = store.receipts(assignment, found.student)
            if found.origin == SUBMITTED and comes_by_exchange(found, folders, any_owner, versions[found.student]):
                continue
            try:
                receipt = keep(store, found, assignment, versions[found.student])
            except ValueError as error:
                refused.append((found.student, "", str(error)))
                continue
            if receipt:
                versions[found.student].append(receipt)
                new.append(receipt)
                refused += [(receipt.student, name, why) for name, why in receipt.refused.items()]
    for receipt in store.latest(assignment).values():
        show(places, store, receipt)
    return Collected(new, refused)


def show(places: Places, store: Store, receipt: Receipt) -> None:
    """Make submitted/STUDENT/ASSIGNMENT the given version: written in staging, then renamed into place."""
    folder = places.submitted / receipt.student / receipt.assignment
    if folder.is_dir():
        there = read_folder(Found(receipt.student, ""), folder)
        if not there.refused and {name: digest(content) for name, content in there.files.items()} == receipt.files:
            return
    fresh = places.staging / f"submitted-{uuid.uuid4().hex}"
    for name, content in receipt.files.items():
        path = fresh / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(content))
    fresh.mkdir(parents=True, exist_ok=True)
    swap_in(fresh, folder, places.staging)


def swap_in(fresh: Path, folder: Path, staging: Path) -> None:
    """Put a finished folder in the place of another. A kill in between leaves none, and the next run puts it there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.is_dir() and not folder.is_symlink():
        old = staging / f"old-{uuid.uuid4().hex}"
        os.rename(folder, old)
        os.rename(fresh, folder)
        remove(old)
    else:
        os.rename(fresh, folder)
    sync_folder(folder.parent)


def remove(folder: Path) -> None:
    """Remove a folder of ours; nbgrader's copies are read-only, which must not keep it."""
    for path in (folder, *folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def clear_staging(places: Places) -> None:
    """Remove what a killed run left half made. Call it with the lock held."""
    for path in places.staging.glob("*-" + "?" * 32):
        if path.is_dir():
            remove(path)
    for part in (*places.staging.rglob(".*.part"), *(places.store / "objects").glob("*/.*.part")):
        part.unlink(missing_ok=True)
