"""Small data to learn on: real digits, generated points, and ways to cut data up.

`digits` are 1,797 handwritten digits that ship with the course; `generated` draws points from
a formula; `splitting` makes batches and parts. Nothing is read at import, nothing from a network.
"""

from .digits import CLASSES, Digits, digits
from .generated import blobs, moons, noise, spirals
from .splitting import batches, flip_labels, train_test_split

__all__ = [
    "CLASSES", "Digits", "batches", "blobs", "digits", "flip_labels", "moons", "noise", "spirals",
    "train_test_split",
]
