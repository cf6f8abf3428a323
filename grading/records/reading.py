"""Reading what a student handed in: plain files of bounded size and number, everything else refused with a reason.

Reading goes through one open handle a file, so a file cannot be swapped for a link between check and use.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

MAX_FILE_BYTES = 8 * 2**20  # a notebook with figures has below 1 MB
MAX_TOTAL_BYTES = 32 * 2**20
MAX_FILES = 50
SKIPPED = (".ipynb_checkpoints", "__pycache__", "__MACOSX", ".DS_Store")
TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(\.[0-9]{1,6})?"
    r" ?(?:UTC|Z|([+-])([0-9]{2}):?([0-9]{2}))?"
)


@dataclass
class Found:
    """One submission as it lies somewhere, read but not yet kept."""

    student: str
    origin: str
    files: dict[str, bytes] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    arrived: str = ""
    notes: list[str] = field(default_factory=list)
    doubtful: bool = False  # whose it is cannot be told, or it went away: it becomes no version of anybody's

    def take(self, name: str, content: bytes) -> None:
        """Add a file, or refuse it for its name or for what is there already."""
        reason = bad_name(name)
        if not reason and name.lower() in {other.lower() for other in self.files}:
            reason = "a second file has this name"
        if not reason and any(inside(name, other) or inside(other, name) for other in self.files):
            reason = "a file has the name of a folder"
        if not reason and len(self.files) >= MAX_FILES:
            reason = f"more than {MAX_FILES} files"
        if not reason and sum(map(len, self.files.values())) + len(content) > MAX_TOTAL_BYTES:
            reason = f"the files together have more than {MAX_TOTAL_BYTES >> 20} MB"
        if reason:
            self.refuse(name, reason)
        else:
            self.files[name] = content

    def refuse(self, name: str, reason: str) -> None:
        """Note a thing that was not taken. A long list is cut: it comes from the student."""
        if len(self.refused) < MAX_FILES:
            self.refused[printable(name)[:200]] = reason


def time_of(text: str) -> datetime | None:
    """A time as nbgrader writes it or in ISO 8601, in UTC and without a zone; None for any other text.

    The only reader of times that come from a student: nbgrader's own takes the last word for the name of a file.

    >>> str(time_of("2026-01-01 10:00:00.500000 UTC")), time_of("2026-01-01 10:00:00 /proc/self/mem")
    ('2026-01-01 10:00:00.500000', None)
    """
    match = TIME.fullmatch(text)
    if not match:
        return None
    date, clock, fraction, sign, hours, minutes = match.groups()
    try:
        when = datetime.fromisoformat(f"{date} {clock}") + timedelta(seconds=float(fraction or 0))
        away = timedelta(hours=int(hours), minutes=int(minutes)) if sign else timedelta()
        if away >= timedelta(days=1):
            return None
        return when + away if sign == "-" else when - away
    except (ValueError, OverflowError):  # the 31st of February, or hours before the year 1
        return None


def printable(text: str) -> str:
    """A student's text without control characters and lone surrogates, for a message or a file.

    >>> printable("a" + chr(27) + "[31m")
    'a?[31m'
    """
    return "".join(c if c.isprintable() else "?" for c in text).encode("utf-8", "replace").decode("utf-8")


def inside(name: str, folder: str) -> bool:
    """Whether a name is one below a folder, in capital or small letters.

    >>> inside("data/points.csv", "Data"), inside("data.csv", "data")
    (True, False)
    """
    return name.lower().startswith(folder.lower() + "/")


def bad_name(name: str) -> str:
    """Why a relative file name is not taken; empty if it is.

    >>> bad_name("../gradebook.db"), bad_name("data/points.csv")
    ('the name leads out of the submission', '')
    """
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or ":" in name or ".." in parts:
        return "the name leads out of the submission"
    if (
        not all(parts)
        or "." in parts
        or len(parts) > 4
        or any(len(part.encode("utf-8", "replace")) > 200 for part in parts)
    ):
        return "the name is too long or too deep"
    if not name.isprintable() or name != printable(name):
        return "the name has characters that cannot be shown"
    return ""


def bad_student(student: str) -> str:
    """Why a text is no student id; empty if it is one.

    >>> bad_student("../ana"), bad_student("ana+b@uni.example")
    ("a student's name has no '/'", '')
    """
    for sign in "/\\\0":
        if sign in student:
            return f"a student's name has no {sign!r}"
    if not student or len(student.encode("utf-8", "replace")) > 80 or not student.isprintable():
        return "a student's name has 1 to 80 characters that can be shown"
    if student.startswith((".", "-")) or student != student.strip() or any(sign in student for sign in "*?["):
        return "a student's name does not begin with a dot or a dash and holds none of * ? ["
    return ""


def read_file(folder: int, name: str) -> tuple[bytes, os.stat_result]:
    """Content of a plain file below an open folder. ValueError says why something else is refused."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISLNK(kind):
            raise ValueError("it is a link") from None
        if not stat.S_ISREG(kind):
            raise ValueError("it is a special file") from None
        raise ValueError(f"it cannot be read ({error.strerror})") from None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is a special file")
        if about.st_nlink > 1:
            raise ValueError("it is a hard link: the same file lies in a second place")
        content = file.read(MAX_FILE_BYTES + 1)
        if max(len(content), about.st_size) > MAX_FILE_BYTES:
            raise ValueError(f"it has more than {MAX_FILE_BYTES >> 20} MB")
        return content, about


