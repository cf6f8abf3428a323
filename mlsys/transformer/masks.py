"""Masks: which token may look at which.

A mask is a boolean array (queries, keys), or (batch, 1, queries, keys) where sequences differ:
True where the query may read the key. Masks combine with `&` and `|`. With a cache the queries
are the newest tokens only; `past` keys lie before them.
Simplification: a mask is stored in full, T x T bytes. Real kernels know a mask by its rule, and skip
the blocks of scores that it empties; `fused` skips them too, `composed` computes and hides them.
Lessons: attention and masks.
"""

from __future__ import annotations

import functools

import numpy as np


@functools.lru_cache(maxsize=32)
def causal_mask(t: int, past: int = 0) -> np.ndarray:
    """A token reads itself and what came before: (t, past + t), read-only.

    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    return _frozen(_distance(t, past) >= 0)


@functools.lru_cache(maxsize=32)
def sliding_mask(t: int, window: int, past: int = 0) -> np.ndarray:
    """A token reads the last `window` tokens, itself included: (t, past + t), read-only.

    >>> sliding_mask(4, window=2).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    distance = _distance(t, past)
    return _frozen((distance >= 0) & (distance < window))


def prefix_mask(t: int, prefix: int) -> np.ndarray:
    """The first `prefix` tokens read each other freely, the rest is causal: (t, t).

    >>> prefix_mask(4, prefix=2).astype(int)
    array([[1, 1, 0, 0],
           [1, 1, 0, 0],
           [1, 1, 1, 0],
           [1, 1, 1, 1]])
    """
    return causal_mask(t) | (np.arange(t) < prefix)


def padding_mask(lengths, t: int) -> np.ndarray:
    """Nobody reads beyond the end of a sequence: lengths (batch,) -> (batch, 1, 1, t).

    To be combined: `causal_mask(t) & padding_mask(lengths, t)`. Tokens in the padding still
    read; leave their outputs out of the loss.

    >>> padding_mask([1, 3], t=3)[:, 0, 0].astype(int)
    array([[1, 0, 0],
           [1, 1, 1]])
    """
    return (np.arange(t) < np.asarray(lengths)[:, None])[:, None, None, :]


def _distance(t: int, past: int) -> np.ndarray:
    """How far the key lies behind the query: (t, past + t)."""
    return np.arange(past, past + t)[:, None] - np.arange(past + t)


def _frozen(mask: np.ndarray) -> np.ndarray:
    mask.flags.writeable = False  # shared by all callers
    return mask
