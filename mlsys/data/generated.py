"""Points drawn from a formula, for pictures and for questions whose true answer is known.

Each function takes a random generator and returns (x, y): x of shape (n, features), y the class.
Lessons: backpropagation, optimizers, learning or memorising.
"""

from __future__ import annotations

import numpy as np

Points = tuple[np.ndarray, np.ndarray]


def moons(n: int, noise: float, rng: np.random.Generator) -> Points:
    """Two half circles that reach into each other: no straight line parts them.

    noise: standard deviation added to both coordinates.

    >>> x, y = moons(6, 0.0, np.random.default_rng(0))
    >>> x.shape, np.bincount(y).tolist()
    ((6, 2), [3, 3])
    """
    y = rng.permutation(np.arange(n) % 2)
    angle = rng.uniform(0, np.pi, n)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
    x = np.where(y[:, None] == 0, upper, lower) + noise * rng.normal(size=(n, 2))
    return x.astype(np.float32), y


def blobs(n: int, classes: int, rng: np.random.Generator, features: int = 2, spread: float = 1.0,
          radius: float = 4.0) -> Points:
    """Round clouds, one a class, with centres drawn at random.

    spread: standard deviation within a cloud; radius: standard deviation of the centres.

    >>> x, y = blobs(90, 3, np.random.default_rng(0))
    >>> x.shape, np.bincount(y).tolist()
    ((90, 2), [30, 30, 30])
    """
    centres = radius * rng.normal(size=(classes, features))
    y = rng.permutation(np.arange(n) % classes)
    x = centres[y] + spread * rng.normal(size=(n, features))
    return x.astype(np.float32), y


def spirals(n: int, noise: float, rng: np.random.Generator, turns: float = 1.25) -> Points:
    """Two arms wound around each other: small networks need a while for these.

    >>> x, y = spirals(100, 0.0, np.random.default_rng(0))
    >>> x.shape, float(np.linalg.norm(x, axis=1).max()) <= 1
    ((100, 2), True)
    """
    y = rng.permutation(np.arange(n) % 2)
    radius = np.sqrt(rng.uniform(0.01, 1, n))
    angle = 2 * np.pi * turns * radius + np.pi * y
    x = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1) + noise * rng.normal(size=(n, 2))
    return x.astype(np.float32), y


def noise(n: int, features: int, classes: int, rng: np.random.Generator) -> Points:
    """Features and classes that have nothing to do with each other: the best true accuracy is 1/classes.

    >>> x, y = noise(50, 3, 2, np.random.default_rng(0))
    >>> x.shape, np.bincount(y).tolist()
    ((50, 3), [25, 25])
    """
    return rng.normal(size=(n, features)).astype(np.float32), rng.permutation(np.arange(n) % classes)
