"""Functions of one number, applied to every element of a tensor.

Each gives the derivative in terms of whatever is cheaper to keep: exp, tanh, sqrt, relu and
sigmoid read their own output, which the next operation often keeps anyway; log and abs read
their input.
Lessons: backpropagation.
"""

from __future__ import annotations

import numpy as np

ZERO = np.zeros((), np.float32)  # an array starts a ufunc faster than the number 0


class Elementwise:
    """exp log sqrt tanh sigmoid relu abs of a tensor."""

    __slots__ = ()

    def exp(self):
        """dy = y dx."""
        y = np.exp(self.data)
        return self._record("exp", y, lambda g: (g * y,), self._node)

    def log(self):
        """dy = dx / x."""
        x = self.data
        return self._record("log", np.log(x), lambda g: (g / x,), self._node)

    def sqrt(self):
        """dy = dx / (2 y)."""
        y = np.sqrt(self.data)
        return self._record("sqrt", y, lambda g: (g * 0.5 / y,), self._node)

    def tanh(self):
        """dy = (1 - y y) dx."""
        y = np.tanh(self.data)
        return self._record("tanh", y, lambda g: (g * (1 - y * y),), self._node)

    def sigmoid(self):
        """1 / (1 + exp(-x)) = (1 + tanh(x/2)) / 2, which cannot overflow; dy = y (1 - y) dx."""
        y = np.tanh(self.data * 0.5) * 0.5 + 0.5
        return self._record("sigmoid", y, lambda g: (g * (y * (1 - y)),), self._node)

    def relu(self):
        """max(x, 0); dy = dx where x > 0, and 0 at x = 0.

        >>> from mlsys.autograd import Tensor
        >>> x = Tensor([-1.0, 0.0, 2.0], requires_grad=True)
        >>> x.relu().sum().backward()
        >>> x.grad
        array([0., 0., 1.], dtype=float32)
        """
        x = self.data
        y = np.maximum(x, ZERO if x.itemsize >= 4 else 0)  # ZERO would widen float16
        return self._record("relu", y, lambda g: (g * (y > ZERO).astype(g.dtype),), self._node)

    def abs(self):
        """dy = sign(x) dx, and 0 at x = 0."""
        x = self.data
        return self._record("abs", np.abs(x), lambda g: (g * np.sign(x),), self._node)

    __abs__ = abs
