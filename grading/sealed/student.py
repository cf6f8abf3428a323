"""The student's side: runs the cells of one submission, then answers calls by name with plain data.

    guardian (process 1 of the submission; runs no student code)
      `- runner: one cell after the other; before each cell of the student it forks, the child runs the
           |  cell and goes on, the parent steps in only if that child dies or hangs
           `- snapshots: at each check one more fork, which waits for the judge's calls

A cell that kills its process costs that cell; a call that does so costs its check. What the student
printed is fixed, and sent, before the first input of a check arrives here.
"""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import sys
import time
from typing import Any

import numpy as np

from . import jail, wire
from .alarms import clear_alarms, set_alarms
from .codec import Handle, Refused, dumps, loads
from .limits import Limits
from .shell import CellTooLong, Shell, describe

MOST_ITEMS = 100_000


def supervise(shell: Shell, job: dict, host: socket.socket, checks: list[socket.socket], lock, first: bool) -> None:
    """Process 1: start the runner, collect what the cells left, send it, and stay until the host hangs up.

    first: it is process 1 of a namespace of its own, where no signal reaches it but those that it handles: none.
    """
    limits = Limits(**job["limits"])
    jail.guardian()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if first else lambda *_: end_all())
    mine, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            mine.close()
            host.close()
            lock(limits, len(job["cells"]))
            Runner(shell, job, limits, theirs, checks).run()
        finally:
            os._exit(0)
    theirs.close()
    for sock in checks:  # or a dead student would look like one that thinks
        sock.close()
    deadline = time.monotonic() + limits.wall_s
    left = collect(mine, host, deadline, 4 * limits.notebook_bytes)
    mine.close()
    wire.send_json(host, left)
    while select.select([host], [], [], 1.0)[0] == [] or host.recv(1):
        reap()
    end_all()


def collect(events: socket.socket, host: socket.socket, deadline: float, most_bytes: int) -> dict:
    """What the cells left, by cell, until the runner says that it is through, dies, or the time is over."""
    cells: dict[str, dict] = {}
    size, end = 0, "time"
    while time.monotonic() < deadline and size < most_bytes:
        ready, _, _ = select.select([events, host], [], [], max(0.0, min(1.0, deadline - time.monotonic())))
        reap()
        if host in ready:  # nothing is expected: the host is gone
            end_all()
        if events in ready:
            try:
                event = wire.receive_json(events, min(deadline, time.monotonic() + 10), most_bytes)
            except (EOFError, OSError, ValueError):
                end = "died"
                break
            if not isinstance(event, dict) or event.get("end"):
                end = "done"
                break
            cells[str(event.get("cell"))] = event
            size += len(str(event))
    return {"cells": cells, "end": end}


def reap() -> None:
    """Take note of children that ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_all() -> None:
    """Kill every descendant, then end. In a process namespace the kernel does the same once more."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        children = own_children()
        if not children:
            break
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.002)
        reap()
    os._exit(0)


