"""The parts of a transformer, written with the operators of `mlsys.autograd` only.

This is the path to read: every line is a formula, and gradients follow by themselves. `fused`
has the same functions, each as one operation with its own backward rule, which is the path to train
with. Both give the same numbers up to rounding.
Simplification: the whole matrix of scores is built, (batch, heads, queries, keys) numbers, and
kept for the backward pass. Kernels on GPUs build it block by block and keep none of it.
Lessons: attention and masks, the block and its counts.
"""

from __future__ import annotations

import math

import numpy as np

from mlsys.autograd import Tensor, concat, where

NEVER = -1e30  # a score whose exp is 0; would be -inf in float16, where a row of them gives nan


def linear(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """x @ w + b: (..., d_in), (d_in, d_out), (d_out,) -> (..., d_out)."""
    return x @ w if b is None else x @ w + b


def embedding(table: Tensor, ids: np.ndarray) -> Tensor:
    """Rows of the table: (rows, d), ids (...) -> (..., d)."""
    return table[np.asarray(ids)]


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> Tensor:
    """Each row to mean 0 and variance 1, then scaled and shifted: (..., d) -> (..., d)."""
    x = x - x.mean(-1, keepdims=True)
    return x / ((x * x).mean(-1, keepdims=True) + eps).sqrt() * gamma + beta


def rms_norm(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    """Each row to mean square 1, then scaled; the mean stays: (..., d) -> (..., d).

    >>> rms_norm(Tensor([[3.0, 4.0]]), Tensor([1.0, 1.0]), eps=0.0).data.round(3)
    array([[0.849, 1.131]], dtype=float32)
    """
    return x / ((x * x).mean(-1, keepdims=True) + eps).sqrt() * gamma


def gelu(x: Tensor) -> Tensor:
    """x Phi(x) in its tanh form, as GPT-2 has it."""
    return x * 0.5 * ((math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))).tanh() + 1.0)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, with silu(z) = z sigmoid(z): two (..., d_ff) -> (..., d_ff)."""
    return gate * gate.sigmoid() * up


def rotate(x: Tensor, cos: np.ndarray, sin: np.ndarray) -> Tensor:
    """RoPE: x (..., t, d_head), tables (t, d_head / 2); see `rope`.

    >>> from mlsys.transformer.rope import rope_table
    >>> quarter = np.array([[0.0]]), np.array([[1.0]])  # cosine and sine of 90 degrees
    >>> rotate(Tensor([[1.0, 0.0]]), *quarter).data
    array([[0., 1.]], dtype=float32)
    """
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return concat([a * cos - b * sin, b * cos + a * sin], axis=-1)


def attention_weights(q: Tensor, k: Tensor, mask: np.ndarray | None = None) -> Tensor:
    """softmax(q k^T / sqrt(d_head)) over the keys that the mask allows.

    q: (batch, heads, queries, d_head); k: (batch, heads, keys, d_head); mask: booleans that
    broadcast to the result (batch, heads, queries, keys), True where a query may look.
    A query that may look at nothing has only zeros, and passes no gradient.
    """
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(0, 1, 3, 2)
    if mask is None:
        return scores.softmax()
    weights = where(mask, scores, NEVER).softmax()
    sees = mask.any(-1, keepdims=True)
    return weights if sees.all() else weights * sees


def attention(q: Tensor, k: Tensor, v: Tensor, mask: np.ndarray | None = None) -> Tensor:
    """Every query gets the mean of the values, weighted by `attention_weights`.

    q: (batch, heads, queries, d_head); k, v: (batch, kv_heads, keys, d_head), where each key-value
    head serves heads / kv_heads neighbouring query heads; result: like q.

    >>> q, k = Tensor(np.zeros((1, 1, 1, 2))), Tensor(np.ones((1, 1, 2, 2)))
    >>> attention(q, k, Tensor([[[[0.0, 1.0], [2.0, 3.0]]]])).data  # equal scores: the plain mean
    array([[[[1., 2.]]]])
    """
    group = q.shape[1] // k.shape[1]
    return attention_weights(q, share_heads(k, group), mask) @ share_heads(v, group)


def share_heads(x: Tensor, group: int) -> Tensor:
    """Each head `group` times in a row: (batch, kv_heads, t, d) -> (batch, kv_heads * group, t, d)."""
    if group == 1:
        return x
    batch, kv_heads, t, d = x.shape
    x = x.reshape(batch, kv_heads, 1, t, d).broadcast_to((batch, kv_heads, group, t, d))
    return x.reshape(batch, kv_heads * group, t, d)


def split_heads(qkv: Tensor, heads: int, kv_heads: int, rope=None) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values out of one product, with positions put in.

    qkv: (batch, t, (heads + 2 kv_heads) d_head), queries first, then keys, then values;
    rope: (cosines, sines) for queries and keys, or None; result: (batch, heads or kv_heads, t, d_head).
    """
    batch, t, width = qkv.shape
    x = qkv.reshape(batch, t, heads + 2 * kv_heads, width // (heads + 2 * kv_heads)).transpose(0, 2, 1, 3)
    q, k, v = x[:, :heads], x[:, heads : heads + kv_heads], x[:, heads + kv_heads :]
    return (q, k, v) if rope is None else (rotate(q, *rope), rotate(k, *rope), v)


def merge_heads(x: Tensor) -> Tensor:
    """(batch, heads, t, d_head) -> (batch, t, heads * d_head)."""
    batch, heads, t, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, t, heads * d)


def self_attention(qkv: Tensor, heads: int, kv_heads: int, mask=None, rope=None) -> Tensor:
    """Attention of a sequence to itself, from packed queries, keys and values; see `split_heads`.

    (batch, t, (heads + 2 kv_heads) d_head) -> (batch, t, heads d_head).
    """
    return merge_heads(attention(*split_heads(qkv, heads, kv_heads, rope), mask))


def cross_entropy(logits: Tensor, labels: np.ndarray) -> Tensor:
    """Mean of -log(softmax(logits)[label]): (..., classes), whole numbers (...) -> one number."""
    labels = np.asarray(labels).reshape(-1)
    log_p = logits.reshape(len(labels), logits.shape[-1]).log_softmax()
    return -log_p[np.arange(len(labels)), labels].mean()
