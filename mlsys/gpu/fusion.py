"""Fusion as bytes: operations that share a kernel hand results on in registers; between kernels everything goes through memory.

A `Graph` says which operation makes what of what. A *plan* is a list of groups, each the names of the results that one
kernel makes, in the order in which it makes them. A kernel reads each array from outside once and writes what later
kernels or the caller need. It is refused if
  - it needs a result that no earlier step makes, or makes one twice;
  - it multiplies matrices twice, or does anything before it multiplies: a product takes its operands from memory;
  - it reduces rows after a product: a tile of the result holds no whole row;
  - more values are alive at once than its registers hold.
Simplified: a thread works on one element (or `width` of them), a value takes one register from the step that loads or
makes it to the last that uses it, and rows that are reduced stay on the chip whole. Compilers load late, load again and
reorder, so true counts of registers can be lower; they also unroll, and then they are higher. Times are rooflines: lower
bounds. Recomputing a value in two kernels instead of storing it is left out.
Lessons: fusion and IO-aware kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..specs.accelerators import Accelerator
from .roofline import Work

KINDS = ("elementwise", "reduction", "matmul")
BASE_REGISTERS = 8  # of a thread: indices and loop counters; a round number
POINTER_REGISTERS = 2  # of an array in memory: its 64-bit address
Plan = Sequence[Sequence[str]]


class PlanError(ValueError):
    """A plan that cannot be carried out. The text names the kernel."""


@dataclass(frozen=True)
class Op:
    """out: name of the result; inputs: names of arrays; flops: of the whole operation."""

    out: str
    inputs: tuple[str, ...]
    flops: float = 0.0
    kind: str = "elementwise"

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} of {self.out} is none of {', '.join(KINDS)}")


@dataclass(frozen=True)
class Graph:
    """Operations in an order that works, the bytes of every array by name, and the results that the caller wants."""

    ops: tuple[Op, ...]
    sizes: dict[str, float]
    wanted: tuple[str, ...]

    def __post_init__(self):
        made = self.made
        for name in (*self.wanted, *made, *(source for op in self.ops for source in op.inputs)):
            if name not in self.sizes:
                raise ValueError(f"sizes has no bytes for {name}")
        for place, op in enumerate(self.ops):
            for source in op.inputs:
                if source in list(made)[place:]:
                    raise ValueError(f"{op.out} uses {source}, which is made later")

    @property
    def made(self) -> dict[str, Op]:
        """The operations by the name of their result."""
        return {op.out: op for op in self.ops}

    def users(self, name: str) -> list[str]:
        """Results that are made from an array."""
        return [op.out for op in self.ops if name in op.inputs]


@dataclass(frozen=True)
class Kernel:
    """One kernel of a plan: results in order, arrays read and written, registers of a thread, work by kind."""

    makes: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    registers: int
    matmul_flops: float
    vector_flops: float
    bytes_moved: float

    @property
    def work(self) -> Work:
        return Work(self.matmul_flops + self.vector_flops, self.bytes_moved)

    def time_s(self, on: Accelerator, launch_s: float = 0.0) -> float:
        """Launch, then the longer of arithmetic and traffic; products at the bf16 peak, the rest at fp32's."""
        compute = self.matmul_flops / on.peak("bf16") + self.vector_flops / on.peak("fp32")
        return launch_s + max(compute, self.bytes_moved / on.mem_bw)


@dataclass(frozen=True)
class Score:
    """A plan's kernels, and what they take together."""

    kernels: tuple[Kernel, ...]
    time_s: float

    @property
    def bytes_moved(self) -> float:
        return sum(kernel.bytes_moved for kernel in self.kernels)

    @property
    def registers(self) -> int:
        """Of the kernel that needs most."""
        return max(kernel.registers for kernel in self.kernels)


def one_by_one(graph: Graph) -> list[tuple[str]]:
    """The plan without fusion: a kernel for each operation.

    >>> one_by_one(gelu(1000))[:3]
    [('square',), ('cube',), ('scaled',)]
    """
    return [(op.out,) for op in graph.ops]


