"""The judge's side: runs the check cells of one submission; the student's names are call-throughs.

A call sends plain arguments to the student's snapshot and gets plain data back, or an error, or nothing
in time. The check's own code, the expected values and the comparison stay in this process. What comes
back and is no plain data is a `StandIn`, which can be called or asked for items and refuses all else:
it is neither true nor equal to anything.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import linecache
import os
import signal
import socket
import sys
import time
from copy import deepcopy
from typing import Any

import numpy as np

from . import wire
from .alarms import clear_alarms, set_alarms
from .codec import Handle, Refused, dumps, loads
from .limits import Limits
from .report import ERROR, FAULT, LIMIT, NOT_ATTEMPTED, PASS, WRONG

BEGIN_HIDDEN = "### BEGIN HIDDEN TESTS"
YOUR_CODE = "<your code>"
KEPT_BACK = "its text is not shown for hidden tests"


# NumPy asks any object for these; a stand-in that answered would give its own size for that of its data.
ARRAY_NAMES = {"size", "shape", "ndim", "dtype", "nbytes", "itemsize", "tolist", "item"}


class StudentError(RuntimeError):
    """An error of the student's whose own type is unknown here."""


class CheckFault(BaseException):
    """The check asks for something that cannot work; not the student's fault."""


class CheckTooLong(BaseException):
    """The check as a whole took too long."""


class Link:
    """The calls of one check to its snapshot, and what went wrong in them."""

    def __init__(self, sock: socket.socket, limits: Limits, check: str, hidden_from: float):
        self.sock, self.limits, self.check, self.hidden_from = sock, limits, check, hidden_from
        self.calls, self.failures, self.ended = 0, set(), ""
        self.read: dict[tuple, Any] = {}  # what stand-ins said since the last call: an object must not change between two looks

    def ask(self, operation: str, subject: Any, arguments: Any = None, named: Any = None) -> Any:
        """One request and its answer. Raises what the student's code raised."""
        if self.ended:
            return raise_at(StudentError(self.ended), "")
        self.calls += 1
        try:
            request = dumps((operation, subject, arguments, named), handle_of)
        except Refused as error:
            if self.calls == 1:
                raise CheckFault(f"the check passes {error}") from None
            self.failures.add("limit")  # what came from the student is too large or too deep to go back
            return raise_at(StudentError(f"gave data that cannot be handed back: {error}"), "")
        try:
            wait_s = 3 * self.limits.call_s  # the call's own limit counts CPU; this one is for a busy machine
            self.sock.settimeout(wait_s)
            wire.send(self.sock, request)
            reply = loads(wire.receive(self.sock, time.monotonic() + wait_s), self.open)
        except TimeoutError:
            return self.end("limit", f"did not answer within {wait_s:g} s")
        except (EOFError, OSError):
            return self.end("limit", f"ended its process: a call has {self.limits.call_s:g} s, and memory is limited")
        except ValueError as error:
            return self.end("error", f"gave no usable answer: {error}")
        return self.use(reply)

    def look(self, operation: str, subject: StandIn, key: Any = None) -> Any:
        """A look at an object that stayed with the student. Until the next call the same look gives the same."""
        place = operation, subject._handle.number, repr(key)
        if place not in self.read:
            self.read[place] = self.ask(operation, subject, key)
        return deepcopy(self.read[place])  # what the check changes is its own

    def use(self, reply: Any) -> Any:
        """The value in a reply, or the error."""
        if type(reply) is tuple and len(reply) == 2 and reply[0] == "ok":
            return reply[1]
        if type(reply) is tuple and len(reply) == 2 and reply[0] == "refused":
            self.failures.add("limit")
            return raise_at(StudentError(f"gave too much or too unusual data: {str(reply[1])[:200]}"), "")
        if type(reply) is not tuple or len(reply) != 4 or not all(type(part) is str for part in reply):
            return self.end("error", "gave no usable answer")
        _, name, text, line = reply
        self.failures.add({"NotImplementedError": "unwritten", "MemoryError": "limit"}.get(name, "error"))
        return raise_at(error_of(name, KEPT_BACK if self.in_hidden() else text[:500]), line)

    def end(self, why: str, text: str) -> None:
        """No more calls: the snapshot is gone or not to be trusted with another request."""
        self.failures.add(why)
        self.ended = f"your code {text}"
        self.sock.close()
        return raise_at(StudentError(self.ended), "")

    def open(self, handle: Handle) -> Any:
        return StandIn(self, handle, handle.name)

    def in_hidden(self) -> bool:
        """Whether the check has come to its hidden part."""
        frame, line = sys._getframe(), 0
        while frame:
            if frame.f_code.co_filename == self.check:
                line = frame.f_lineno  # the outermost one stays
            frame = frame.f_back
        return line >= self.hidden_from


