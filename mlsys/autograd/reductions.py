"""Reductions: sum, mean, max, and softmax, which divides by a sum.

The adjoint of a sum is a repeat: each summand gets the gradient of the total.
Lessons: tensors, backpropagation.
"""

from __future__ import annotations

import numpy as np

from mlsys.autograd.engine import spread, sum_over

SAFE_EXPONENT = 60.0  # e**60 = 1e26: a row of a million such terms still fits into float32
SAFE_SUM = 1e-25  # a row sum above this has lost no term that would matter in float32


def axes_of(axis, ndim: int) -> tuple[int, ...]:
    """`axis` (None, a number or a tuple) as a sorted tuple of numbers from 0 to ndim - 1."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(sorted(a % ndim if -ndim <= a < ndim else a for a in np.atleast_1d(axis).tolist()))
    if len(set(axes)) < len(axes) or any(a < 0 or a >= ndim for a in axes):
        raise ValueError(f"axis={axis} does not fit a tensor of {ndim} dimensions")
    return axes


def exp_and_sum(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | float]:
    """(e, s, shift) with e = exp(x - shift) and s its sums along `axis`, kept as length 1.

    Subtracting each row's maximum keeps exp from overflowing, but row maxima cost more than the
    exp itself. They are taken only if some x is large or some row sums to nearly nothing.
    """
    if x.itemsize > 2 and x.size and np.maximum.reduce(x, None) < SAFE_EXPONENT:
        e = np.exp(x)
        s = sum_over(e, (axis,))
        if np.minimum.reduce(s, None) > SAFE_SUM:
            return e, s, 0.0
    shift = np.maximum.reduce(x, axis, keepdims=True)
    e = np.exp(x - shift)
    return e, sum_over(e, (axis,)), shift


def filled(shape: tuple[int, ...], g: np.ndarray, n: int) -> np.ndarray:
    """A new array with the single number g / n everywhere."""
    out = np.empty(shape, g.dtype)
    out.fill(g.item() / n)
    return out


class Reductions:
    """sum mean max softmax log_softmax of a tensor."""

    __slots__ = ()

    def sum(self, axis=None, keepdims: bool = False):
        """Every element gets the gradient of the sum that it went into."""
        return self._total("sum", axis, keepdims)

    def mean(self, axis=None, keepdims: bool = False):
        """Sum divided by the number of elements n that went into it; dx = dy / n."""
        return self._total("mean", axis, keepdims)

    def _total(self, op: str, axis, keepdims: bool):
        x = self.data
        shape = x.shape
        if axis is None and not keepdims:
            n = x.size if op == "mean" else 1
            return self._record(op, np.add.reduce(x, None) / n, lambda g: (filled(shape, g, n),), self._node)
        axes = axes_of(axis, x.ndim)
        y = sum_over(x, axes)
        kept = y.shape
        n = x.size // y.size if op == "mean" and y.size else 1
        if n != 1:
            y /= n
        if not keepdims:
            y = y.reshape([m for i, m in enumerate(kept) if i not in axes])
        return self._record(op, y, lambda g: (spread(g.reshape(kept) / n, shape),), self._node)

    def max(self, axis=None, keepdims: bool = False):
        """The gradient goes to the largest element; equal ones share it."""
        x, axes = self.data, axes_of(axis, self.data.ndim)
        y = np.maximum.reduce(x, axes, keepdims=True)

        def vjp(g):
            hit = (x == y).astype(g.dtype)
            return (hit * (g.reshape(y.shape) / np.add.reduce(hit, axes, keepdims=True)),)

        data = y if keepdims else y.reshape([m for a, m in enumerate(x.shape) if a not in axes])
        return self._record("max", data, vjp, self._node)

    def softmax(self, axis: int = -1):
        """y = exp(x) / sum(exp(x)) along `axis`; dx = y (dy - sum(dy y)).

        >>> from mlsys.autograd import Tensor
        >>> Tensor([0.0, 0.0, 1000.0]).softmax().data
        array([0., 0., 1.], dtype=float32)
        """
        (axis,) = axes_of(axis, self.data.ndim)
        y, s, _ = exp_and_sum(self.data, axis)
        np.divide(y, s, out=y)

        def vjp(g):
            dx = g * y
            dx -= y * sum_over(dx, (axis,))
            return (dx,)

        return self._record("softmax", y, vjp, self._node)

    def log_softmax(self, axis: int = -1):
        """y = x - log(sum(exp(x))) along `axis`; dx = dy - exp(y) sum(dy)."""
        (axis,) = axes_of(axis, self.data.ndim)
        _, s, shift = exp_and_sum(self.data, axis)
        y = self.data - (np.log(s) + shift)
        return self._record("log_softmax", y, lambda g: (g - np.exp(y) * sum_over(g, (axis,)),), self._node)