def score(graph: Graph, plan: Plan, on: Accelerator, max_registers: int = 255, width: int = 1, launch_s: float = 0.0) -> Score:
    """Time, traffic and registers of a plan on a chip; raises PlanError if it cannot be carried out.

    max_registers: of a thread; width: elements that a thread works on at once; launch_s: seconds of each launch.

    >>> from mlsys.specs import A100_80GB
    >>> apart, together = (score(gelu(2**26), plan, A100_80GB) for plan in (one_by_one(gelu(2**26)), [list(gelu(2**26).made)]))
    >>> apart.bytes_moved / together.bytes_moved, together.registers
    (10.5, 14)
    """
    if not isinstance(plan, (list, tuple)) or not all(isinstance(group, (list, tuple)) for group in plan):
        raise PlanError("a plan is a list of kernels, and each kernel a list of the results that it makes")
    found, done = [], set()
    for group in plan:
        kernel = plan_kernel(graph, tuple(group), done, width)
        if kernel.registers > max_registers:
            raise PlanError(f"kernel {_name(group)} needs {kernel.registers} registers a thread; {max_registers} are allowed")
        done |= set(group)
        found.append(kernel)
    missing = [op.out for op in graph.ops if op.out not in done]
    if missing:
        raise PlanError(f"no kernel makes {', '.join(missing)}")
    return Score(tuple(found), sum(kernel.time_s(on, launch_s) for kernel in found))


def plan_kernel(graph: Graph, group: tuple[str, ...], done: set[str], width: int = 1) -> Kernel:
    """One kernel of a plan. done: results that earlier kernels have made.

    >>> kernel = plan_kernel(gelu(1000), ("square", "cube"), set())
    >>> kernel.reads, kernel.writes, kernel.bytes_moved
    (('x',), ('cube',), 4000)
    """
    _check_group(graph, group, done)
    ops = [graph.made[name] for name in group]
    reads = tuple(dict.fromkeys(source for op in ops for source in op.inputs if source not in group))
    writes = tuple(name for name in group if name in graph.wanted or any(user not in group for user in graph.users(name)))
    flops = {kind: sum(op.flops for op in ops if (op.kind == "matmul") == (kind == "matmul")) for kind in ("matmul", "vector")}
    moved = sum(graph.sizes[name] for name in (*reads, *writes))
    registers = BASE_REGISTERS + POINTER_REGISTERS * len(reads + writes) + width * most_alive(ops)
    return Kernel(group, reads, writes, registers, flops["matmul"], flops["vector"], moved)


def most_alive(ops: Sequence[Op]) -> int:
    """The most values that lie in registers at once: operands still needed, and the result being made.

    An operand is loaded at its first use. A result may take the register of an operand that is used for the last time.

    >>> most_alive([Op("a", ("x", "y")), Op("b", ("a", "x"))])
    2
    >>> most_alive([Op("a", ("x",)), Op("b", ("y",)), Op("c", ("a", "b", "x"))])
    3
    """
    last = {name: place for place, op in enumerate(ops) for name in (*op.inputs, op.out)}
    alive, most = set(), 0
    for place, op in enumerate(ops):
        alive |= set(op.inputs)
        most = max(most, len(alive))
        alive = {name for name in alive if last[name] > place}
        alive.add(op.out)
        most = max(most, len(alive))
        if last[op.out] == place:
            alive.discard(op.out)
    return most


def _check_group(graph: Graph, group: tuple[str, ...], done: set[str]) -> None:
    """Raise PlanError unless one kernel can make these results in this order."""
    if not group:
        raise PlanError("a kernel of a plan makes nothing")
    made: set[str] = set()
    for name in group:
        if not isinstance(name, str) or name not in graph.made:
            raise PlanError(f"kernel {_name(group)}: no operation makes {name}")
        if name in done or name in made:
            raise PlanError(f"kernel {_name(group)}: {name} is made twice")
        missing = [source for source in graph.made[name].inputs if source in graph.made and source not in done | made]
        if missing:
            raise PlanError(f"kernel {_name(group)}: {name} needs {', '.join(missing)}, which is not made before")
        made.add(name)
    kinds = [graph.made[name].kind for name in group]
    if "matmul" in kinds[1:]:
        raise PlanError(f"kernel {_name(group)}: a product comes first in its kernel, and there is one")
    if kinds[0] == "matmul" and "reduction" in kinds:
        raise PlanError(f"kernel {_name(group)}: a product's tile holds no whole row to reduce")


def _name(group: Sequence[str]) -> str:
    return "+".join(str(name) for name in group)


def gelu(elements: int, itemsize: int = 2) -> Graph:
    """GELU by its tanh formula, as a framework that works operation by operation runs it: 0.5 x (1 + tanh(c (x + a x^3))).

    >>> [op.out for op in gelu(8).ops]
    ['square', 'cube', 'scaled', 'inner', 'arg', 'tanh', 'shifted', 'half', 'y']
    """
    steps = (("square", "x", "x"), ("cube", "square", "x"), ("scaled", "cube"), ("inner", "x", "scaled"), ("arg", "inner"),
             ("tanh", "arg"), ("shifted", "tanh"), ("half", "x"), ("y", "half", "shifted"))  # fmt: skip
    ops = tuple(Op(out, tuple(dict.fromkeys(inputs)), elements) for out, *inputs in steps)
    return Graph(ops, {name: elements * itemsize for name in ("x", *(op.out for op in ops))}, ("y",))
