"""Backups of the gradebook: before each batch, ten kept, and the way back.

SQLite copies itself while others use it, and a restore is one transaction of the live file: who has it
open sees the old gradebook or the restored one. For PostgreSQL `pg_dump` and `pg_restore` do this work.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
import uuid
from contextlib import closing
from pathlib import Path

from .places import Places, sync_folder

KEPT = 10
NAME = re.compile(r"gradebook-(\d{6})-.*\.db")
POSTGRES = (
    "The gradebook is not SQLite: back it up with its own tool, such as `pg_dump --format=custom --file=gradebook.dump "
    "DATABASE`, and bring it back with `pg_restore --clean --single-transaction --dbname=DATABASE gradebook.dump`."
)


def database(places: Places) -> Path | None:
    """The file of a SQLite gradebook; None for another database."""
    prefix = "sqlite:///"
    return Path(places.db_url.removeprefix(prefix)) if places.db_url.startswith(prefix) else None


def backups(places: Places) -> list[Path]:
    """All backups, oldest first: by their number, not by a clock."""
    return sorted(path for path in places.backups.glob("gradebook-*.db") if NAME.fullmatch(path.name))


def back_up(places: Places) -> Path | None:
    """Copy the gradebook while it may be in use; the copy, or the last one if that says the same.

    None if there is no gradebook yet, or it is no SQLite file.
    """
    file = database(places)
    if file is None or not file.is_file():
        return None
    have = backups(places)
    number = int(NAME.fullmatch(have[-1].name)[1]) + 1 if have else 1
    target = places.backups / f"gradebook-{number:06}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.db"
    part = places.backups / f".{uuid.uuid4().hex}.part"
    try:
        copy(file, part)
        with open(part, "rb") as content:
            os.fsync(content.fileno())
        if have and have[-1].read_bytes() == part.read_bytes():
            return have[-1]
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(places.backups)
    for old in backups(places)[:-KEPT]:
        old.unlink()
    return target


def copy(source: Path, target: Path) -> None:
    """Copy one SQLite file over another as one transaction. ValueError if the copy is not sound."""
    with closing(sqlite3.connect(source, timeout=600)) as there, closing(sqlite3.connect(target, timeout=600)) as here:
        there.backup(here)
        found = here.execute("PRAGMA integrity_check").fetchone()[0]
    if found != "ok":
        raise ValueError(f"the copy of {source.name} is damaged: {found}")


def restore(places: Places, name: str) -> tuple[Path, Path | None]:
    """Bring a backup back; what was restored, and the backup that was made of the gradebook before."""
    file = database(places)
    if file is None:
        raise ValueError(POSTGRES)
    have = {path.name: path for path in backups(places)}
    chosen = list(have.values())[-1:] if name == "last" else [have[name]] if name in have else []
    if not chosen:
        raise ValueError(f"there is no backup {name!r}; backups are {', '.join(have) or 'none'}")
    with closing(sqlite3.connect(chosen[0])) as content:
        state = content.execute("PRAGMA integrity_check").fetchone()[0]
    if state != "ok":
        raise ValueError(f"{chosen[0].name} is damaged and was not restored: {state}")
    kept = places.staging / f"restore-{uuid.uuid4().hex}.db"
    copy(chosen[0], kept)  # the backup below may push the chosen one out of the ten
    try:
        before = None
        if file.is_file():
            try:
                before = back_up(places)
            except (sqlite3.DatabaseError, ValueError):  # the live file is what is broken: keep it as it is
                before = places.backups / f"damaged-{uuid.uuid4().hex[:8]}.db"
                os.replace(file, before)
        copy(kept, file)
    finally:
        kept.unlink(missing_ok=True)
    return chosen[0], before


def restore_command(name: str | None) -> int:
    """List the backups, or bring one back."""
    from .places import places_of

    places = places_of()
    if name is None:
        print("\n".join(path.name for path in backups(places)) or "There is no backup yet.")
        if database(places) is None:
            print(POSTGRES)
        return 0
    chosen, before = restore(places, name)
    print(f"The gradebook is {chosen.name} again.")
    if before:
        print(f"What it was before lies in grading/backups/{before.name}.")
    print("The next `python -m grading grade ASSIGNMENT` brings scores and notebooks in line with it.")
    return 0
