"""Control groups: one cap on the memory of all processes of a submission together (level 4).

Without one the memory limit holds for each process, so that ten of them may use ten times as much. A group
can be had where a folder of the kernel's tree of groups may be written: by root, or by an ordinary account whose
session got a part of the tree from systemd. Both versions of the tree are known. Nothing is assumed: the
group is made, or the reason why not is a sentence.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

CAPS = {  # kind of tree -> files that take the cap; the second one counts swap with it, or swap alone
    "cgroup2": ("memory.max", "memory.swap.max"),
    "cgroup": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
}


class NoGroup(RuntimeError):
    """No control group can be had here; the text says why."""


class Group:
    """A control group of our own. `join` is for a process that is about to become the server."""

    def __init__(self, kind: str, folder: Path):
        self.kind, self.folder = kind, folder

    def join(self) -> None:
        """Put the calling process, and all that it will start, into the group."""
        (self.folder / "cgroup.procs").write_text("0")

    def cap(self, size_bytes: int) -> None:
        """Let all processes together use this much memory, and no swap beyond it. Raises OSError."""
        memory, swap = (self.folder / name for name in CAPS[self.kind])
        with_swap = 0 if self.kind == "cgroup2" else size_bytes
        with contextlib.suppress(OSError):  # a raised cap needs the wider file first, a lowered one the narrower
            swap.write_text(str(with_swap))
        memory.write_text(str(size_bytes))
        with contextlib.suppress(OSError):  # a kernel that does not count swap
            swap.write_text(str(with_swap))

    def remove(self) -> None:
        """Take the group away; it is empty a moment after its last process ended."""
        for _ in range(100):
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.02)


def make_group(size_bytes: int) -> Group:
    """A new group with a cap, in the nearest place that allows it. Raises NoGroup."""
    reasons = []
    for kind, place in places():
        folder = place / f"mlsys-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            folder.mkdir()
        except OSError as error:
            reasons.append(f"{place}: {error.strerror}")
            continue
        group = Group(kind, folder)
        try:
            if (folder / CAPS[kind][0]).exists():
                group.cap(size_bytes)
                return group
            reasons.append(f"{place}: memory is not controlled there")
        except OSError as error:
            reasons.append(f"{place}: {error.strerror}")
        group.remove()
    raise NoGroup("no control group for memory can be made here" + (f" ({reasons[0]})" if reasons else ""))


def places() -> Iterator[tuple[str, Path]]:
    """Folders in which a group might be made, by kind of tree: the one of this process, then those above it."""
    try:
        mine = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        mounts = [line.split()[1:4] for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return
    for kind in CAPS:
        for point, found, options in mounts:
            if found != kind or (kind == "cgroup" and "memory" not in options.split(",")):
                continue
            for number, controllers, path in mine:
                if (number == "0") if kind == "cgroup2" else ("memory" in controllers.split(",")):
                    inside = Path(point) / path.lstrip("/")
                    yield from ((kind, place) for place in (inside, *inside.parents) if place.is_relative_to(point) and place.is_dir())
