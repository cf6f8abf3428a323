"""Joins: several tensors become one, and the gradient is cut the same way.

Lessons: backpropagation.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from mlsys.autograd.arithmetic import operand
from mlsys.autograd.tensor import Tensor


def concat(tensors, axis: int = 0) -> Tensor:
    """Tensors one after another along an axis that they have; each gets its part of the gradient.

    >>> concat([Tensor([1.0]), Tensor([2.0, 3.0])]).data
    array([1., 2., 3.], dtype=float32)
    """
    arrays, nodes = _operands(tensors)
    cuts = list(accumulate(a.shape[axis] for a in arrays[:-1]))
    data = np.concatenate(arrays, axis)
    return Tensor._record("concat", data, lambda g: np.split(g, cuts, axis), *nodes)


def stack(tensors, axis: int = 0) -> Tensor:
    """Tensors of one shape beside each other along a new axis.

    >>> stack([Tensor([1.0, 2.0]), Tensor([3.0, 4.0])], axis=1).data
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    arrays, nodes = _operands(tensors)
    return Tensor._record("stack", np.stack(arrays, axis), lambda g: np.moveaxis(g, axis, 0), *nodes)


def where(mask, a, b) -> Tensor:
    """a where the boolean array `mask` holds, b elsewhere (they broadcast); constants are fine.

    >>> where(np.array([True, False]), Tensor([1.0, 2.0]), 0.0).data
    array([1., 0.], dtype=float32)
    """
    mask = np.asarray(mask, bool)
    tensor = a if isinstance(a, Tensor) else b
    if not isinstance(tensor, Tensor):
        raise TypeError("where(mask, a, b) needs a tensor as a or b")
    (x, xn), (y, yn) = operand(a, tensor.data.dtype), operand(b, tensor.data.dtype)
    data = np.where(mask, x, y).astype(np.result_type(tensor.data, x, y), copy=False)

    def vjp(g):
        return (None if xn is None else g * mask), (None if yn is None else g * ~mask)

    return Tensor._record("where", data, vjp, xn, yn)


def _operands(tensors) -> tuple[list[np.ndarray], list]:
    """Arrays and nodes; constants take the type of the first tensor."""
    tensors = list(tensors)
    dtype = next((t.data.dtype for t in tensors if isinstance(t, Tensor)), np.float32)
    arrays, nodes = zip(*(operand(t, dtype) for t in tensors), strict=True)
    return [np.asarray(a) for a in arrays], list(nodes)
