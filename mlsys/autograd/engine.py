"""The walk back in time: reverse-mode differentiation.

Every operation on tensors leaves a `Node`: a creation number, the nodes of its inputs, and a
function `vjp` (vector-Jacobian product) that turns the gradient of the loss with respect to
the output into gradients with respect to the inputs. What that function captured is what the
forward pass had to keep.

A value is younger than everything it was made from. So the backward pass keeps the nodes that
have received a gradient, always takes the youngest, and never needs to sort the graph: when a
node's turn comes, everything that used it has already had its own. The node is freed as soon
as its turn is over, and its saved arrays with it.

Two rules keep shared buffers safe. A `vjp` never writes into the gradient that it is given, and
returns new arrays, or that gradient, or views of it: never something that a tensor holds. Where
two gradients meet they are added into a new array; only the gradient of a leaf, which nobody
else holds, is added to in place.

Left out: derivatives of derivatives (a vjp computes with arrays, not with tensors), and a check
that nobody changed a saved array between forward and backward.
Lessons: backpropagation.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
import weakref
from heapq import heappop, heappush

import numpy as np

next_number = itertools.count(1).__next__


class Node:
    """One operation in the graph, filled in by `Tensor._record`.

    number: counts creations; op: its name; vjp: see above; inputs: nodes of the inputs, None for
    a constant; shape: of the output; grad: what has arrived from younger nodes so far.
    """

    __slots__ = ("number", "op", "vjp", "inputs", "shape", "grad")
    home = None  # only a leaf can have one


class Leaf:
    """Where gradients end: a tensor that was not computed, such as a parameter.

    grad: the sum of what has arrived; home: a place that an optimizer has set aside for it, or
    None; owner: weak reference to the tensor.
    """

    __slots__ = ("shape", "grad", "home", "owner")

    def __init__(self, tensor):
        self.shape = tensor.data.shape
        self.grad = self.home = None
        self.owner = weakref.ref(tensor)

    def add(self, g: np.ndarray, fresh: bool) -> None:
        """Add `g` to the gradient. fresh: nobody else holds this array."""
        owner = self.owner()
        if owner is None:  # nobody is left who could read the gradient
            return
        if g.shape != self.shape:
            g = _unbroadcast(g, self.shape)
        if self.grad is not None:
            self.grad += g
        elif self.home is not None:
            self.home[...] = g
            self.grad = self.home
        else:
            self.grad = np.array(g, owner.data.dtype, copy=None if fresh else True)


def claim(node: Node | Leaf, dtype: np.dtype) -> np.ndarray | None:
    """The place where a vjp may write the first gradient of a leaf directly, or None.

    It saves the copy into an optimizer's flat buffer, which for a weight matrix costs
    about as much as the optimizer's step.
    """
    home = node.home
    if home is None or node.grad is not None or home.dtype != dtype:
        return None
    node.grad = home
    return home


def walk_back(root: Node | Leaf, grad: np.ndarray) -> None:
    """Send `grad` from `root` to every leaf that it depends on, freeing the graph on the way."""
    if type(root) is Leaf:
        root.add(grad, fresh=False)
        return
    root.grad = grad
    waiting = [(-root.number, root)]  # a heap: the youngest node is on top
    while waiting:
        node = heappop(waiting)[1]
        g, vjp, inputs = node.grad, node.vjp, node.inputs
        node.grad = node.vjp = None
        node.inputs = ()
        if vjp is None:
            raise RuntimeError(
                f"the graph was already walked: what {node.op!r} had saved is freed. "
                "Compute the loss again before a second backward()."
            )
        for target, arrived in zip(inputs, vjp(g)):  # noqa: B905 (strict costs 0.1 us a node)
            if target is None or arrived is None:
                continue
            if type(target) is Leaf:
                if arrived is not target.grad:  # else the vjp has written into the claimed home
                    target.add(arrived, fresh=arrived is not g and arrived.base is None)
                continue
            if arrived.shape != target.shape:
                arrived = _unbroadcast(arrived, target.shape)
            if target.grad is None:
                target.grad = arrived
                heappush(waiting, (-target.number, target))
            else:
                target.grad = target.grad + arrived


class _Mode(threading.local):
    recording = True


mode = _Mode()  # one flag a thread, so that threads can record and not record side by side


class no_grad:
    """Inside this context operations leave no nodes, and so keep nothing for a backward pass.

    >>> from mlsys.autograd import Tensor
    >>> w = Tensor(2.0, requires_grad=True)
    >>> with no_grad():
    ...     (w * w).requires_grad
    False
    """

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before, mode.recording = mode.recording, False

    def __exit__(self, *_) -> None:
        mode.recording = self.before


@functools.lru_cache(maxsize=256)
def ones(n: int, dtype: np.dtype) -> np.ndarray:
    """A shared vector of ones, read-only: `ones @ matrix` sums columns faster than `sum`."""
    vector = np.ones(n, dtype)
    vector.flags.writeable = False
    return vector


def sum_over(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Sum over `axes` (sorted, not negative); the axes stay with length 1.

    Sums over the first axes or over the last one are products with a vector of ones, five to
    eight times faster than `np.sum` for rows as short as those of a layer.
    """
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    if not axes or not x.size:
        return np.add.reduce(x, axes).reshape(shape)
    n = len(axes)
    if axes[-1] == n - 1 and n < x.ndim:  # the first n axes
        rows = x.reshape(math.prod(x.shape[:n]), -1)
        return ones(len(rows), x.dtype).dot(rows).reshape(shape)
    if n == 1 and axes[0] == x.ndim - 1 > 0:  # the last axis
        return x.reshape(-1, x.shape[-1]).dot(ones(x.shape[-1], x.dtype)).reshape(shape)
    return np.add.reduce(x, axes).reshape(shape)


def _unbroadcast(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The adjoint of broadcasting: sum `g` over the axes along which `shape` was repeated."""
    lead = g.ndim - len(shape)
    grown = (i + lead for i, n in enumerate(shape) if n == 1 and g.shape[i + lead] != 1)
    return sum_over(g, (*range(lead), *grown)).reshape(shape)


def spread(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A new array of `shape` filled with (broadcast) `g`: the adjoint of a sum."""
    out = np.empty(shape, g.dtype)
    out[...] = g
    return out