def error_of(name: str, text: str) -> Exception:
    """An exception of the type with this name, if a check may meet it; never one that steers a loop."""
    kind = getattr(builtins, name, None) or getattr(np.linalg, name, None)
    steering = (StopIteration, StopAsyncIteration)
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, steering):
        with contextlib.suppress(TypeError):
            return kind(text)
    safe = name if name.isidentifier() and len(name) <= 60 else "Error"
    return type(safe, (StudentError,), {})(text)


def raise_at(error: Exception, line: str) -> None:
    """Raise an error so that a traceback ends in the student's line."""
    linecache.cache[YOUR_CODE] = (len(line), None, [line + "\n"], YOUR_CODE)
    exec(compile("raise error", YOUR_CODE, "exec"), {"error": error})


class StandIn:
    """An object that stayed with the student. It can be called, indexed and looped over, and nothing else."""

    __slots__ = ("_link", "_handle", "__name__")

    def __init__(self, link: Link, handle: Handle, name: str):
        for slot, value in zip(StandIn.__slots__, (link, handle, name)):
            object.__setattr__(self, slot, value)

    def __call__(self, *arguments, **named):
        self._link.read.clear()
        return self._link.ask("call", self, list(arguments), named)

    def __getattr__(self, name):
        if name.startswith("_") or name in ARRAY_NAMES:
            raise AttributeError(f"{self!r} has no {name}")
        return self._link.look("attribute", self, name)

    def __getitem__(self, key):
        return self._link.look("item", self, key)

    def __len__(self):
        return len(self._items())

    def __iter__(self):
        return iter(self._items())

    def _items(self) -> list:
        items = self._link.look("items", self)
        return items if type(items) is list else []

    def __repr__(self):
        return f"<{self._handle.name} of the student>"

    def __deepcopy__(self, memo):
        return self

    def _refuse(self, *_):
        raise TypeError(f"{self!r} is no plain data: give back numbers, text, lists, dicts or arrays")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _refuse
    __int__ = __float__ = __complex__ = __index__ = __array__ = __setattr__ = __format__ = _refuse
    __hash__ = object.__hash__


class Missing(StandIn):
    """A name that the student's cells do not define."""

    __slots__ = ()

    def __call__(self, *arguments, **named):
        self._link.failures.add("missing")
        return raise_at(NameError(f"your cells do not define {self.__name__}"), "")

    def __repr__(self):
        return f"<{self.__name__} is not defined>"

    __getitem__ = __len__ = __iter__ = _items = __call__

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self()


def handle_of(value: Any) -> Handle | None:
    """For dumps: a stand-in goes back as its handle; nothing else of the judge's travels."""
    return value._handle if type(value) is StandIn else None


class Judge:
    """The lecturer's names and the checks of one submission."""

    def __init__(self, job: dict):
        self.limits, self.names = Limits(**job["limits"]), set(job["names"])
        self.seed = [int(job["seed"][i : i + 8], 16) for i in range(0, 32, 8)] if job["seeded"] else []
        self.space: dict[str, Any] = {"__name__": "__main__", "display": _nothing, "get_ipython": _Magics}
        self.broken = ""

    def given(self, cell: dict) -> None:
        """A set-up or given cell; if it fails, no later check can be judged."""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                source = plain_python(cell["source"])
                linecache.cache[cell["id"]] = (len(source), None, source.splitlines(True), cell["id"])
                exec(compile(source, cell["id"], "exec"), self.space)
        except BaseException as error:
            self.broken = self.broken or f"the cell {cell['id']} fails: {type(error).__name__}: {error}"

    def check(self, cell: dict, sock: socket.socket) -> dict:
        """The verdict on one check cell."""
        start = time.monotonic()
        source, name = cell["source"], cell["id"]
        hidden_from = next((n for n, s in enumerate(source.split("\n"), 1) if s.strip().startswith(BEGIN_HIDDEN)), 1e9)
        link = Link(sock, self.limits, name, hidden_from)
        said = io.StringIO()
        result = {"cell": name, "share": 0.0, "outcome": FAULT, "message": self.broken, "hidden": False}
        if not self.broken:
            set_alarms(2 * self.limits.call_s, 0.5 * self.limits.wall_s, _too_long)
            try:
                with contextlib.redirect_stdout(said):
                    points = self.execute(cell, link)
                result |= verdict_of_points(points, cell["points"])
            except BaseException as error:
                result |= explain(error, link, name, hidden_from)
            finally:
                clear_alarms()
        with contextlib.suppress(OSError):
            sock.close()
        return result | {"said": said.getvalue()[:100_000], "seconds": round(time.monotonic() - start, 3)}

    def execute(self, cell: dict, link: Link) -> Any:
        """Run a check; the value of its last line if that is a number of the lecturer's, else None."""
        source = plain_python(cell["source"])
        linecache.cache[cell["id"]] = (len(source), None, source.splitlines(True), cell["id"])
        tree = seeded(ast.parse(source), link.hidden_from, self.seed)
        students = self.names - set(self.space)
        values = link.ask("names", sorted(students))
        values = values if type(values) is dict else {}
        before = dict(self.space)
        for name in students:
            value = values.get(name, Missing(link, Handle(0, "object", name), name))
            self.space[name] = StandIn(link, value._handle, name) if type(value) is StandIn else value
        link.calls = 0
        space, last = dict(self.space), tree.body[-1] if tree.body else None
        try:
            if isinstance(last, ast.Expr) and not students & loads_of(last):
                tree.body.pop()
                exec(compile(tree, cell["id"], "exec"), space)
                return eval(compile(ast.Expression(last.value), cell["id"], "eval"), space)
            return exec(compile(tree, cell["id"], "exec"), space)
        finally:
            self.space.clear()
            self.space.update(before)