def own_children() -> list[int]:
    """Children of this process; orphans of the submission are among them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


class Runner:
    """Runs the cells, one after the other; it is replaced by its own fork before each cell of the student."""

    def __init__(self, shell: Shell, job: dict, limits: Limits, events: socket.socket, checks: list[socket.socket]):
        self.shell, self.cells, self.limits, self.events, self.checks = shell, job["cells"], limits, events, checks
        self.seed = int(job["seed"], 16) % 2**32

    def run(self) -> None:
        """All cells; a check becomes a snapshot that answers calls."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)  # the server's own is a file that all submissions would share
        os.close(nowhere)
        random.seed(self.seed)
        np.random.seed(self.seed)
        for cell in self.cells:
            if cell["kind"] == "check":
                self.snapshot(self.checks.pop(0))
            elif cell["kind"] == "given":
                self.one(cell)
            else:
                self.own_cell(cell)
        wire.send_json(self.events, {"end": True})

    def one(self, cell: dict) -> None:
        """Run a cell here and report it."""
        start = time.monotonic()
        outputs, error = self.shell.run(cell["source"], self.limits)
        seconds = round(time.monotonic() - start, 3)
        wire.send_json(self.events, {"cell": cell["id"], "outputs": outputs, "error": error, "seconds": seconds})

    def own_cell(self, cell: dict) -> None:
        """Run a cell of the student's in a fork that then goes on as the runner."""
        ours, theirs = os.pipe()
        child = jail.fork_with_room()
        if child == 0:
            os.close(ours)
            set_alarms(self.limits.cell_s, 3 * self.limits.cell_s, too_long_after(self.limits.cell_s))
            try:
                self.one(cell)
            except CellTooLong as error:
                wire.send_json(self.events, {"cell": cell["id"], "outputs": [], "error": describe(error), "seconds": 0})
            clear_alarms()
            os.write(theirs, b".")
            os.close(theirs)
            return
        os.close(theirs)
        ready, _, _ = select.select([ours], [], [], 3 * self.limits.cell_s + 2)
        if ready and os.read(ours, 1):
            os._exit(0)
        why = "time" if not ready else "died"
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ours)
        wire.send_json(self.events, {"cell": cell["id"], "outputs": [], "error": None, "end_of_process": why})

    def snapshot(self, sock: socket.socket) -> None:
        """A fork that keeps the state of this moment for one check."""
        if jail.fork_with_room() == 0:
            try:
                self.events.close()
                for other in self.checks:
                    other.close()
                sys.stdout = sys.stderr = open(os.devnull, "w")
                Answering(self.shell.names, self.limits).serve(sock)
            finally:
                os._exit(0)
        sock.close()


def too_long_after(seconds: float):
    """A handler for alarms that ends a cell."""

    def too_long(*_):
        raise CellTooLong(f"This cell was stopped after {seconds:g} s.")

    return too_long


class Answering:
    """Answers the judge's calls. Nothing that is said here is believed there: it is compared."""

    def __init__(self, names: dict[str, Any], limits: Limits):
        self.names, self.limits, self.kept = names, limits, []

    def keep(self, value: Any) -> Handle:
        """A handle for an object that is no plain data."""
        self.kept.append(value)
        kind = "callable" if callable(value) else "object"
        return Handle(len(self.kept) - 1, kind, type(value).__name__[:80])

    def serve(self, sock: socket.socket) -> None:
        """One reply for each request, until the judge hangs up."""
        while True:
            try:
                request = wire.receive(sock)
            except (EOFError, OSError):
                return
            # A call that takes too long ends this process, not only the wait.
            set_alarms(self.limits.call_s, 4 * self.limits.call_s, signal.SIG_DFL)
            answer = self.reply(request)
            clear_alarms()
            wire.send(sock, answer)

    def reply(self, request: bytes) -> bytes:
        """The message that answers one request."""
        try:
            operation, subject, arguments, named = loads(request, lambda handle: self.kept[handle.number])
            return dumps(("ok", getattr(self, f"do_{operation}")(subject, arguments, named)), self.keep)
        except Refused as error:
            return dumps(("refused", str(error)))
        except BaseException as error:
            return dumps(("error", *describe(error)))

    def do_names(self, wanted: list[str], *_) -> dict:
        """Values of names; those that do not exist are left out."""
        return {name: self.names[name] for name in wanted if name in self.names}

    def do_call(self, function: Any, arguments: list, named: dict) -> Any:
        return function(*arguments, **named)

    def do_attribute(self, owner: Any, name: str, _) -> Any:
        return getattr(owner, name)

    def do_item(self, owner: Any, key: Any, _) -> Any:
        return owner[key]

    def do_items(self, owner: Any, *_) -> list:
        """The items of an iterable; one that does not end is cut."""
        return [item for item, _ in zip(owner, range(MOST_ITEMS))]
