"""A warm server in the sandbox: imports everything once, then forks for each submission.

    python -m grading.sealed.server ROLE LEVEL SOCKET        ROLE: student or judge

One submission at a time. `J` with sockets starts one, `K` ends it; `k` comes back when nothing of it is left.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import signal
import socket
import sys
import time
import traceback

from . import jail, judge, student, wire
from .limits import Limits

READABLE = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/zero")


def lock_for(level: int, role: str, scratch: str):
    """The function that a child calls before it runs anything of a submission."""

    def lock(limits: Limits, more_processes: int = 0) -> None:
        jail.ordinary_again()
        jail.set_limits(limits, 2 * more_processes + 8)
        if level >= 2:
            jail.drop_privileges()
            if level == 2:
                places = [*READABLE, *os.environ["SEALED_READABLE"].split(os.pathsep)]
                jail.lock_files(places, [scratch, "/dev/null"] if role == "student" else ["/dev/null"])
            jail.filter_calls(unix_sockets=level >= 3, shared_memory=level >= 3)

    return lock


def child(role: str, level: int, shell, sockets: list[socket.socket]) -> None:
    """One submission, in a process of its own."""
    host, *checks = sockets
    job = wire.receive_json(host)
    limits = Limits(**job["limits"])
    if role == "judge":
        lock_for(level, role, "")(limits)
        judge.run(job, host, checks)
        return
    scratch = "/scratch" if level >= 3 else job["scratch"]
    if level >= 3:
        jail.own_namespaces(limits)
    else:
        os.chdir(scratch)
        os.environ.update(HOME=scratch, TMPDIR=scratch, IPYTHONDIR=scratch)
    student.supervise(shell, job, host, checks, lock_for(level, role, scratch), first=level >= 3)


def import_library(also_widgets: bool) -> None:
    """Every module of mlsys and what it draws with, once instead of once a submission."""
    import matplotlib.pyplot  # noqa: F401

    import mlsys

    for module in pkgutil.walk_packages(mlsys.__path__, "mlsys."):
        if also_widgets or ".widgets" not in module.name:
            with contextlib.suppress(Exception):  # a module that does not load is the notebook's to meet
                importlib.import_module(module.name)


def main(role: str, level: int, control: socket.socket) -> None:
    """Import, warm up, say so, and fork on demand."""
    import_library(also_widgets=role == "student")
    shell = None
    if role == "student":
        from .shell import Shell

        shell = Shell()
    gc.collect()
    gc.freeze()
    control.sendall(b"R")
    running = 0
    while True:
        message, handles, _, _ = socket.recv_fds(control, 1, 250)
        if message == b"J":
            running = os.fork()
            if running == 0:
                control.close()
                try:
                    child(role, level, shell, [socket.socket(fileno=handle) for handle in handles])
                except BaseException:
                    os.write(2, traceback.format_exc().encode()[-4000:])
                os._exit(0)
            for handle in handles:
                os.close(handle)
        elif running:
            end(running, role)
            running = 0
        if message == b"K":
            control.sendall(b"k")
        if not message:
            return


def end(pid: int, role: str) -> None:
    """End a submission and wait until it is gone; a guardian takes its own down first."""
    os.kill(pid, signal.SIGTERM if role == "student" else signal.SIGKILL)
    until = time.monotonic() + 8
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), socket.socket(fileno=int(sys.argv[3])))
