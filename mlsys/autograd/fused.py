"""Operations written as one node for speed: linear, cross-entropy, layer norm, GELU and more.

Each could be composed from the operators of `arithmetic`, `elementwise` and `reductions`, and
the tests compare with just that. One node instead of six keeps fewer arrays, and passes over
them fewer times.
Lessons: backpropagation.
"""

from __future__ import annotations

import math

import numpy as np

from mlsys.autograd.arithmetic import operand
from mlsys.autograd.engine import claim, ones
from mlsys.autograd.reductions import exp_and_sum
from mlsys.autograd.shapes import add_into_rows
from mlsys.autograd.tensor import Tensor


def linear(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """x @ w + b over the last axis of x: (..., d_in), (d_in, d_out), (d_out,) -> (..., d_out).

    x may be an array. Keeps x and w: dx = g @ w.T, dw = x.T @ g, db = column sums of g. If x
    wants no gradient (the data itself), the first of these products is saved.

    >>> linear([[1.0, 2.0]], Tensor([[3.0], [4.0]]), Tensor([0.5])).data
    array([[11.5]], dtype=float32)
    """
    wd, wn = w.data, w._node
    xd, xn = (x.data, x._node) if isinstance(x, Tensor) else operand(x, wd.dtype)
    shape = xd.shape
    if shape[-1] != wd.shape[0]:
        raise ValueError(f"linear: x of shape {shape} does not fit w of shape {wd.shape}")
    rows = xd if xd.ndim == 2 else xd.reshape(-1, shape[-1])
    y = rows.dot(wd)
    bn = None
    if b is not None:
        bn = b._node
        y += b.data
    if xn is None:
        wd = None
    if wn is None:
        rows = None

    def vjp(g):
        g = g if g.ndim == 2 else g.reshape(-1, g.shape[-1])
        dw = None if rows is None else rows.T.dot(g, claim(wn, g.dtype))
        db = None if bn is None else ones(len(g), g.dtype).dot(g, claim(bn, g.dtype))
        dx = None if wd is None else g.dot(wd.T)
        return (dx if dx is None or len(shape) == 2 else dx.reshape(shape)), dw, db

    if len(shape) != 2:
        y = y.reshape(*shape[:-1], y.shape[-1])
    return Tensor._record("linear", y, vjp, xn, wn, bn)


def cross_entropy(logits: Tensor, labels: np.ndarray) -> Tensor:
    """Mean over rows of -log(softmax(logits)[label]).

    logits: (..., classes); labels: whole numbers, one a row. The gradient of a row is
    (softmax - one-hot) / rows. Keeps the exponentials, as many as there are logits, and their row sums.

    >>> round(cross_entropy(Tensor([[0.0, 0.0], [5.0, 5.0]]), [0, 1]).item(), 4)  # log 2
    0.6931
    """
    labels = np.asarray(labels)
    z = logits.data
    classes = z.shape[-1]
    if labels.dtype.kind not in "iu" or labels.shape != z.shape[:-1]:
        raise ValueError(
            f"cross_entropy: logits of shape {z.shape} need whole-number labels of shape {z.shape[:-1]}, "
            f"not {labels.dtype} of shape {labels.shape}"
        )
    labels = labels.reshape(-1)
    z = z.reshape(-1, classes)
    n = len(z)
    if n and (labels.min() < 0 or labels.max() >= classes):
        raise ValueError(f"cross_entropy: labels from {labels.min()} to {labels.max()} for {classes} classes")
    e, s, shift = exp_and_sum(z, 1)
    loss = np.log(s)
    loss += shift
    loss = (np.add.reduce(loss, None) - np.add.reduce(z[np.arange(n), labels])) / n
    shape = logits.data.shape

    def vjp(g):
        g = g / n
        np.multiply(e, g / s, out=e)  # ours alone, and this runs once
        e[np.arange(n), labels] -= g
        return (e.reshape(shape),)

    return Tensor._record("cross_entropy", loss, vjp, logits._node)


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """See `Tensor.softmax`."""
    return x.softmax(axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """See `Tensor.log_softmax`."""
    return x.log_softmax(axis)


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * gamma + beta over the last axis: (..., d), (d,), (d,).

    The variance divides by d. Keeps the normalised rows and one number a row.

    >>> layer_norm(Tensor([[1.0, 3.0]]), Tensor([1.0, 1.0]), Tensor([0.0, 0.0]), eps=0.0).data
    array([[-1.,  1.]], dtype=float32)
    """
    shape, d = x.data.shape, x.data.shape[-1]
    rows = x.data.reshape(-1, d)
    one, scale = ones(d, rows.dtype), gamma.data
    mean = rows.dot(one)
    mean /= d
    hat = rows - mean[:, None]
    r = np.vecdot(hat, hat)
    r /= d
    r += eps
    np.sqrt(r, out=r)
    np.divide(1, r, out=r)
    r = r[:, None]
    hat *= r
    y = hat * scale
    y += beta.data
    gn, bn = gamma._node, beta._node

    def vjp(g):
        g = g.reshape(-1, d)
        dhat = g * hat
        row_ones = ones(len(g), g.dtype)
        dgamma = None if gn is None else row_ones.dot(dhat, claim(gn, g.dtype))
        dbeta = None if bn is None else row_ones.dot(g, claim(bn, g.dtype))
        # row means of g*gamma and of g*gamma*hat, as products with gamma
        m1 = g.dot(scale)
        m1 /= d
        m2 = dhat.dot(scale)
        m2 /= d
        dx = g * scale
        dx -= m1[:, None]
        np.multiply(hat, m2[:, None], out=dhat)
        dx -= dhat
        dx *= r
        return dx.reshape(shape), dgamma, dbeta

    return Tensor._record("layer_norm", y.reshape(shape), vjp, x._node, gn, bn)


GELU_A, GELU_B = math.sqrt(2 / math.pi), 0.044715
CHUNK = 48 * 1024  # elements; the handful of arrays of this size stays in a core's L2 cache


def gelu(x: Tensor) -> Tensor:
    """x Phi(x), the normal distribution's cdf approximated by (1 + tanh(a (x + b x^3))) / 2.

    With s = (1 + tanh(...)) / 2 the derivative is s + x s (1 - s) 2a (1 + 3 b x^2). It is computed
    beside the value, one cache-sized chunk after another, and kept instead of the input.

    >>> gelu(Tensor([-1.0, 0.0, 1.0])).data.round(4)
    array([-0.1588,  0.    ,  0.8412], dtype=float32)
    """
    u = np.ascontiguousarray(x.data)
    y, slope = np.empty_like(u), np.empty_like(u)
    for start in range(0, u.size, CHUNK):
        part = slice(start, start + CHUNK)
        _gelu(u.reshape(-1)[part], y.reshape(-1)[part], slope.reshape(-1)[part])
    return Tensor._record("gelu", y, lambda g: (g * slope,), x._node)


def _gelu(u: np.ndarray, y: np.ndarray, slope: np.ndarray) -> None:
    """Write GELU(u) into `y` and its derivative into `slope`, in 13 passes over cached arrays."""
    square = u * u
    s = square * (GELU_A * GELU_B)
    s += GELU_A
    s *= u
    np.tanh(s, out=s)
    s *= 0.5
    s += 0.5
    np.multiply(u, s, out=y)
    square *= 6 * GELU_A * GELU_B
    square += 2 * GELU_A
    square *= y
    np.subtract(1, s, out=slope)
    slope *= square
    slope += s


def embedding(table: Tensor, ids: np.ndarray) -> Tensor:
    """Rows of `table` (rows, d) chosen by the whole numbers `ids` (...): (..., d).

    The way back adds each gradient into its row.

    >>> embedding(Tensor([[1.0, 2.0], [3.0, 4.0]]), [1, 1]).data
    array([[3., 4.],
           [3., 4.]], dtype=float32)
    """
    ids = np.asarray(ids)
    rows = len(table.data)
    if ids.dtype.kind not in "iu" or (ids.size and (ids.min() < 0 or ids.max() >= rows)):
        raise ValueError(f"embedding: ids must be whole numbers from 0 to {rows - 1}, not {ids.dtype} {ids}")
    shape, node = table.data.shape, table._node

    def vjp(g):
        return (add_into_rows(shape, ids.reshape(-1), g.reshape(ids.size, -1), claim(node, g.dtype)),)

    return Tensor._record("embedding", table.data[ids], vjp, node)


def mse_loss(prediction: Tensor, target) -> Tensor:
    """Mean of (prediction - target)^2 over all elements; target: an array of the same shape.

    >>> mse_loss(Tensor([1.0, 2.0]), [1.0, 4.0]).item()
    2.0
    """
    t, tn = operand(target, prediction.data.dtype)
    if np.shape(t) != prediction.data.shape:
        raise ValueError(f"mse_loss: prediction {prediction.data.shape} and target {np.shape(t)} differ in shape")
    difference = prediction.data - t
    n = difference.size
    loss = np.vdot(difference, difference) / n

    def vjp(g):
        d = difference * (g * (2 / n))
        return d, (None if tn is None else -d)

    return Tensor._record("mse_loss", loss, vjp, prediction._node, tn)