def read_folder(found: Found, path: Path, owner: int | None = None) -> Found:
    """Read all files below a folder into `found`, without following a link anywhere.

    owner: the account that the folder had when it was looked at; another one can have been put in its place since.
    """
    if not hasattr(os, "O_NOFOLLOW"):
        return _read_folder_simply(found, path)
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        found.refuse(path.name, f"the folder cannot be read ({error.strerror})")
        found.doubtful = isinstance(error, FileNotFoundError)
        return found
    if owner is not None and os.fstat(top).st_uid != owner:
        os.close(top)
        found.refuse(path.name, "another folder was put in its place")
        found.doubtful = True
        return found
    newest, waiting, seen = 0.0, [("", top)], 0
    while waiting:
        prefix, folder = waiting.pop()
        try:
            for name in sorted(os.listdir(folder)):
                seen += 1
                if seen > 20 * MAX_FILES:
                    found.refuse(prefix + name, "the submission has too many entries")
                    break
                if name in SKIPPED:
                    continue
                try:
                    about = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISDIR(about.st_mode) and prefix.count("/") < 3:
                        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                        waiting.append((f"{prefix}{name}/", below))
                        continue
                    content, about = read_file(folder, name)
                    newest = max(newest, about.st_ctime)
                    found.take(prefix + name, content)
                except ValueError as error:
                    found.refuse(prefix + name, str(error))
                except OSError as error:  # such as one that went away, or was swapped, while it was read
                    found.refuse(prefix + name, f"it cannot be read ({error.strerror})")
        except OSError as error:
            found.refuse(prefix or path.name, f"it cannot be read ({error.strerror})")
        finally:
            os.close(folder)
    if newest:
        found.arrived = datetime.fromtimestamp(newest, timezone.utc).isoformat(timespec="seconds")
    return found


def _read_folder_simply(found: Found, path: Path) -> Found:
    """The same on a system without O_NOFOLLOW (Windows): check, then read."""
    try:
        for file in sorted(path.rglob("*")):
            name = file.relative_to(path).as_posix()
            if file.is_symlink():
                found.refuse(name, "it is a link")
            elif file.is_file() and ".ipynb_checkpoints" not in file.parts:
                if file.stat().st_size > MAX_FILE_BYTES:
                    found.refuse(name, f"it has more than {MAX_FILE_BYTES >> 20} MB")
                else:
                    found.take(name, file.read_bytes())
    except OSError as error:
        found.refuse(path.name, f"it cannot be read ({error.strerror})")
    return found


def read_zip(found: Found, path: Path) -> Found:
    """Read the files of a zip into `found`; a common outer folder is taken off."""
    try:
        if path.is_symlink() or not path.is_file():
            raise ValueError("it is a link or a special file")
        if path.stat().st_size > MAX_TOTAL_BYTES:
            raise ValueError(f"it has more than {MAX_TOTAL_BYTES >> 20} MB")
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > 20 * MAX_FILES:
                raise ValueError("it has too many entries")
            tops = {entry.filename.partition("/")[0] if "/" in entry.filename else "" for entry in entries}
            cut = len(tops.copy().pop()) + 1 if len(tops) == 1 and "" not in tops and ".." not in tops else 0
            for entry in entries:
                name = entry.filename[cut:]
                if not any(
                    part in (".ipynb_checkpoints", "__MACOSX", ".DS_Store") for part in entry.filename.split("/")
                ):
                    _read_entry(found, archive, entry, name)
    except OSError as error:
        found.refuse(path.name, f"the zip cannot be read: {error.strerror or type(error).__name__}")
    except Exception as error:  # a broken archive fails in many ways, all of them its own fault
        found.refuse(path.name, f"the zip cannot be read: {printable(str(error))}")
    return found


def _read_entry(found: Found, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> None:
    """Take one file of a zip, or refuse it. The declared size is not believed."""
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        found.refuse(name, "it is a link" if kind == stat.S_IFLNK else "it is a special file")
    elif entry.flag_bits & 1:
        found.refuse(name, "it is encrypted")
    else:
        try:
            with archive.open(entry) as file:
                content = file.read(MAX_FILE_BYTES + 1)
        except Exception as error:  # a broken archive fails in many ways, all of them its own fault
            found.refuse(name, f"it cannot be unpacked ({type(error).__name__})")
            return
        if len(content) > MAX_FILE_BYTES:
            found.refuse(name, f"it has more than {MAX_FILE_BYTES >> 20} MB")
        else:
            found.take(name, content)


def read_single(found: Found, path: Path) -> Found:
    """A notebook that lies alone."""
    try:
        if path.is_symlink() or not path.is_file():
            found.refuse(path.name, "it is a link or a special file")
        elif path.stat().st_size > MAX_FILE_BYTES:
            found.refuse(path.name, f"it has more than {MAX_FILE_BYTES >> 20} MB")
        else:
            found.take(path.name, path.read_bytes())
    except OSError as error:
        found.refuse(path.name, f"it cannot be read ({error.strerror})")
    return found
