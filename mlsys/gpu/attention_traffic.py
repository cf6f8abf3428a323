"""What attention moves: closed forms for bytes between HBM and SRAM, and the FLOPs beside them.

Three ways to compute softmax(Q K' c) V for n tokens and heads of d numbers:
  naive       three kernels: scores to HBM, softmax there and back, weights times V
  by queries  a block of queries stays in SRAM, all keys and values stream past it (FlashAttention-2)
  by keys     a block of keys and values stays, queries and unfinished outputs stream past (FlashAttention, 2022)
With `rows` queries or `cols` keys in a block, streaming costs n / rows or n / cols passes. SRAM of M numbers holds about
M / 2d rows, so both tiled orders move about n^2 d^2 / M numbers; naive attention moves n^2 and more.
Equal, to the byte, to what `sram.run` counts for such programs. Left out: the L2 cache, which serves many of the
repeated reads, so these are upper bounds of HBM's traffic; masks other than causal, and dropout.
Lessons: fusion and IO-aware kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .roofline import Work

COLUMNS = 4  # numbers kept for each query beside its output: maximum, sum, and a spare copy of both while they change


@dataclass(frozen=True)
class Attention:
    """n tokens; d numbers a head; heads: of all samples together; itemsize: bytes of a number, in both levels."""

    n: int
    d: int
    causal: bool = False
    heads: int = 1
    itemsize: int = 2

    def __post_init__(self):
        for name in ("n", "d", "heads", "itemsize"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} is below 1")

    @property
    def floor_bytes(self) -> int:
        """Q, K and V read once, the output written once: no program moves less.

        >>> Attention(1024, 64).floor_bytes
        524288
        """
        return 4 * self.n * self.d * self.heads * self.itemsize

    @property
    def scores_bytes(self) -> int:
        """One matrix of scores, n x n for each head."""
        return self.n**2 * self.heads * self.itemsize


def blocks(n: int, size: int) -> list[tuple[int, int]]:
    """(first, last) of each block of so many rows; the last one may be shorter.

    >>> blocks(10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    if size < 1:
        raise ValueError(f"a block of {size} rows")
    return [(first, min(first + size, n)) for first in range(0, n, size)]


def visits(shape: Attention, rows: int, cols: int) -> list[tuple[int, int, int, int]]:
    """Pairs of blocks (first query, last query, first key, last key) that have something to read: all, or causal ones.

    >>> visits(Attention(4, 1, causal=True), 2, 2)
    [(0, 2, 0, 2), (2, 4, 0, 2), (2, 4, 2, 4)]
    """
    pairs = [(*query, *key) for query in blocks(shape.n, rows) for key in blocks(shape.n, cols)]
    return [pair for pair in pairs if not shape.causal or pair[2] < pair[1]]


def keys_read(shape: Attention, rows: int, cols: int) -> int:
    """Rows of K that stream past all blocks of queries together.

    >>> keys_read(Attention(1024, 64), rows=128, cols=64), keys_read(Attention(1024, 64, causal=True), 128, 64)
    (8192, 4608)
    """
    if not shape.causal:
        return shape.n * -(-shape.n // rows)
    return int(_keys_of_blocks(shape, rows, cols)[1].sum())


def _keys_of_blocks(shape: Attention, rows: int, cols: int) -> tuple[np.ndarray, np.ndarray]:
    """For each block of queries under a causal mask: how many queries, and how many keys in the blocks that it visits."""
    lasts = np.append(np.arange(rows, shape.n, rows), shape.n)
    return np.diff(lasts, prepend=0), np.minimum(shape.n, -(-lasts // cols) * cols)


def naive_bytes(shape: Attention, rows: int | None = None) -> int:
    """Three kernels, scores and weights through HBM; no use is made of a causal mask.

    rows: queries in a block of the two products, which read K and V once for each block; None: read them once.

    >>> naive_bytes(Attention(1024, 64)) / Attention(1024, 64).scores_bytes
    4.25
    """
    passes = 1 if rows is None else math.ceil(shape.n / rows)
    return shape.heads * shape.itemsize * (4 * shape.n**2 + 2 * shape.n * shape.d * (1 + passes))


def by_queries_bytes(shape: Attention, rows: int, cols: int) -> int:
    """Queries stay: Q read once, output and log-sum-exp written once, K and V once for each block of queries.

    >>> by_queries_bytes(Attention(1024, 64), rows=128, cols=64) / Attention(1024, 64).floor_bytes
    4.50390625
    """
    return shape.heads * shape.itemsize * (2 * shape.n * shape.d + shape.n + 2 * shape.d * keys_read(shape, rows, cols))


def by_keys_bytes(shape: Attention, rows: int, cols: int) -> int:
    """Keys stay: K and V read once; Q, and the unfinished output and log-sum-exp both ways, once for each block of keys.

    >>> by_keys_bytes(Attention(1024, 64), rows=64, cols=256)
    1718272
    """
    d, numbers = shape.d, 2 * shape.n * shape.d
    for first, last, key, _ in visits(shape, rows, cols):
        numbers += (last - first) * (2 * d + 1 + (key > 0) * (d + 1))
    return shape.heads * shape.itemsize * numbers


def backward_bytes(shape: Attention, rows: int, cols: int) -> int:
    """Backward, keys stay: K, V, dK and dV once; Q, dO, two numbers a query and dQ both ways for each block of keys.

    Before that a small kernel reads O and dO and writes their row products.

    >>> round(backward_bytes(Attention(1024, 64), rows=64, cols=256) / Attention(1024, 64).floor_bytes, 2)
    5.29
    """
    d, numbers = shape.d, (4 + 2) * shape.n * shape.d + shape.n
    for first, last, key, _ in visits(shape, rows, cols):
        numbers += (last - first) * (3 * d + 2 + (key > 0) * d)
    return shape.heads * shape.itemsize * numbers


def naive_backward_bytes(shape: Attention) -> int:
    """Backward from stored weights, four products and one softmax rule, each a kernel that reads and writes all of it.

    dV = P' dO and dP = dO V'; dS from dP and P; dQ = dS K and dK = dS' Q: seven passes over n x n numbers.

    >>> naive_backward_bytes(Attention(1024, 64)) / Attention(1024, 64).scores_bytes
    7.5
    """
    return shape.heads * shape.itemsize * (7 * shape.n**2 + 8 * shape.n * shape.d)


def sram_bytes(d: int, rows: int, cols: int, itemsize: int = 2) -> int:
    """Space that the order by queries takes: q and out, k and v, their scores, and four numbers a query.

    >>> sram_bytes(d=64, rows=128, cols=64)
    66560
    """
    return itemsize * (2 * rows * d + 2 * cols * d + rows * cols + COLUMNS * rows)


def most_rows(room_bytes: int, d: int, cols: int, itemsize: int = 2) -> int:
    """The most queries that fit beside a block of keys; 0 if none does.

    >>> most_rows(66560, d=64, cols=64), most_rows(16_384, 64, 64)
    (128, 0)
    """
    numbers = room_bytes // itemsize - 2 * cols * d
    return max(numbers // (2 * d + cols + COLUMNS), 0)


def forward_work(shape: Attention, moved_bytes: float, pairs: int | None = None) -> Work:
    """FLOPs of the two products with moved_bytes, for the roofline. pairs: of query and key that are multiplied, in each
    head; None: all n x n. Softmax is left out: fewer than 2 % of the FLOPs at d = 64, though slower ones.

    >>> round(forward_work(Attention(8192, 64), by_queries_bytes(Attention(8192, 64), 128, 64)).intensity)
    126
    """
    return Work(4 * (shape.n**2 if pairs is None else pairs) * shape.d * shape.heads, moved_bytes)


def pairs_computed(shape: Attention, rows: int, cols: int) -> int:
    """Pairs of query and key in all blocks that are visited, in each head; whole blocks, also on the diagonal.

    >>> pairs_computed(Attention(1024, 64, causal=True), 128, 64) / 1024**2
    0.5625
    """
    if not shape.causal:
        return shape.n**2
    queries, keys = _keys_of_blocks(shape, rows, cols)
    return int((queries * keys).sum())


# Dao and others, FlashAttention, version 2, Figure 2, https://arxiv.org/abs/2205.14135v2: forward and backward of GPT-2
# medium's attention on an A100, 1,024 tokens, heads of 64, 16 heads, 64 samples; standard and FlashAttention.
GPT2_MEDIUM = Attention(n=1024, d=64, heads=16 * 64)
PUBLISHED = {"GFLOPs": (66.6, 75.2), "HBM GB": (40.3, 4.4), "ms": (41.7, 7.3)}
PUBLISHED_COLS = 256  # keys in a block of the kernels released then for this chip and head size
