"""The language of programs for a memory with two levels: one line, one step.

    q = Q[0:64]                      load 64 rows of the array Q in HBM into the buffer q
    s = q @ k.T * 0.125              compute in SRAM; any arithmetic, at most one product
    peak = maximum(peak, rowmax(s))
    O[0:64] = out / total            store
    free(k, v)                       give space back
    kernel(softmax)                  a new kernel begins with an empty SRAM

Everything is a matrix; a matrix with one row or one column stretches, as in NumPy. A product takes buffers, plain or
turned (`.T`), and its result goes into a buffer, is added to one or is stored, as matrix units do it: an intermediate result
that nobody counts would make every limit worthless. Sums, quotients and exponentials run in registers and are free of space.
A program is text, so it can be printed, counted and run again by somebody who does not trust the one who wrote it.
Lessons: fusion and IO-aware kernels.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

LONGEST_LINE = 300
LARGEST = 10**9  # row, column or size
EACH_STEP = 1_000  # numbers that a part of an expression counts as, beside its own, toward the limit on programs
ELEMENTWISE = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "maximum": np.maximum}
ROWWISE = {"rowmax": np.max, "rowsum": np.sum}
OPERATORS = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}
KNOWN = "exp, log, sqrt, tanh, maximum, rowmax, rowsum, causal, full"


class SramError(ValueError):
    """A step that the machine refuses. The text names the line."""


class SramFull(SramError):
    """A step needs more space than SRAM has left."""


class NoSuchArray(SramError):
    """A step names an array that does not exist in HBM."""


@dataclass(frozen=True)
class Step:
    """One parsed line. kind: load, store, set, free or kernel; target: buffer or array; rows, columns: (first, last)."""

    kind: str
    target: str
    source: str | ast.expr | tuple[str, ...] = ""
    rows: tuple[int, int | None] = (0, None)
    columns: tuple[int, int | None] = (0, None)


@lru_cache(maxsize=4096)
def parse(line: str) -> Step:
    """A line as a step; raises SramError if it is none.

    >>> parse("k = K[64:128]")
    Step(kind='load', target='k', source='K', rows=(64, 128), columns=(0, None))
    >>> parse("free(k, v)").source
    ('k', 'v')
    """
    if len(line) > LONGEST_LINE:
        raise SramError(f"a line is text of at most {LONGEST_LINE} characters")
    try:
        (node,) = ast.parse(line.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SramError("this is no step: a line is `buffer = ...`, `ARRAY[first:last] = ...`, free(...) or kernel(...)") from None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            if isinstance(node.value, ast.Subscript):
                return Step("load", target.id, *_place(node.value))
            return Step("set", target.id, node.value)
        if isinstance(target, ast.Subscript):
            array, rows, columns = _place(target)
            return Step("store", array, node.value, rows, columns)
    call = getattr(node, "value", None)
    if isinstance(node, ast.Expr) and isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords:
        names = tuple(getattr(arg, "id", "") for arg in call.args)
        if all(names) and (call.func.id == "free" and names or call.func.id == "kernel" and len(names) == 1):
            return Step(call.func.id, names[0], names)
    raise SramError("this is no step: a line is `buffer = ...`, `ARRAY[first:last] = ...`, free(...) or kernel(...)")


def _place(node: ast.Subscript) -> tuple[str, tuple, tuple]:
    """Array, rows and columns of `A[0:64]` or `A[0:64, 32:64]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not isinstance(node.value, ast.Name) or len(parts) > 2 or not all(isinstance(p, ast.Slice) and p.step is None for p in parts):
        raise SramError("an array in HBM is read and written in ranges: ARRAY[first:last] or ARRAY[first:last, first:last]")
    ends = []
    for part in parts:
        first = 0 if part.lower is None else _whole(part.lower)
        last = None if part.upper is None else _whole(part.upper)
        if last is not None and last <= first:
            raise SramError(f"the range {first}:{last} is empty")
        ends.append((first, last))
    return node.value.id, ends[0], ends[1] if len(ends) == 2 else (0, None)


def _whole(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value <= LARGEST:
        return node.value
    raise SramError(f"`{ast.unparse(node)}` is no whole number from 0 to {LARGEST:,}")


def some(names) -> str:
    """Names for a message, the first eight of them.

    >>> some(["q", "k"]), some([]), some("abcdefghij")
    ('q, k', 'none', 'a, b, c, d, e, f, g, h and 2 more')
    """
    shown = [str(name)[:40] for name in names]
    return (", ".join(shown[:8]) or "none") + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")


class Evaluation:
    """The value of one expression over buffers, and what it took to compute.

    room: numbers that an intermediate result may have. Counts matmul_flops and vector_flops, one for each number that an
    operation gives (an exponential counts as one); and `made`, what counts beside these toward the limit on programs.
    """

    def __init__(self, buffers: dict[str, np.ndarray], room: int):
        self.buffers, self.room = buffers, room
        self.matmul_flops = self.vector_flops = self.made = 0
        self.in_product: set[str] = set()  # buffers that the product reads

    def value(self, node: ast.expr, in_row: bool = False) -> np.ndarray:
        """A matrix. in_row: whether this stands inside rowmax or rowsum."""
        self.made += EACH_STEP
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return np.full((1, 1), float(node.value))
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._buffer(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self.value(node.operand, in_row)
            self.made += inner.size
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return self._product(node, in_row)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return self._count(OPERATORS[type(node.op)], self.value(node.left, in_row), self.value(node.right, in_row))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self._call(node, in_row)
        if isinstance(node, ast.Subscript):
            raise SramError(f"`{ast.unparse(node)}` stands in an expression; load it into a buffer first, on a line of its own")
        raise SramError(f"`{ast.unparse(node)}` is not known here; there is + - * / @ .T, numbers, buffers and {KNOWN}")

    def _buffer(self, node: ast.Name | ast.Attribute) -> np.ndarray:
        turned = isinstance(node, ast.Attribute)
        if turned and (node.attr != "T" or not isinstance(node.value, ast.Name)):
            raise SramError(f"`{ast.unparse(node)}` is not known here; only a buffer can be turned, as in k.T")
        name = node.value.id if turned else node.id
        if name == "inf" and not turned:
            return np.full((1, 1), math.inf)
        if name not in self.buffers:
            raise SramError(f"there is no buffer {name} in SRAM; it has {some(self.buffers)}")
        return self.buffers[name].T if turned else self.buffers[name]

    def _product(self, node: ast.BinOp, in_row: bool) -> np.ndarray:
        if in_row:
            raise SramError("the result of a product has to lie in a buffer before its rows can be reduced")
        if self.in_product:
            raise SramError("a line can hold one product; put the first one's result into a buffer")
        for side in (node.left, node.right):
            inner = side.value if isinstance(side, ast.Attribute) else side
            if not isinstance(inner, ast.Name):
                raise SramError(f"a product takes buffers, and `{ast.unparse(side)}` is none; bracket `a @ b`, or make a buffer")
            self.in_product.add(inner.id)
        a, b = self._buffer(node.left), self._buffer(node.right)
        if a.shape[1] != b.shape[0]:
            raise SramError(f"`{ast.unparse(node)}` multiplies shapes {a.shape} and {b.shape}")
        self._fits(a.shape[0] * b.shape[1], node)
        self.matmul_flops += 2 * a.shape[0] * a.shape[1] * b.shape[1]
        with np.errstate(all="ignore"):
            return a @ b

    def _call(self, node: ast.Call, in_row: bool) -> np.ndarray:
        name, count = node.func.id, len(node.args)
        if name == "full" and count == 3:
            shape = _whole(node.args[0]), _whole(node.args[1])
            if min(shape) < 1:
                raise SramError(f"`{ast.unparse(node)}` holds no number")
            self._fits(shape[0] * shape[1], node)
            self.made += shape[0] * shape[1]
            value = self.value(node.args[2])
            if value.size != 1:
                raise SramError(f"`{ast.unparse(node)}`: the third argument is one number")
            return np.full(shape, value[0, 0])
        if name == "causal" and count == 3:
            scores, query, key = self.value(node.args[0], in_row), _whole(node.args[1]), _whole(node.args[2])
            rows, columns = np.ogrid[: scores.shape[0], : scores.shape[1]]
            self.vector_flops += scores.size
            return np.where(query + rows >= key + columns, scores, -math.inf)
        if name in ROWWISE and count == 1:
            inner = self.value(node.args[0], True)
            self.vector_flops += inner.size
            return ROWWISE[name](inner, axis=1, keepdims=True)
        if name in ELEMENTWISE and count == (2 if name == "maximum" else 1):
            return self._count(ELEMENTWISE[name], *(self.value(arg, in_row) for arg in node.args))
        raise SramError(f"`{ast.unparse(node)}` is not known here; there is {KNOWN}")

    def _count(self, operation, *parts: np.ndarray) -> np.ndarray:
        shapes = [part.shape for part in parts]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            raise SramError(f"shapes {shapes[0]} and {shapes[1]} do not go together") from None
        self._fits(shape[0] * shape[1], None)
        self.vector_flops += shape[0] * shape[1]
        with np.errstate(all="ignore"):
            return operation(*parts)

    def _fits(self, size: int, node: ast.expr | None) -> None:
        if size > self.room:
            what = f"`{ast.unparse(node)}`" if node is not None else "an intermediate result"
            raise SramFull(f"{what} has {size:,} numbers; all of SRAM holds {self.room:,}")
