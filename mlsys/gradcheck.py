"""Gradient checking: compare a backward pass with slopes measured by small steps.

The slope of f at x is about (f(x + eps) - f(x - eps)) / (2 eps), wrong by a multiple of eps^2
(the curve bends) and by rounding / eps. In float64 eps = 1e-6 leaves about 1e-9 of each; in
float32 rounding would drown the answer, so everything is computed in float64.
The test says nothing at a kink (relu at 0) and costs two evaluations for each number in the
inputs: use it on small arrays.
Lessons: backpropagation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlsys.autograd import Tensor


@dataclass(frozen=True)
class GradReport:
    """Outcome of a gradient check.

    errors: for each input the largest |analytic - numeric|, relative to the largest entry of
    either (at least 1); tolerance: what they may reach.
    """

    errors: tuple[float, ...]
    tolerance: float

    @property
    def ok(self) -> bool:
        return all(error <= self.tolerance for error in self.errors)


def numeric_grad(fn, *arrays, eps: float = 1e-6) -> list[np.ndarray]:
    """Central differences of `fn` with respect to each input, in float64.

    fn: gives a number (a float, an array or tensor with one element). It is called with what
    you hand in here: arrays for arrays, tensors for tensors.

    >>> [g] = numeric_grad(lambda x: (x * x).sum(), np.array([1.0, 3.0]))
    >>> g.round(6)
    array([2., 6.])
    """
    points = [np.array(a.data if isinstance(a, Tensor) else a, np.float64) for a in arrays]
    inputs = [Tensor(p) if isinstance(a, Tensor) else p for a, p in zip(arrays, points, strict=True)]

    def value() -> float:
        out = fn(*inputs)
        return float(np.asarray(out.data if isinstance(out, Tensor) else out).item())

    grads = []
    for point in points:
        grad = np.empty(point.shape)
        for i in np.ndindex(point.shape):
            x = point[i]
            point[i] = x + eps
            above = value()
            point[i] = x - eps
            grad[i] = (above - value()) / (2 * eps)
            point[i] = x
        grads.append(grad)
    return grads


def gradcheck(fn, *arrays, eps: float = 1e-6, tolerance: float = 1e-6, seed: int = 0) -> GradReport:
    """Check backward() of `fn`, a function from tensors to one tensor, at the point `arrays`.

    An output with several numbers is checked through a random weighted sum of them: a wrong
    entry of the Jacobian shows up unless it happens to cancel.

    >>> gradcheck(lambda a, b: a @ b, np.ones((2, 3)), np.ones((3, 2))).ok
    True
    """
    rng = np.random.default_rng(seed)
    leaves = [Tensor(np.array(a, np.float64), requires_grad=True) for a in arrays]
    out = fn(*leaves)
    weights = rng.standard_normal(out.shape)
    out.backward(weights)
    numeric = numeric_grad(lambda *t: (fn(*t).data * weights).sum(), *leaves, eps=eps)
    return GradReport(tuple(_error(t.grad, n) for t, n in zip(leaves, numeric, strict=True)), tolerance)


def _error(analytic: np.ndarray | None, numeric: np.ndarray) -> float:
    if not numeric.size:
        return 0.0
    analytic = np.zeros_like(numeric) if analytic is None else analytic
    scale = max(1.0, float(np.abs(analytic).max()), float(np.abs(numeric).max()))
    error = float(np.abs(analytic - numeric).max()) / scale
    return error if np.isfinite(error) else float("inf")
