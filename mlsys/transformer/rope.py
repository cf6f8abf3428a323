"""Rotary positions (RoPE): turn queries and keys by an angle that grows with their position.

The numbers of a head are taken in pairs; pair i of a token at position p is turned by
p * base**(-2i / d_head). A scalar product of two turned vectors depends on the difference of
their positions only, so scores know distances without a table of positions.
Here number i is paired with number i + d_head/2, as Llama's checkpoints in the Hugging Face form
have it; the paper pairs neighbours. The two differ by the order of columns in the weights.
Left out: the frequency scaling of long-context models.
Lessons: attention and masks.
"""

from __future__ import annotations

import functools

import numpy as np


@functools.lru_cache(maxsize=32)
def rope_table(t: int, d_head: int, base: float = 10_000.0, start: int = 0, dtype="float32"):
    """(cosines, sines) of the angles at positions start .. start + t - 1, each (t, d_head / 2), read-only.

    >>> cos, sin = rope_table(2, d_head=4)
    >>> sin.round(4)
    array([[0.    , 0.    ],
           [0.8415, 0.01  ]], dtype=float32)
    """
    speed = base ** (-np.arange(0, d_head, 2) / d_head)  # radians a token, in float64: positions are large
    angle = np.arange(start, start + t)[:, None] * speed
    table = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
    for part in table:
        part.flags.writeable = False
    return table


def turn(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """The array x (..., t, heads, d_head) with every pair turned; `-sin` turns it back."""
    cos, sin = cos[:, None], sin[:, None]
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    out = np.empty(x.shape, x.dtype)
    np.multiply(a, cos, out=out[..., :half])
    out[..., :half] -= b * sin
    np.multiply(b, cos, out=out[..., half:])
    out[..., half:] += a * sin
    return out
