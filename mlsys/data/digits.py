"""1,797 handwritten digits, 8 x 8 pixels each: real data that fits in 46 kB.

Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine
Learning Repository, doi 10.24432/C50P49, CC BY 4.0. These are its test images, written by 13 people.

The source names no writers, but its labels tell: the same sequence of about 130 digits comes 14
times, so each time somebody filled in the same form (one of the 13 perhaps twice). `forms` numbers
them. Two images of one form share a hand; a split that mixes them is kinder than a new writer is.
Lessons: backpropagation, optimizers, learning or memorising.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

SIDE = 8  # pixels
CLASSES = 10


@dataclass(frozen=True)
class Digits:
    """Images with what they show and which form they come from; row i of all three belongs together."""

    images: np.ndarray  # (n, 64) float32, 0 = paper, 1 = ink
    labels: np.ndarray  # (n,) int64, 0 to 9
    forms: np.ndarray  # (n,) int64, 0 to 13

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows) -> Digits:
        """Some of the rows, by index or by mask.

        >>> data = digits()
        >>> len(data.take(data.forms == 0))
        130
        """
        return Digits(self.images[rows], self.labels[rows], self.forms[rows])


def digits() -> Digits:
    """All images, form after form, in the order of the source. Read anew at each call (1 ms).

    >>> data = digits()
    >>> data.images.shape, data.images.dtype.name, data.labels[:5].tolist(), int(data.forms.max())
    ((1797, 64), 'float32', [0, 1, 2, 3, 4], 13)
    """
    with np.load(Path(__file__).with_name("digits.npz")) as file:
        images = file["pixels"].astype(np.float32) / 16  # the source counts 0 to 16 inked pixels of 4 x 4
        return Digits(images, file["labels"].astype(np.int64), file["forms"].astype(np.int64))
