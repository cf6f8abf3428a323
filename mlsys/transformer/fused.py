"""The parts of a transformer as single operations with backward rules of their own.

The same functions as in `composed`, for training. What makes attention fast here:
- one sample at a time, so that its scores stay in the core's cache from product to product;
- the softmax is divided by its sum only after the product with the values: d_head numbers a row
  instead of one a key;
- the row sums come out of that product too, through a column of ones beside the values, and so
  does the row correction of the backward pass;
- |q| |k| bounds every score, so that row maxima, which cost more than the exp, are taken only
  where exp could overflow.
- with more than 128 tokens, queries go in blocks, and a block skips the keys before the first and
  after the last that its mask allows: half of a causal mask, most of a sliding one.
The exponentials are kept for the backward pass, as many as there are scores that were not skipped.
Lessons: the block and its counts.
"""

from __future__ import annotations

import numpy as np

from mlsys.autograd import Tensor, cross_entropy, embedding, gelu, layer_norm, linear
from mlsys.autograd.engine import claim, ones
from mlsys.transformer.rope import turn

__all__ = ["cross_entropy", "embedding", "gelu", "layer_norm", "linear", "rms_norm", "self_attention", "swiglu"]

BLOCK = 128  # queries
SAFE_SCORE = 40.0  # exp(40) times a row of keys fits into float32, and exp(-40) is far from vanishing


