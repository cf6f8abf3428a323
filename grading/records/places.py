"""Where a course keeps its records: paths and gradebook as nbgrader's own configuration names them."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import course_root, write_file

OURS = ("store", "staging", "backups", "reports")


@dataclass(frozen=True)
class Places:
    """A course's folders. `submitted`, `autograded` and `feedback` hold STUDENT/ASSIGNMENT, as nbgrader wants it."""

    root: Path
    db_url: str
    course_id: str
    source: Path
    submitted: Path
    autograded: Path
    feedback: Path
    inbound: Path  # where the exchange of this machine leaves what students submit
    config: Any  # nbgrader's configuration

    @property
    def store(self) -> Path:
        return self.root / "grading" / "store"

    @property
    def staging(self) -> Path:
        return self.root / "grading" / "staging"

    @property
    def backups(self) -> Path:
        return self.root / "grading" / "backups"

    @property
    def reports(self) -> Path:
        return self.root / "grading" / "reports"

    def masters(self, assignment: str) -> dict[str, Path]:
        """The instructor's notebooks of an assignment by name. ValueError if there are none."""
        found = {path.stem: path for path in sorted((self.source / assignment).glob("*.ipynb"))}
        if not found or "/" in assignment or assignment.startswith("."):
            known = ", ".join(sorted(path.parent.name for path in self.source.glob("*/*.ipynb"))) or "none"
            raise ValueError(f"source/ has no notebook of {assignment!r}; assignments are {known}")
        return found


def places_of(root: Path | None = None) -> Places:
    """The places of the course that the working folder belongs to. Makes the folders that git must not see."""
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.exchange.default import Exchange
    from traitlets.config.loader import PyFileConfigLoader

    root = (root or course_root()).resolve()
    config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    folders = CourseDirectory(config=config)
    exchange = Exchange(coursedir=folders, config=config)

    def top(step: str) -> Path:
        return root / getattr(folders, f"{step}_directory")

    places = Places(
        root=root,
        db_url=folders.db_url,
        course_id=folders.course_id,
        source=top("source"),
        submitted=top("submitted"),
        autograded=top("autograded"),
        feedback=top("feedback"),
        inbound=Path(exchange.root) / folders.course_id / "inbound",
        config=config,
    )
    for name in OURS:
        hide_from_git(places.root / "grading" / name)
    return places


def hide_from_git(folder: Path) -> None:
    """Make a folder that its owner alone reads and that git does not see: it holds people's work."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.name == "posix":
        folder.chmod(0o700)
    ignore = folder / ".gitignore"
    if not ignore.is_file():
        write_file(ignore, "*\n")


def put_bytes(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Put a file in its place at once and make it last: written beside, flushed to the disk, renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.parent / f".{uuid.uuid4().hex}.part"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder last through a power cut, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def put_json(path: Path, data: object) -> None:
    """A JSON file, put in its place at once."""
    put_bytes(path, (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8"))
