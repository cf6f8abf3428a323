"""`@kernel` and `@device`: from a Python function for one thread to a launch over a grid.

The function is rewritten when it is defined (see `rewrite.py`) and compiled at its first launch.
Names from outside (constants, device functions) are looked up at each launch, as Python does.
Left out: time, caches, how blocks are dealt out to SMs, and the memory model (every lane sees
every earlier store at once). A kernel that is right here can be wrong on a GPU where it relies
on lanes or blocks keeping step; the race detector of `trace=True` finds most of these.
Lessons: SMs and warps, CUDA programming model.
"""

from __future__ import annotations

import ast
import builtins
from types import FunctionType

import numpy as np

from mlsys.gpu.simt import rewrite
from mlsys.gpu.simt.errors import KernelError, KernelSyntaxError
from mlsys.gpu.simt.machine import Machine
from mlsys.gpu.simt.masks import Geometry
from mlsys.gpu.simt.memory import Array, Global
from mlsys.gpu.simt.report import Report
from mlsys.gpu.simt.trace import Tracer
from mlsys.gpu.simt.values import OPERATORS, value

MAX_THREADS, MAX_BLOCK = 1024, (1024, 1024, 64)  # per block, on every GPU of the last ten years
MAX_GRID = (2**31 - 1, 65535, 65535)
MARK = "_rewritten_from"


class Function:
    """A rewritten function: in two versions, plain and traced, each compiled when first needed."""

    def __init__(self, function: FunctionType, source: tuple[ast.FunctionDef, str] | None = None):
        self.function, self.name = function, function.__name__
        self.__name__, self.__doc__, self.__wrapped__ = function.__name__, function.__doc__, function
        self.tree, self.filename = source or rewrite.source_of(function)
        self.free = rewrite.free_names(self.tree)
        self.parameters = [a.arg for a in self.tree.args.args]
        self.rewritten = {t: rewrite.Rewriter(self.filename, t).function(self.tree) for t in (False, True)}
        self.compiled: dict[bool, FunctionType] = {}

    def __repr__(self):
        return f"<{type(self).__name__.lower()} {self.name}({', '.join(self.parameters)})>"

    def runner(self, traced: bool) -> FunctionType:
        if traced not in self.compiled:
            names = {"_" + name: run for name, run in OPERATORS.items()} | {MARK: (self.name, self.filename)}
            exec(compile(self.rewritten[traced], self.filename, "exec"), names)
            self.compiled[traced] = names[self.name]
        return self.compiled[traced]

    def outside(self) -> list:
        """Values of the names that the function takes from outside."""
        code, cells = self.function.__code__, self.function.__closure__ or ()
        closure = dict(zip(code.co_freevars, cells))
        return [self.look_up(name, closure) for name in self.free]

    def look_up(self, name: str, closure: dict):
        if name in closure:
            found = closure[name].cell_contents
        elif name in self.function.__globals__:
            found = self.function.__globals__[name]
        elif hasattr(builtins, name):
            found = getattr(builtins, name)
        else:
            raise NameError(f"{self.name} uses {name}, which is not defined.")
        if isinstance(found, np.ndarray):
            raise KernelError(f"{self.name} uses the array {name} from outside; hand it over as an argument.")
        return value(found) if isinstance(found, np.generic) else found

    def run_on(self, machine: Machine, arguments: tuple, keywords: dict | None = None) -> None:
        """Run in the machine's active lanes."""
        if keywords or len(arguments) != len(self.parameters):
            raise KernelError(f"{self.name} takes ({', '.join(self.parameters)}) and got {len(arguments)} arguments.")
        self.runner(machine.tracer is not None)(machine, *self.outside(), *arguments)


class Device(Function):
    """A function that kernels call."""

    def __call__(self, *_):
        raise RuntimeError(f"{self.name} is a device function; only kernels call it.")


