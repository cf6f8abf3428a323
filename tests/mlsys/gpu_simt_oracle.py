"""A slow second opinion: runs a kernel's source thread by thread, each thread a Python generator.

It shares nothing with `mlsys.gpu.simt`: an interpreter over the syntax tree, scalars only, one
thread at a time up to the next barrier or shuffle. Besides the memory it gives, for each line,
how many threads executed it, and every access with the barriers passed before it.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from dataclasses import dataclass, field
from itertools import product

import numpy as np

WARP = 32
BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
ATOMICS = {"atomic_add": operator.add, "atomic_max": max, "atomic_min": min, "atomic_exch": lambda old, new: new}
SHUFFLES = ("shfl_down", "shfl_up", "shfl_xor", "shfl")


class Jump(Exception):
    """break, continue or return on its way out."""

    def __init__(self, kind, value=None):
        self.kind, self.value = kind, value


def number(x):
    if isinstance(x, bool | np.bool_):
        return bool(x)
    return np.int32(x) if isinstance(x, int | np.integer) else np.float32(x)


def binary(op, a, b):
    if isinstance(a, np.floating) != isinstance(b, np.floating):
        a, b = np.float32(a), np.float32(b)
    return number(BINARY[type(op)](number(a), number(b)))


@dataclass
class Run:
    """One launch and what it leaves behind."""

    function: ast.FunctionDef
    names: dict  # constants and device functions (as syntax trees)
    args: list
    grid: tuple
    block: tuple
    executed: Counter = field(default_factory=Counter)  # line: threads that executed it
    accesses: list = field(default_factory=list)  # (array, element, kind, block, thread, barriers, line)

    def launch(self):
        threads = list(product(*(range(n) for n in reversed(self.block))))
        with np.errstate(all="ignore"):
            for number_of_block, b in enumerate(product(*(range(n) for n in reversed(self.grid)))):
                shared: dict = {}
                lanes = [Thread(self, b[::-1], t[::-1], number_of_block, k, shared) for k, t in enumerate(threads)]
                self.block_of(lanes)
        return self

    def block_of(self, lanes):
        waiting = {k: lane.run() for k, lane in enumerate(lanes)}
        answers = dict.fromkeys(waiting)
        while waiting:
            asked = {}
            for k, lane in list(waiting.items()):
                try:
                    asked[k] = lane.send(answers[k])
                except StopIteration:
                    del waiting[k]
            if not asked:
                break
            kinds = {event[0] for event in asked.values()}
            assert len(kinds) == 1 and len(asked) == len(lanes), "not all threads of a block came"
            answers = {k: shuffled(k, asked) for k in asked} if kinds != {"sync_threads"} else dict.fromkeys(asked)
            for lane in lanes:
                lane.barriers += kinds == {"sync_threads"}


def shuffled(lane, asked):
    how, _, distance, width = asked[lane]
    first = lane - lane % width
    source = {
        "shfl_down": lane + distance, "shfl_up": lane - distance, "shfl": first + distance % width,
        "shfl_xor": lane // WARP * WARP + (lane % WARP ^ distance),
    }[how]  # fmt: skip
    return asked[int(source) if first <= source < first + width else lane][1]


class Thread:
    def __init__(self, run, block_index, thread_index, block, thread, shared):
        self.all, self.block, self.thread, self.shared = run, block, thread, shared
        self.barriers = 0
        self.indices = {
            "thread_idx": thread_index, "block_idx": block_index, "block_dim": run.block, "grid_dim": run.grid
        }  # fmt: skip
        self.own = {}
        self.statement = None

    def run(self):
        yield from self.call(self.all.function, [a if isinstance(a, np.ndarray) else number(a) for a in self.all.args])

    def call(self, function, args):
        scope = dict(zip((a.arg for a in function.args.args), args))
        try:
            yield from self.body(function.body, scope)
        except Jump as jump:
            return jump.value

    def count(self, node):
        self.all.executed[node.lineno] += 1
        self.statement = node

    def body(self, statements, scope):
        for node in statements:
            yield from getattr(self, type(node).__name__)(node, scope)

    def Pass(self, node, scope):
        yield from ()

    def Expr(self, node, scope):
        self.count(node)
        yield from self.value(node.value, scope)

    def Assign(self, node, scope):
        self.count(node)
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            values = []
            for part in node.value.elts:
                values.append((yield from self.value(part, scope)))
            for name, x in zip(target.elts, values):
                scope[name.id] = x
            return
        if isinstance(target, ast.Name):
            x = yield from self.value(node.value, scope)
            scope[target.id] = x
            if isinstance(x, np.ndarray):
                self.shared.setdefault("names", {})[id(x)] = target.id
            return
        x = yield from self.value(node.value, scope)
        array, index = yield from self.element(target, scope)
        self.note(array, index, "store")
        array[index] = x

    def AugAssign(self, node, scope):
        self.count(node)
        if isinstance(node.target, ast.Name):
            x = yield from self.value(node.value, scope)
            scope[node.target.id] = binary(node.op, scope[node.target.id], x)
            return
        array, index = yield from self.element(node.target, scope)
        self.note(array, index, "load")
        x = yield from self.value(node.value, scope)
        self.note(array, index, "store")
        array[index] = binary(node.op, array[index], x)

    def If(self, node, scope):
        self.count(node)
        chosen = node.body if (yield from self.value(node.test, scope)) else node.orelse
        yield from self.body(chosen, scope)

    def round(self, node, scope):
        """One round of a loop; whether to go on."""
        try:
            yield from self.body(node.body, scope)
        except Jump as jump:
            if jump.kind == "return":
                raise
            return jump.kind == "continue"
        return True

    def While(self, node, scope):
        while True:
            self.count(node)
            if not (yield from self.value(node.test, scope)) or not (yield from self.round(node, scope)):
                return

    def For(self, node, scope):
        bounds = []
        for bound in node.iter.args:
            bounds.append(int((yield from self.value(bound, scope))))
        for k in range(*bounds):
            self.count(node)
            scope[node.target.id] = number(k)
            if not (yield from self.round(node, scope)):
                return
        self.count(node)

    def Break(self, node, scope):
        self.count(node)
        raise Jump("break")
        yield

    def Continue(self, node, scope):
        self.count(node)
        raise Jump("continue")
        yield

    def Return(self, node, scope):
        self.count(node)
        raise Jump("return", (yield from self.value(node.value, scope)) if node.value else None)

    # expressions

    def element(self, node, scope):
        array = yield from self.value(node.value, scope)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = []
        for part in parts:
            index.append(int((yield from self.value(part, scope))))
        assert all(0 <= i < n for i, n in zip(index, array.shape)), "index outside"
        return array, tuple(index)

    def note(self, array, index, kind):
        names = {id(a): p.arg for a, p in zip(self.all.args, self.all.function.args.args)}
        name = names.get(id(array)) or self.shared.get("names", {}).get(id(array), "")
        here = self.block if id(array) not in names else None  # shared arrays of two blocks are two arrays
        self.all.accesses.append(
            ((name, here), index, kind, self.block, self.thread, self.barriers, self.statement.lineno)
        )

    def value(self, node, scope):
        if isinstance(node, ast.Constant):
            return number(node.value)
        if isinstance(node, ast.Name):
            return scope[node.id] if node.id in scope else number(self.all.names[node.id])
        if isinstance(node, ast.Attribute):
            return number(self.indices[node.value.id]["xyz".index(node.attr)])
        if isinstance(node, ast.Subscript):
            array, index = yield from self.element(node, scope)
            self.note(array, index, "load")
            return number(array[index])
        if isinstance(node, ast.BinOp):
            left = yield from self.value(node.left, scope)
            return binary(node.op, left, (yield from self.value(node.right, scope)))
        if isinstance(node, ast.UnaryOp):
            x = yield from self.value(node.operand, scope)
            return {ast.USub: lambda: number(-x), ast.Not: lambda: not x, ast.Invert: lambda: number(~x)}[type(node.op)]()
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                x = bool((yield from self.value(part, scope)))
                if x == isinstance(node.op, ast.Or):
                    return x
            return x
        if isinstance(node, ast.Compare):
            left = yield from self.value(node.left, scope)
            for op, part in zip(node.ops, node.comparators):
                right = yield from self.value(part, scope)
                if not binary(op, left, right):
                    return False
                left = right
            return True
        if isinstance(node, ast.IfExp):
            side = node.body if (yield from self.value(node.test, scope)) else node.orelse
            return (yield from self.value(side, scope))
        return (yield from self.called(node, scope))

    def called(self, node, scope):
        name = node.func.id
        if name in ("shared", "local"):
            where = self.shared if name == "shared" else self.own
            shape, kind = ast.literal_eval(node.args[0]), getattr(np, node.args[1].id)
            return where.setdefault((node.lineno, node.col_offset), np.zeros(shape, kind))
        if name in ATOMICS or name == "atomic_cas":
            array, index = yield from self.element(ast.Subscript(node.args[0], node.args[1], ast.Load()), scope)
            operands = []
            for part in node.args[2:]:
                operands.append((yield from self.value(part, scope)))
            self.note(array, index, "atomic")
            old = number(array[index])
            if name != "atomic_cas":
                array[index] = ATOMICS[name](old, operands[0])
            elif old == operands[0]:
                array[index] = operands[1]
            return old
        values = []
        for part in node.args:
            values.append((yield from self.value(part, scope)))
        if name == "sync_threads":
            return (yield (name,))
        if name in SHUFFLES:
            return (yield (name, values[0], int(values[1]), int(values[2]) if len(values) > 2 else WARP))
        if name in ("min", "max", "abs"):
            return number({"min": min, "max": max, "abs": abs}[name](*values))
        if name in ("int32", "float32"):
            return getattr(np, name)(values[0])
        return (yield from self.call(self.all.names[name], values))


def run(source: str, grid: tuple, block: tuple, args: list, name: str | None = None, **names) -> Run:
    """Run the last function of a source text (or the named one) on copies of nothing: arrays change in place."""
    functions = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)}
    function = functions[name or list(functions)[-1]]
    return Run(function, functions | names, args, grid, block).launch()


def races(run: Run) -> set:
    """(array, frozenset of the two lines) for every pair of accesses that race, found by trying all pairs."""
    by_element: dict = {}
    for array, index, kind, *rest in run.accesses:
        by_element.setdefault((array, index), []).append((kind, *rest))
    found = set()
    for (array, _), list_of in by_element.items():
        for i, (kind, block, thread, epoch, line) in enumerate(list_of):
            for other, block2, thread2, epoch2, line2 in list_of[i + 1 :]:
                apart = (block, thread) != (block2, thread2)
                unordered = block != block2 or epoch == epoch2
                if apart and unordered and {kind, other} not in ({"load"}, {"atomic"}):
                    found.add((array[0], frozenset((line, line2))))
    return found
