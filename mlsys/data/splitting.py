"""Cut data into parts and batches, and spoil labels on purpose.

All of these return row numbers or new arrays; none touches what it is given.
Lessons: optimizers, learning or memorising.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def train_test_split(n: int, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of a training and a held-out part, drawn row by row.

    share: of the rows that are held out. Rows that belong together (one writer, one user, one
    document copied twice) may land on both sides; then the held-out part flatters.

    >>> train, test = train_test_split(10, 0.3, np.random.default_rng(0))
    >>> len(train), len(test), sorted([*train, *test]) == list(range(10))
    (7, 3, True)
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share={share} is not between 0 and 1")
    order = rng.permutation(n)
    held_out = round(share * n)
    return order[held_out:], order[:held_out]


def batches(n: int, batch: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Row numbers of one epoch in random order, `batch` at a time; the last batch may be smaller.

    >>> [len(rows) for rows in batches(10, 4, np.random.default_rng(0))]
    [4, 4, 2]
    """
    if batch < 1:
        raise ValueError(f"batch={batch} is not at least 1")
    order = rng.permutation(n)
    for start in range(0, n, batch):
        yield order[start : start + batch]


def flip_labels(labels: np.ndarray, share: float, classes: int, rng: np.random.Generator) -> np.ndarray:
    """A copy in which a share of the labels is replaced by another class, drawn evenly.

    >>> old = np.zeros(1000, int)
    >>> new = flip_labels(old, 0.2, 10, np.random.default_rng(0))
    >>> int((new != old).sum()), int(new.max())
    (200, 9)
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share={share} is not between 0 and 1")
    rows = rng.choice(len(labels), round(share * len(labels)), replace=False)
    spoiled = labels.copy()
    spoiled[rows] = (labels[rows] + rng.integers(1, classes, len(rows))) % classes
    return spoiled