class Kernel(Function):
    """A kernel: `k.launch(grid, block, args)` or `k[grid, block](*args)`."""

    def __init__(self, function: FunctionType, source: tuple[ast.FunctionDef, str] | None = None):
        super().__init__(function, source)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Return) and node.value is not None:
                raise KernelSyntaxError(f"{self.name}, line {node.lineno}: a kernel returns nothing; it writes to arrays.")
        self.written, self.second_names = rewrite.written_names(self.tree)

    def portable(self) -> dict:
        """The kernel as plain data, to be run by somebody who does not trust it; see `portable.py`."""
        from mlsys.gpu.simt.portable import portable

        return portable(self)

    def __call__(self, *_):
        raise RuntimeError(f"launch {self.name} with {self.name}.launch(grid, block, args) or {self.name}[grid, block](...).")

    def __getitem__(self, sizes):
        if not isinstance(sizes, tuple) or len(sizes) != 2:
            raise ValueError(f"{self.name}[grid, block] takes two sizes, not {sizes!r}.")
        return lambda *args, **options: self.launch(*sizes, args, **options)

    def launch(self, grid, block, args=(), *, trace=False, timeline: int | None = None, max_rounds=1_000_000) -> Report:
        """Run the kernel for every thread of the grid.

        grid, block: a number or up to three, (x, y, z). args: NumPy arrays, which the kernel may
        change, and numbers. trace: count and look for races. timeline: number of a
        warp whose every issue slot the trace is to list. max_rounds: of one loop.
        """
        geometry = Geometry(size("grid", grid, MAX_GRID), size("block", block, MAX_BLOCK))
        arguments = self.arguments(args, geometry)
        machine = Machine(geometry, Tracer(geometry, self.filename, timeline) if trace else None, max_rounds)
        try:
            with np.errstate(all="ignore"):
                self.run_on(machine, arguments)
        except KernelError as error:
            error.locate(self.name, *(where(error) or (self.name, self.filename, self.tree.lineno)))
            raise error.with_traceback(None) from error.__cause__
        traced = machine.tracer.numbers() if trace else {}
        return Report(
            self.name, geometry.grid, geometry.block, geometry.lanes, geometry.warps, machine.shared_bytes(), **traced
        )

    def arguments(self, args, geometry: Geometry) -> list:
        if len(args) != len(self.parameters):
            raise TypeError(f"{self.name} takes ({', '.join(self.parameters)}) and got {len(args)} arguments.")
        out, seen = [], {}
        for name, given in zip(self.parameters, args):
            # one array under two names is one array, so that races between the names are found
            key = (given.ctypes.data, given.shape, given.dtype) if isinstance(given, np.ndarray) and given.size else name
            out.append(seen.setdefault(key, argument(name, given, geometry)))
        written = [g for name, g in zip(self.parameters, args) if name in self.written and isinstance(g, np.ndarray)]
        for array, given in zip(out, args):
            if isinstance(array, Array):  # what nobody writes cannot race
                array.watched = self.second_names or any(np.may_share_memory(given, other) for other in written)
        return out


def argument(name: str, given, geometry: Geometry):
    if isinstance(given, np.ndarray):
        if not given.flags.c_contiguous:
            raise ValueError(f"{name} is not contiguous in memory; pass np.ascontiguousarray({name}).")
        if given.dtype.kind not in "biuf" or not given.dtype.isnative:
            raise TypeError(f"{name} holds {given.dtype}; a kernel works on bools, integers and floats.")
        return Global(name, given, geometry)
    if isinstance(given, bool | int | float | np.generic):
        return value(given)
    raise TypeError(f"{name} is a {type(given).__name__}; a kernel takes NumPy arrays and numbers.")


def size(what: str, given, most: tuple[int, int, int]) -> tuple[int, int, int]:
    """A grid or block size as (x, y, z).

    >>> size("grid", 4, MAX_GRID), size("block", (16, 16), MAX_BLOCK)
    ((4, 1, 1), (16, 16, 1))
    """
    sizes = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(s, int | np.integer) and s >= 1 for s in sizes):
        raise ValueError(f"{what}={given!r}: one to three whole numbers, each at least 1.")
    sizes = tuple(int(s) for s in sizes) + (1,) * (3 - len(sizes))
    if any(s > limit for s, limit in zip(sizes, most)):
        raise ValueError(f"{what}={given!r} is too large: at most {most} in x, y and z.")
    if what == "block" and np.prod(sizes) > MAX_THREADS:
        raise ValueError(f"block={given!r} has {np.prod(sizes)} threads; a block has at most {MAX_THREADS}.")
    return sizes


def where(error: BaseException) -> tuple[str, str, int] | None:
    """Name, file and line of the innermost rewritten function that an error went through."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if MARK in trace.tb_frame.f_globals:
            found = *trace.tb_frame.f_globals[MARK], trace.tb_lineno
        trace = trace.tb_next
    return found


def kernel(function: FunctionType) -> Kernel:
    """Decorator: the function describes what one thread does."""
    return define(Kernel, function)


def device(function: FunctionType) -> Device:
    """Decorator for a function that kernels call; it may return a number."""
    return define(Device, function)


def define(kind: type, function: FunctionType) -> Function:
    try:
        return kind(function)
    except KernelSyntaxError as error:
        raise error.with_traceback(None) from None  # the reader's line, not ours


def show(function: Function, trace: bool = False) -> str:
    """The rewritten source: what runs for all lanes."""
    return ast.unparse(function.rewritten[trace])
