"""The capacity explorer: how much a model can memorise, how wrong its labels are, how it then predicts.

The model is solved, not trained: k random features max(0, x W) of a digit, W never changed, and
the least-squares fit of the ten classes on top. With as many features as images it can just pass
through every label. The labels enter the solution linearly, so one singular value decomposition
for each k serves every noise level; a change of a slider costs a few small products.
It errs on the pessimistic side: a trained network of k hidden units predicts better than k random ones.
Lessons: learning or memorising.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data import CLASSES, Digits, digits
from ..viz.picture import INK, Axes, Picture
from ..viz.style import COLOUR
from .base import Explorer, choice, float_slider, log_slider

IMAGES = 200
FEATURES = [round(10 ** (1 + 0.1 * step)) for step in range(26)]  # 10 to 3,162, the slider's own steps
DECAY = {"none": 0.0, "0.01": 0.01, "0.1": 0.1, "1": 1.0}


@dataclass(frozen=True)
class Fit:
    """The least-squares fit on k features, up to the labels: F = U S Vt of the training features."""

    u: np.ndarray  # (images, rank)
    s: np.ndarray  # (rank,)
    held_out: np.ndarray  # (validation images, rank): their features times V

    def accuracies(self, targets: np.ndarray, labels: np.ndarray, truth: np.ndarray, decay: float) -> tuple[float, float]:
        """Percent right in training and in validation. targets: (images, classes); decay: added to S squared."""
        kept = self.s > 1e-6 * self.s[0]
        shrink = np.where(kept, self.s / np.where(kept, self.s**2 + decay, 1.0), 0.0)
        weights = shrink[:, None] * (self.u.T @ targets)  # in the coordinates of V
        train = (self.u @ (self.s[:, None] * weights)).argmax(axis=1) == labels
        valid = (self.held_out @ weights).argmax(axis=1) == truth
        return 100 * float(train.mean()), 100 * float(valid.mean())


def random_features(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """max(0, x W) / sqrt(k): (n, pixels), (pixels, k) -> (n, k)."""
    return np.maximum(x @ weights, 0) / np.sqrt(weights.shape[1])


def solve(data: Digits, rng: np.random.Generator) -> tuple[list[Fit], np.ndarray, np.ndarray]:
    """One `Fit` for each of FEATURES, with the labels of the training and the validation images.

    Training images come from forms 0 to 9, validation images are all of forms 10 to 13.
    """
    train, valid = data.take(data.forms < 10), data.take(data.forms >= 10)
    train = train.take(rng.choice(len(train), IMAGES, replace=False))
    mean, std = train.images.mean(axis=0), train.images.std()
    weights = rng.normal(size=(train.images.shape[1], FEATURES[-1])) / 8
    fits = []
    for k in FEATURES:
        u, s, vt = np.linalg.svd(random_features((train.images - mean) / std, weights[:, :k]), full_matrices=False)
        fits.append(Fit(u, s, random_features((valid.images - mean) / std, weights[:, :k]) @ vt.T))
    return fits, train.labels, valid.labels


class CapacityExplorer(Explorer):
    """Training and validation accuracy over the number of features; the gap at the chosen one is drawn in red."""

    def __init__(self):
        rng = np.random.default_rng(1)
        self.fits, self.labels, self.truth = solve(digits(), rng)
        self.order, self.shift = rng.permutation(IMAGES), rng.integers(1, CLASSES, IMAGES)
        self.features = log_slider("features", 50.0, 1, 3.5, form=",.0f")
        self.noise = float_slider("wrong labels, %", 0, 0, 50, 5, ".0f")
        self.decay = choice("weight decay", list(DECAY))
        self.solved: tuple = (None, None)  # noise and decay that the curves below were computed for; the curves
        super().__init__([self.features, self.noise, self.decay])

    def noisy_labels(self) -> np.ndarray:
        """The training labels with the chosen share replaced; a larger share keeps the wrong ones of a smaller."""
        wrong = self.order[: round(self.noise.value / 100 * IMAGES)]
        labels = self.labels.copy()
        labels[wrong] = (labels[wrong] + self.shift[wrong]) % CLASSES
        return labels

    def model(self) -> tuple[int, np.ndarray]:
        """Which of FEATURES is chosen, and the (train, validation) percentages of all of them."""
        state = self.noise.value, self.decay.value
        if self.solved[0] != state:
            labels = self.noisy_labels()
            targets = np.eye(CLASSES)[labels] - 1 / CLASSES
            self.solved = state, np.array(
                [fit.accuracies(targets, labels, self.truth, DECAY[self.decay.value]) for fit in self.fits])
        return int(np.abs(np.log(np.array(FEATURES) / self.features.value)).argmin()), self.solved[1]

    def sentence(self) -> str:
        at, curves = self.model()
        train, valid = curves[at]
        return (
            f"{FEATURES[at]:,} features, {IMAGES} training images, {self.noise.value:.0f} % of them with a wrong label: "
            f"training {train:.1f} %, validation {valid:.1f} %, gap {train - valid:.1f} points."
        )

    def draw(self) -> Picture:
        at, curves = self.model()
        train, valid = curves[at]
        picture = Picture(640, 380, f"Accuracy over the number of features. {self.sentence()}")
        picture.text(56, 20, finding(train, valid, self.noise.value), 14, bold=True)
        axes = Axes(picture, (56, 58, 470, 262), (FEATURES[0], FEATURES[-1]), (0, 100),
                    "random features (log scale)", "accuracy, %", "x", [10, 30, 100, 200, 500, 1000, 3000])
        axes.plot([IMAGES, IMAGES], [0, 100], INK, 1, ":")
        picture.text(axes.x(IMAGES) + 5, axes.y(2), f"{IMAGES} images", 11)
        axes.plot(FEATURES, curves[:, 0], INK, 2, "--")
        axes.plot(FEATURES, curves[:, 1], COLOUR["compute"], 2.5)
        x, gap = FEATURES[at], train - valid
        axes.plot([x, x], [valid, train], COLOUR["limiter"], 5)
        axes.dot(x, train, INK, 4)
        axes.dot(x, valid, COLOUR["compute"], 6, INK)
        if abs(gap) >= 8:
            side = ("start", 9) if at < len(FEATURES) - 6 else ("end", -9)
            picture.text(axes.x(x) + side[1], axes.y((train + valid) / 2) + 4, f"gap {gap:.0f}", 12, side[0], bold=True)
        ends = sorted([(curves[-1, 0], "training", "given labels"), (curves[-1, 1], "validation", "true labels")])
        (low, *below), (high, *above) = ends
        for (name, what), y in ((above, axes.y(high)), (below, max(axes.y(low), axes.y(high) + 30))):
            picture.text(534, y + 4, name, 12, bold=True)
            picture.text(534, y + 17, what, 10)
        return picture


def finding(train: float, valid: float, noise: float) -> str:
    """What the chosen point shows, as a title. All three in per cent.

    >>> finding(100.0, 15.0, 0.0)
    'Every label is memorised; validation is 85 points behind'
    """
    if train < valid:
        return "It cannot memorise the wrong labels, so it follows the right ones" if noise else "It cannot fit even the training labels"
    if train < 99.9:
        return f"It fits part of the labels; validation is {train - valid:.0f} points behind"
    what = "Every label is memorised, the wrong ones too" if noise else "Every label is memorised"
    return f"{what}; validation is {train - valid:.0f} points behind"
