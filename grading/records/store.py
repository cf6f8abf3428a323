"""The store: every version of every submission that was ever collected, under the hash of its content.

    store/objects/ab/abcdef...                      content of one file; written once, read-only
    store/receipts/ASSIGNMENT/STUDENT/000001.json   what arrived, from where and when; one more for each new version

Nothing here is changed or removed. Receipts are ordered by their number and by no clock.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from .places import put_bytes, put_json


@dataclass(frozen=True)
class Receipt:
    """One version of one submission. Times are ISO 8601 in UTC.

    received: when it was collected, by the lecturer's clock. arrived: when the machine of the exchange saw the last
    change of a file, which a student cannot set. claimed: the student's own timestamp.txt, as it was written.
    """

    assignment: str
    student: str
    number: int
    files: dict[str, str]  # name -> hash of the content
    origin: str  # such as "exchange: ana+ps01_foundations+..." or "folder: ana.zip"
    received: str
    arrived: str = ""
    claimed: str = ""
    refused: dict[str, str] = field(default_factory=dict)  # name -> reason
    notes: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """Hash of all files with their names: the name of this version."""
        return digest(json.dumps([self.files, self.refused], sort_keys=True).encode())


def digest(content: bytes) -> str:
    """The name of a content.

    >>> digest(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()


def file_name(person: str) -> str:
    """A person's or an assignment's name as one part of a path.

    >>> file_name("../ana"), file_name("Łukasz")
    ('..%2Fana', '%C5%81ukasz')
    """
    safe = quote(person, safe=" +@=,")
    return "%2E" + safe[1:] if safe.startswith(".") and "%" not in safe else safe


class Store:
    """The store below a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path_of(self, name: str) -> Path:
        return self.folder / "objects" / name[:2] / name

    def put(self, content: bytes) -> str:
        """Keep a content; its name. A content that is there already is read back and compared."""
        name = digest(content)
        path = self.path_of(name)
        if not path.is_file() or path.stat().st_size != len(content) or digest(path.read_bytes()) != name:
            put_bytes(path, content, mode=0o400)
        return name

    def get(self, name: str) -> bytes:
        """A content by its name. ValueError if the disk no longer has what was kept."""
        try:
            content = self.path_of(name).read_bytes()
        except FileNotFoundError:
            raise ValueError(f"the store has lost {name}") from None
        if digest(content) != name:
            raise ValueError(f"the store's {name} is damaged: its content has another hash")
        return content

    def _receipts(self, assignment: str, student: str) -> Path:
        return self.folder / "receipts" / file_name(assignment) / file_name(student)

    def receipts(self, assignment: str, student: str) -> list[Receipt]:
        """All versions of one submission, oldest first."""
        found = []
        for path in sorted(self._receipts(assignment, student).glob("[0-9]*.json")):
            data = json.loads(path.read_text(encoding="utf-8"))
            found.append(Receipt(**data | {"notes": tuple(data["notes"])}))
        return found

    def latest(self, assignment: str) -> dict[str, Receipt]:
        """Student -> newest version."""
        folder = self.folder / "receipts" / file_name(assignment)
        students = sorted(unquote(path.name) for path in folder.glob("*")) if folder.is_dir() else []
        return {student: kept[-1] for student in students if (kept := self.receipts(assignment, student))}

    def receive(self, receipt: Receipt) -> Receipt:
        """Append a version under the next number. Its contents have to be in the store."""
        folder = self._receipts(receipt.assignment, receipt.student)
        taken = [int(path.stem) for path in folder.glob("[0-9]*.json")]
        receipt = Receipt(**asdict(receipt) | {"number": max(taken, default=0) + 1})
        put_json(folder / f"{receipt.number:06}.json", asdict(receipt))
        return receipt

    def secret(self) -> bytes:
        """The course's secret, made on first use. Without it a re-grade draws other hidden inputs."""
        path, part = self.folder / "secret", self.folder / f".secret.{os.getpid()}"
        if not path.is_file():
            put_bytes(part, secrets.token_hex(32).encode())
            with contextlib.suppress(FileExistsError):  # of another run that was first
                os.rename(part, path) if os.name == "nt" else os.link(part, path)
            part.unlink(missing_ok=True)
        return bytes.fromhex(path.read_text().strip())

    def seed(self, assignment: str, student: str) -> str:
        """The seed of one student's hidden inputs: the same in every re-grade, and nobody can guess it."""
        return hmac.new(self.secret(), f"{assignment}\0{student}".encode(), "sha256").hexdigest()