def rms_norm(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * gamma over the last axis. Keeps the normalised rows and a number a row.

    >>> rms_norm(Tensor([[3.0, 4.0]]), Tensor([1.0, 1.0]), eps=0.0).data.round(3)
    array([[0.849, 1.131]], dtype=float32)
    """
    shape, d = x.data.shape, x.data.shape[-1]
    rows, scale, node = x.data.reshape(-1, d), gamma.data, gamma._node
    r = np.vecdot(rows, rows)
    r /= d
    r += eps
    np.sqrt(r, out=r)
    np.divide(1, r, out=r)
    r = r[:, None]
    hat = rows * r

    def vjp(g):
        g = g.reshape(-1, d)
        dhat = g * hat
        dgamma = None if node is None else ones(len(g), g.dtype).dot(dhat, claim(node, g.dtype))
        mean = dhat.dot(scale)
        mean /= d
        dx = g * scale
        np.multiply(hat, mean[:, None], out=dhat)
        dx -= dhat
        dx *= r
        return dx.reshape(shape), dgamma

    return Tensor._record("rms_norm", (hat * scale).reshape(shape), vjp, x._node, node)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up; d silu(z) = (s + silu(z) (1 - s)) dz with s = sigmoid(z). Keeps up, s and silu(gate).

    >>> swiglu(Tensor([0.0, 100.0]), Tensor([5.0, 2.0])).data
    array([  0., 200.], dtype=float32)
    """
    z, u = gate.data, up.data
    s = z * 0.5
    np.tanh(s, out=s)
    s *= 0.5
    s += 0.5  # sigmoid, and no overflow
    silu = z * s

    def vjp(g):
        dz = silu * (1 - s)
        dz += s
        dz *= u
        dz *= g
        return dz, g * silu

    return Tensor._record("swiglu", silu * u, vjp, gate._node, up._node)


def self_attention(qkv: Tensor, heads: int, kv_heads: int, mask=None, rope=None) -> Tensor:
    """Attention of a sequence to itself: (batch, t, (heads + 2 kv_heads) d_head) -> (batch, t, heads d_head).

    qkv: queries, then keys, then values; mask: booleans that broadcast to (batch, heads, t, t), or
    None; rope: (cosines, sines) or None. Rows that may look at nothing give zeros.

    In the comments b, k, g, t, d are batch, kv_heads, query heads for one of these, tokens, d_head; r are
    the g * rows queries of a block, n the keys that it reads.
    """
    shape, dtype = qkv.data.shape, qkv.data.dtype
    batch, t, width = shape
    d, group = width // (heads + 2 * kv_heads), heads // kv_heads
    packed = qkv.data.reshape(batch, t, -1, d)
    if rope is not None:
        packed = np.concatenate([turn(packed[:, :, :-kv_heads], *rope), packed[:, :, -kv_heads:]], axis=2)
    q, k = packed[:, :, :heads] * d**-0.5, packed[:, :, heads:-kv_heads]
    safe = _largest_norm(q) * _largest_norm(k) < SAFE_SCORE
    q, k = _by_head(q, group), k.swapaxes(1, 2)  # (b, k, g, t, d), (b, k, t, d)
    v1 = np.empty((batch, kv_heads, t, d + 1), dtype)  # values, and a column of ones
    v1[..., :d] = packed[:, :, -kv_heads:].swapaxes(1, 2)
    v1[..., d] = 1
    y = np.empty((batch, t, heads, d), dtype)
    y_heads = _by_head(y, group)
    allowed = None if mask is None else _by_sample(mask, batch, kv_heads, t, dtype)
    blocks, queries, exps, inverses = _blocks(mask, t), [], [], []
    for rows, keys in blocks:
        qr = q[:, :, :, rows].reshape(batch, kv_heads, -1, d)  # (b, k, r, d)
        e = np.empty((*qr.shape[:3], keys.stop - keys.start), dtype)  # (b, k, r, n)
        o1 = np.empty((*qr.shape[:3], d + 1), dtype)  # values weighted by e, and sums of e
        for i in range(batch):
            np.matmul(qr[i], k[i, :, keys].swapaxes(-1, -2), out=e[i])
            _exp(e[i].reshape(kv_heads, group, -1, e.shape[-1]), None if allowed is None else allowed[i, ..., rows, keys], safe)
            np.matmul(e[i], v1[i, :, keys], out=o1[i])
        total = o1[..., d:]
        total += total == 0  # a row without keys: 0 / 1
        inverse = np.divide(1, total).reshape(batch, kv_heads, group, -1, 1)
        np.multiply(o1.reshape(*inverse.shape[:4], d + 1)[..., :d], inverse, out=y_heads[:, :, :, rows])
        queries.append(qr)
        exps.append(e)
        inverses.append(inverse)

    def vjp(g):
        dx = np.empty((batch, t, heads + 2 * kv_heads, d), dtype)
        dq, dk, dv = _by_head(dx[:, :, :heads], group), dx[:, :, heads:-kv_heads], dx[:, :, -kv_heads:]
        dk, dv = dk.swapaxes(1, 2), dv.swapaxes(1, 2)
        several = len(blocks) > 1
        if several:
            dx[:, :, heads:] = 0
        g = _by_head(g.reshape(batch, t, heads, d), group)
        for (rows, keys), qr, e, inverse in zip(blocks, queries, exps, inverses, strict=True):
            g1 = np.empty((*qr.shape[:3], d + 1), dtype)  # g / row sums, and the row's correction
            g1_heads = g1.reshape(*inverse.shape[:4], d + 1)
            np.multiply(g[:, :, :, rows], inverse, out=g1_heads[..., :d])
            np.matmul(g1_heads[..., :d] * y_heads[:, :, :, rows], -ones(d, dtype), out=g1_heads[..., d])
            ds, dqr = np.empty(e.shape[1:], dtype), np.empty(qr.shape, dtype)
            for i in range(batch):
                np.matmul(g1[i], v1[i, :, keys].swapaxes(-1, -2), out=ds)
                ds *= e[i]
                np.matmul(ds, k[i, :, keys], out=dqr[i])
                _product(e[i].swapaxes(-1, -2), g1[i, ..., :d], dv[i, :, keys], several)
                _product(ds.swapaxes(-1, -2), qr[i], dk[i, :, keys], several)
            np.multiply(dqr.reshape(*inverse.shape[:4], d), d**-0.5, out=dq[:, :, :, rows])
        if rope is not None:
            cos, sin = rope
            dx[:, :, :-kv_heads] = turn(dx[:, :, :-kv_heads], cos, -sin)
        return (dx.reshape(shape),)

    return Tensor._record("self_attention", y.reshape(batch, t, heads * d), vjp, qkv._node)


def _by_head(x: np.ndarray, group: int) -> np.ndarray:
    """A view: (b, t, k * group, d) -> (b, k, group, t, d)."""
    batch, t, heads, d = x.shape
    return x.reshape(batch, t, heads // group, group, d).transpose(0, 2, 3, 1, 4)


def _largest_norm(x: np.ndarray) -> float:
    """The largest length of a vector on the last axis."""
    return float(np.vecdot(x, x).max(initial=0.0)) ** 0.5


def _by_sample(mask: np.ndarray, batch: int, kv_heads: int, t: int, dtype) -> np.ndarray:
    """The mask as numbers 0 and 1, which are multiplied in: (b, k or 1, g or 1, t, t)."""
    mask = np.asarray(mask, dtype)
    mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    split = (1, 1) if mask.shape[1] == 1 else (kv_heads, mask.shape[1] // kv_heads)
    return np.broadcast_to(mask.reshape(len(mask), *split, *mask.shape[2:]), (batch, *split, t, t))


def _blocks(mask: np.ndarray | None, t: int) -> list[tuple[slice, slice]]:
    """(queries, keys) slices: blocks of queries, with the stretch of keys that any of them may read.

    >>> _blocks(np.tri(256, dtype=bool), 256)
    [(slice(0, 128, None), slice(0, 128, None)), (slice(128, 256, None), slice(0, 256, None))]
    """
    if mask is None or t <= BLOCK:
        return [(slice(0, t), slice(0, t))]
    read = np.broadcast_to(mask.any(tuple(range(mask.ndim - 2))), (t, t))
    blocks = []
    for start in range(0, t, BLOCK):
        rows = slice(start, min(start + BLOCK, t))
        keys = np.flatnonzero(read[rows].any(0)).tolist() or [0]
        blocks.append((rows, slice(keys[0], keys[-1] + 1)))
    return blocks


def _exp(scores: np.ndarray, allowed: np.ndarray | None, safe: bool) -> None:
    """In place: exp of the scores where allowed, else 0, up to a factor a row."""
    if not safe:
        peaks = scores if allowed is None else np.where(allowed > 0, scores, -np.inf)
        peaks = peaks.max(-1, keepdims=True)
        peaks[peaks == -np.inf] = 0
        scores -= peaks
        np.minimum(scores, 0, out=scores)  # forbidden ones may lie above the peak
    np.exp(scores, out=scores)
    if allowed is not None:
        scores *= allowed


def _product(a: np.ndarray, b: np.ndarray, out: np.ndarray, add: bool) -> None:
    """out = a @ b, or out += a @ b."""
    if add:
        out += np.matmul(a, b)
    else:
        np.matmul(a, b, out=out)