def verdict_of_points(value: Any, most: float) -> dict:
    """Full points, or the number that the check's last line gives (nbgrader's partial credit)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return {"share": 1.0, "outcome": PASS, "message": ""}
    if not 0 <= value <= most:
        return {"outcome": FAULT, "message": f"the check gives {value} of {most} points"}
    share = float(value) / most if most else 1.0
    return {"share": share, "outcome": PASS if share == 1 else WRONG, "message": f"{value:g} of {most:g} points"}


def explain(error: BaseException, link: Link, check: str, hidden_from: float) -> dict:
    """Outcome and message for a check that ended with an error."""
    line, frame = 0, error.__traceback__
    while frame and not line:
        line = frame.tb_lineno if frame.tb_frame.f_code.co_filename == check else 0
        frame = frame.tb_next
    hidden = line >= hidden_from
    if isinstance(error, CheckFault):
        return {"outcome": FAULT, "message": str(error), "hidden": hidden}
    if isinstance(error, CheckTooLong):
        return {"outcome": LIMIT, "message": "The check took too long as a whole.", "hidden": hidden}
    text = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    failed = link.failures
    if "limit" in failed:
        outcome = LIMIT
    elif "unwritten" in failed and not failed & {"error"}:
        outcome = NOT_ATTEMPTED
    elif "missing" in failed or ("error" in failed and (not isinstance(error, AssertionError) or " raised " in text)):
        outcome = ERROR
    elif isinstance(error, AssertionError) or link.calls:
        outcome = WRONG
    else:
        outcome, text = FAULT, f"the check itself fails before it calls anything: {text}"
    if outcome == WRONG and not isinstance(error, AssertionError):
        text = f"The check cannot use what your code gave: {text}"
    return {"outcome": outcome, "message": text[:4000] or "The check failed.", "hidden": hidden}


def seeded(tree: ast.Module, hidden_from: float, seed: list[int]) -> ast.Module:
    """In the hidden part, `test_rng = np.random.default_rng(7)` draws from (7, seed): inputs of this student's own."""
    for node in tree.body if seed else ():
        if node.lineno < hidden_from or not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        call, target = node.value, node.targets[0]
        named = isinstance(target, ast.Name) and target.id == "test_rng"
        if named and getattr(call.func, "attr", "") == "default_rng" and len(call.args) == 1:
            words = [ast.Constant(word) for word in seed]
            call.args = [ast.List([call.args[0], *words], ast.Load())]
            ast.fix_missing_locations(tree)
    return tree


def loads_of(node: ast.AST) -> set[str]:
    """Names that a piece of code reads."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def plain_python(source: str) -> str:
    """A cell without IPython's magics: their lines do nothing here."""
    lines = [("pass" if line.lstrip()[:1] in "%!" and line.strip() else line) for line in source.split("\n")]
    return "\n".join(lines)


def _nothing(*_, **__) -> None:
    """In place of IPython's display: a judge shows nothing."""


def _Magics():
    return None


def _too_long(*_):
    raise CheckTooLong


def run(job: dict, host: socket.socket, checks: list[socket.socket]) -> None:
    """All cells of one submission; one message for each check, as soon as it is judged."""
    judge, started = Judge(job), False
    for cell in job["cells"]:
        if cell["kind"] == "given":
            judge.given(cell)
            continue
        if not started:  # only now the student's side is through with its cells
            wire.receive(host)
            started = True
        wire.send_json(host, apart(judge, cell, checks.pop(0)))
    wire.send_json(host, {"end": True})


def apart(judge: Judge, cell: dict, sock: socket.socket) -> dict:
    """The verdict on one check, from a fork: what one check uses up is not missing in the next."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        wire.send_json(theirs, judge.check(cell, sock))
        os._exit(0)
    theirs.close()
    sock.close()
    try:
        return wire.receive_json(ours, time.monotonic() + 0.5 * judge.limits.wall_s + 5)
    except (EOFError, OSError, ValueError):
        message = "The check used up its time or its memory on what your code gave."
        return {"cell": cell["id"], "share": 0.0, "outcome": LIMIT, "message": message, "hidden": False}
    finally:
        ours.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
