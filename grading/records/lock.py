"""One grading run at a time for each assignment.

The lock belongs to the process and goes with it, however it ends; what stands in the file
is only for the message. Processes that the grader starts do not inherit it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def only_one(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file while the block runs. ValueError says who holds it otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as file:
        try:
            _lock(file)
        except OSError:
            holder = (file.read().strip() if os.name == "posix" else "") or "another process"
            raise ValueError(
                f"{what} is being graded by {holder}. Wait until it has ended, or end it; then run again."
            ) from None
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


def _lock(file) -> None:
    if os.name == "posix":
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
